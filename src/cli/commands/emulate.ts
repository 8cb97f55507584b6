/** `dxpu emulate`: a trace run through the proxies and the device in virtual time, and microbenchmarks. */
import { assertDefined } from '#base/assert';
import { DxpuError } from '#base/errors';
import { shortPath } from '#base/short-path';
import { type Emulation, Emulator } from '#emulator/emulate';
import type { EmulatedDevice } from '#emulator/emulated-system';
import { CommandLog } from '#emulator/chrome-trace';
import { emulateAnswer, type EmulateAnswer } from '#emulator/emulate-answer';
import { microbench, type Microbench, type MicrobenchRow } from '#emulator/microbench';
import { termsOf } from '#perfmodel/terms';
import { WorkloadModel } from '#perfmodel/workload-model';
import type { LinkProfile } from '#pcie/link-profile';
import type { SyntheticName } from '#trace/synthetic';
import type { Timeline } from '#trace/timeline';
import { checkTargets, writePlot } from '../answer-targets.ts';
import {
  formatTable,
  type OutputFormat,
  printData,
  printLine,
  printNote,
  UsageError,
} from '../output.ts';
import { type LinkOptions, linksOf } from '../predict-links.ts';
import { formatDuration, formatSize } from '../quantity.ts';
import { timelineOf, traceName, traceSources, withTraceName } from '../trace-source.ts';
import { checkTarget, writePieces } from '../whole-file.ts';

export interface DeviceOptions {
  readonly prefetch?: number;
  readonly fetchSize?: number;
  readonly fetchesInFlight?: number;
}

export interface EmulateCommandOptions extends LinkOptions, DeviceOptions {
  readonly example?: SyntheticName;
  readonly seed: number;
  readonly wholeCopies?: boolean;
  /** File for the Chrome trace. */
  readonly trace?: string;
  readonly output: OutputFormat;
}

export async function emulate(
  file: string | undefined,
  options: EmulateCommandOptions,
): Promise<void> {
  const { example, trace } = options;
  const files = file === undefined ? [] : [file];
  const source = assertDefined(traceSources(files, example)[0], 'nothing to read is refused');
  const links = await linksOf(options);
  if (trace !== undefined) {
    if (links.length > 1) throw new UsageError('--trace is of one run: give one --link');
    checkTarget(trace, files);
  }
  const timeline = await timelineOf(source);
  const log = trace === undefined ? undefined : new CommandLog();
  const answers = answersOf(traceName(source), timeline, links, options, log, (emulation) => {
    if (trace === undefined || log === undefined) return;
    writePieces(trace, log.chromeTrace(timeline, emulation.pooled));
    printNote(`wrote ${trace}`);
  });
  if (options.output === 'json') {
    for (const answer of answers) await printData(answer, 'json');
  } else if (options.output === 'yaml') {
    await printData(answers.length === 1 ? answers[0] : answers, 'yaml');
  } else {
    for (const [index, answer] of answers.entries()) {
      if (index > 0) printLine('');
      for (const line of linesOf(answer)) printLine(line);
    }
  }
}

function answersOf(
  name: string,
  timeline: Timeline,
  links: readonly LinkProfile[],
  options: EmulateCommandOptions,
  log: CommandLog | undefined,
  done: (emulation: Emulation) => void,
): EmulateAnswer[] {
  const model = new WorkloadModel(timeline);
  const emulator = new Emulator(timeline);
  return links.map((link) => {
    let emulation: Emulation;
    try {
      emulation = emulator.run(link, {
        seed: options.seed,
        device: deviceOf(options),
        wholeCopies: options.wholeCopies === true,
        ...(log === undefined ? {} : { onCommand: log.take }),
      });
    } catch (error) {
      throw withTraceName(name, DxpuError.from(error));
    }
    done(emulation);
    const terms = termsOf(link);
    return emulateAnswer(name, link, emulation, {
      additiveOverheadPct: model.additiveOverheadPct(terms),
      replayOverheadPct: model.replayOverheadPct(terms),
    });
  });
}

/** What the options say of the device; the rest is as usual. */
function deviceOf({ prefetch, fetchSize, fetchesInFlight }: DeviceOptions): EmulatedDevice {
  return {
    ...(prefetch === undefined ? {} : { prefetchCommands: prefetch }),
    ...(fetchSize === undefined ? {} : { fetchCommands: fetchSize }),
    ...(fetchesInFlight === undefined ? {} : { fetchesInFlight }),
  };
}

