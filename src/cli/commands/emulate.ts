/** `dxpu emulate`: a trace run through the proxies and the device in virtual time. */
import * as path from 'node:path';
import { Worker } from 'node:worker_threads';
import { assertDefined } from '#base/assert';
import type { TraceAnswer } from '#emulator/answer';
import { MAX_PLOTTED } from '#report/palette';
import type { EmulatedDevice } from '#emulator/emulated-system';
import type { SyntheticName } from '#trace/synthetic';
import { checkPlotted, checkTargets, type FileOptions, writeTargets } from '../answer-targets.ts';
import type { EmulateResult, TraceJob, TraceResult } from '../emulate-job.ts';
import { TracePrinter } from '../emulate-printer.ts';
import { printNote, UsageError } from '../output.ts';
import { ownFile } from '../own-file.ts';
import { type LinkOptions, linksOf } from '../trace-links.ts';
import { type AnswerFormat, version } from '../program-options.ts';
import { traceName, traceSources } from '../trace-source.ts';
import { EXIT_SIGNALS, runWhole, type WholeEnd } from '../watched-run.ts';
import { checkTarget, dropPending, keepPending } from '../whole-file.ts';
import type { WorkerLike } from '../worker-pool.ts';

/** What the options say of the device. */
export interface DeviceOptions {
  readonly prefetch?: number;
  readonly fetchSize?: number;
  readonly fetchesInFlight?: number;
}

export interface EmulateCommandOptions extends LinkOptions, DeviceOptions, FileOptions {
  readonly example?: SyntheticName;
  readonly sharing: number;
  readonly seed: number;
  /** Percent. */
  readonly budget: number;
  readonly wholeCopies?: boolean;
  /** Files for the Chrome trace and the capture. */
  readonly trace?: string;
  readonly traceDetail: number;
  readonly capture?: string;
  readonly output: AnswerFormat;
}

/** `startWorker` is for tests. */
export async function emulate(
  file: string | undefined,
  options: EmulateCommandOptions,
  startWorker: () => WorkerLike = newWorker,
): Promise<void> {
  const jobs = await jobsOf(file, options);
  const printer = new TracePrinter(options.output);
  const answers: TraceAnswer[] = [];
  const pending = [options.trace, options.capture].filter((name) => name !== undefined);
  const drop = (): void => pending.forEach(dropPending);
  // A reader of stdout that goes away ends the process.
  process.on('exit', drop);
  const written: TraceResult['files'][number][] = [];
  let ended: WholeEnd;
  try {
    ended = await runWhole<EmulateResult>(jobs, {
      start: startWorker,
      nameOf: (job) => nameOf(jobs, job),
      isWatched: process.stderr.isTTY,
      onResult: (result) => {
        if (!('answer' in result)) return;
        answers.push(result.answer);
        written.push(...result.files);
        printer.add(result.answer);
      },
    });
    for (const { file: name, note } of written) {
      keepPending(name);
      printNote(`wrote ${name}: ${note}`);
    }
  } finally {
    process.removeListener('exit', drop);
    drop();
  }
  await printer.end();
  const { failure, signalled } = ended;
  if (failure !== undefined) throw failure;
  if (signalled !== undefined) {
    printNote(`dxpu: interrupted; ${answers.length} of ${jobs.length} were done`);
    process.exitCode = EXIT_SIGNALS[signalled];
    return;
  }
  await writeTargets(options, {
    svg: async () => (await import('#emulator/answer-plot')).tracePlot(answers),
    page: async () => {
      const { tracePage } = await import('#emulator/answer-page');
      return tracePage(answers, `Made by dxpu ${version()} emulate.`);
    },
  });
}

async function jobsOf(
  file: string | undefined,
  options: EmulateCommandOptions,
): Promise<TraceJob[]> {
  const { example, sharing, seed, budget, trace, capture, plot, html } = options;
  const files = file === undefined ? [] : [file];
  const source = assertDefined(traceSources(files, example)[0], 'nothing to read is refused');
  const links = await linksOf(options);
  const device = deviceOf(options);
  for (const [flag, name] of [
    ['--trace', trace],
    ['--capture', capture],
  ] as const) {
    if (name === undefined) continue;
    if (links.length > 1) throw new UsageError(`${flag} is of one run: give one --link`);
    if (name === '-') {
      throw new UsageError(`${flag} -: stdout has the answer; give the name of a file`);
    }
  }
  const inputs = [...files, ...(options.link ?? [])];
  checkTargets(options, inputs);
  checkPlotted(options, links.length, MAX_PLOTTED, 'links');
  checkApart(options);
  for (const name of [trace, capture]) if (name !== undefined) checkTarget(name, inputs);
  return links.map((link) => ({
    kind: 'trace',
    source,
    asked: {
      link,
      sharing,
      device,
      seed,
      wholeCopies: options.wholeCopies === true,
      budgetPct: budget,
    },
    curve: plot !== undefined || html !== undefined,
    bursts: options.traceDetail,
    ...(trace === undefined ? {} : { trace }),
    ...(capture === undefined ? {} : { capture }),
  }));
}

/** No two of the files that are written may be one. */
function checkApart({ trace, capture, plot, html }: EmulateCommandOptions): void {
  const seen = new Map<string, string>();
  for (const [flag, name] of Object.entries({ trace, capture, plot, html })) {
    if (name === undefined) continue;
    const other = seen.get(path.resolve(name));
    if (other !== undefined) {
      throw new UsageError(`--${flag} and --${other} name one file, ${name}: give another name`);
    }
    seen.set(path.resolve(name), flag);
  }
}

/** What the options say of the device; the rest is as usual. */
export function deviceOf({ prefetch, fetchSize, fetchesInFlight }: DeviceOptions): EmulatedDevice {
  if (prefetch !== undefined && !Number.isInteger(Math.log2(prefetch))) {
    throw new UsageError(`--prefetch ${prefetch}: a power of two, from 1 to 64`);
  }
  if (fetchSize !== undefined && fetchSize > (prefetch ?? 64)) {
    throw new UsageError(
      `--fetch-size ${fetchSize} is more than the ${prefetch ?? 64} commands of --prefetch`,
    );
  }
  return {
    ...(prefetch === undefined ? {} : { prefetchCommands: prefetch }),
    ...(fetchSize === undefined ? {} : { fetchCommands: fetchSize }),
    ...(fetchesInFlight === undefined ? {} : { fetchesInFlight }),
  };
}

function nameOf(jobs: readonly TraceJob[], index: number): string {
  const job = jobs[index];
  if (job === undefined) return '';
  const link = jobs.length === 1 ? '' : ` over ${job.asked.link.name}`;
  return `${traceName(job.source)}${link}`;
}

export function newWorker(): WorkerLike {
  return new Worker(ownFile('emulate-worker.js'));
}
