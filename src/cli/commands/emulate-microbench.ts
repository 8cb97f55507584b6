/** `dxpu emulate bandwidth`, `latency` and `launch-rate`. */
import { microbenchAnswer, sharedProfile } from '#emulator/emulate-answer';
import type { Microbench, MicrobenchRow } from '#emulator/microbench';
import { type LinkProfile, roundTripNs } from '#pcie/link-profile';
import { checkTargets, type FileOptions, writeTargets } from '../answer-targets.ts';
import type { EmulateResult, MicrobenchJob } from '../emulate-job.ts';
import { printMicrobench } from '../emulate-printer.ts';
import { printNote, UsageError } from '../output.ts';
import { type LinkOptions, linksOf } from '../trace-links.ts';
import { type AnswerFormat, version } from '../program-options.ts';
import { formatDuration } from '../quantity.ts';
import { EXIT_SIGNALS, runWhole } from '../watched-run.ts';
import type { WorkerLike } from '../worker-pool.ts';
import { deviceOf, type DeviceOptions, newWorker } from './emulate.ts';

export interface MicrobenchOptions extends LinkOptions, DeviceOptions, FileOptions {
  readonly sharing: number;
  /** Whole round trips, ns. */
  readonly at?: readonly number[];
  readonly output: AnswerFormat;
}

/** Natively, and whole round trips in ns that are of interest. */
const USUAL_RTTS_NS = [2000, 4900, 6800, 10_000, 20_000];
const MOST_ADDED_NS = 1e9;

/** `startWorker` is for tests. */
export async function emulateMicrobench(
  kind: Microbench,
  options: MicrobenchOptions,
  startWorker: () => WorkerLike = newWorker,
): Promise<void> {
  checkTargets(options, options.link ?? []);
  const [link] = await linksOf(options);
  if (link === undefined || (options.link?.length ?? 0) > 1) {
    throw new UsageError('a microbenchmark is of one --link');
  }
  const device = deviceOf(options);
  const profile = sharedProfile(link, options.sharing);
  const jobs = rttsOf(link, options.at).map(
    (rttNs): MicrobenchJob => ({ kind, profile, device, rttNs }),
  );
  const rows: MicrobenchRow[] = [];
  const { failure, signalled } = await runWhole<EmulateResult>(jobs, {
    start: startWorker,
    nameOf: (job) => formatDuration(jobs[job]?.rttNs ?? 0),
    isWatched: process.stderr.isTTY,
    onResult: (result) => {
      if ('rows' in result) rows.push(...result.rows);
    },
  });
  if (failure !== undefined) throw failure;
  const answer = microbenchAnswer(kind, link, options.sharing, device, rows);
  if (rows.length > 0) await printMicrobench(answer, options.output);
  if (signalled !== undefined) {
    const done = new Set(rows.map(({ rttNs }) => rttNs)).size;
    printNote(`dxpu: interrupted; ${done} of ${jobs.length} round trips were done`);
    process.exitCode = EXIT_SIGNALS[signalled];
    return;
  }
  await writeTargets(options, {
    svg: async () => (await import('#emulator/answer-plot')).microbenchPlot(answer),
    page: async () => {
      const { microbenchPage } = await import('#emulator/answer-page');
      return microbenchPage(answer, `Made by dxpu ${version()} emulate ${kind}.`);
    },
  });
}

/** Each once. Where none are asked for, the link's own is among them. */
function rttsOf(link: LinkProfile, at: readonly number[] | undefined): number[] {
  const { nativeRttNs } = link;
  if (at === undefined) {
    const all = new Set([nativeRttNs, ...USUAL_RTTS_NS, roundTripNs(link)]);
    return [...all].filter((rtt) => rtt >= nativeRttNs).toSorted((a, b) => a - b);
  }
  for (const rttNs of at) {
    if (rttNs >= nativeRttNs && rttNs <= nativeRttNs + MOST_ADDED_NS) continue;
    throw new UsageError(
      `--at ${formatDuration(rttNs)}: a whole round trip is from the native one, ` +
        `${formatDuration(nativeRttNs)}, to 1 s more`,
    );
  }
  return [...new Set(at)];
}