function linesOf(answer: EmulateAnswer): string[] {
  const { link, estimates, native, pooled, warnings, bulk } = answer;
  const isInBulk = bulk.htodBytes + bulk.dtohBytes > 0;
  const pct = (value: number | null): string => (value === null ? '-' : `${value.toFixed(2)} %`);
  const ms = (ns: number): string => `${(ns / 1e6).toFixed(3)} ms`;
  const recalled =
    link.recalled.length === 0 ? '' : ` (${link.recalled.join(', ')}: recalled, not confirmed)`;
  return [
    `${shortPath(answer.trace)} on ${link.name}: ${formatDuration(link.addedRttNs)} added to ` +
      `${formatDuration(link.nativeRttNs)}, ${link.tags} tags, MRRS ${link.mrrsBytes}${recalled}`,
    '',
    ...formatTable(
      ['estimate', 'overhead'],
      [
        ['additive', pct(estimates.additiveOverheadPct)],
        ['replay', pct(estimates.replayOverheadPct)],
        ['emulated', pct(estimates.emulatedOverheadPct)],
      ],
    ).split('\n'),
    '',
    `recorded ${ms(answer.recordedSpanNs)}; emulated natively ${ms(native.spanNs)} ` +
      `(${answer.nativeErrorPct.toFixed(2)} %), pooled ${ms(pooled.spanNs)}`,
    '',
    ...formatTable(
      ['pooled', 'TLPs', 'of them', 'link used'],
      [
        [
          'to the device',
          String(pooled.down.total),
          kinds(pooled.down.tlps),
          pct(pooled.downOccupancyPct),
        ],
        [
          'from the device',
          String(pooled.up.total),
          kinds(pooled.up.tlps),
          pct(pooled.upOccupancyPct),
        ],
      ],
    ).split('\n'),
    `${isInBulk ? 'beside copies in bulk, ' : ''}tags in use: ${pooled.meanTags.toFixed(2)} of ${link.tags} on average, ${pooled.mostTags} at most; ` +
      `network used ${pct(pooled.networkDownPct)} to the device, ${pct(pooled.networkUpPct)} from it`,
    ...warnings.map((warning) => `note: ${warning}`),
  ];
}

function kinds(tlps: Readonly<Record<string, number>>): string {
  return Object.entries(tlps)
    .map(([kind, count]) => `${kind} ${count}`)
    .join(', ');
}

export interface MicrobenchOptions extends LinkOptions, DeviceOptions {
  /** Whole round trips, ns. */
  readonly at?: readonly number[];
  readonly plot?: string;
  readonly output: OutputFormat;
}

/** Natively, and whole round trips in ns that are of interest. */
const USUAL_RTTS_NS = [2000, 4900, 6800, 10_000, 20_000];

export async function emulateMicrobench(
  kind: Microbench,
  options: MicrobenchOptions,
): Promise<void> {
  checkTargets(options, []);
  const [profile] = await linksOf(options);
  if (profile === undefined || (options.link?.length ?? 0) > 1) {
    throw new UsageError('a microbenchmark is of one --link');
  }
  const { nativeRttNs } = profile;
  const rtts = options.at ?? [nativeRttNs, ...USUAL_RTTS_NS.filter((rtt) => rtt > nativeRttNs)];
  const rows = microbench(kind, profile, rtts, deviceOf(options));
  if (options.output !== 'table')
    await printData({ microbench: kind, link: profile, rows }, options.output);
  else for (const line of tableOf(kind, rows)) printLine(line);
  await writePlot(options.plot, async () => {
    const { microbenchPlot } = await import('#emulator/microbench-plot');
    return microbenchPlot(kind, rows);
  });
}

function tableOf(kind: Microbench, rows: readonly MicrobenchRow[]): string[] {
  const where = ({ rttNs, isNative }: MicrobenchRow): string =>
    `${formatDuration(rttNs)}${isNative ? ' (native)' : ''}`;
  if (kind === 'latency') {
    const cells = rows.map((row) => [
      where(row),
      `${((row.launchAndWaitNs ?? 0) / 1e3).toFixed(3)} us`,
    ]);
    return formatTable(['round trip', 'launch and wait'], cells).split('\n');
  }
  if (kind === 'launch-rate') {
    const cells = rows.map((row) => [where(row), ((row.launchesPerS ?? 0) / 1e6).toFixed(3)]);
    return formatTable(['round trip', 'million launches/s'], cells).split('\n');
  }
  const cells = rows.map((row) => [
    where(row),
    formatSize(row.bytes ?? 0),
    (row.htodGbytesPerS ?? 0).toFixed(3),
    (row.dtohGbytesPerS ?? 0).toFixed(3),
  ]);
  return formatTable(['round trip', 'copy', 'HtoD GB/s', 'DtoH GB/s'], cells).split('\n');
}
