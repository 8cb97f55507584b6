/** The words every form of an answer uses: text, page, plot. */
import * as figures from '#report/figures';
import { type ShownTrace, verdictWord } from '#report/trace-words';
import type { DeviceFigures, MicrobenchAnswer, RunAnswer, TraceAnswer } from './answer.ts';

export const MICROBENCH_TITLES = {
  bandwidth: 'Blocking copies of one size after another',
  latency: 'An empty kernel launched and waited for',
  'launch-rate': 'Empty kernels from a queue that is never empty',
} as const;

/** The trace, as answers of the model show it too. */
export function shownTrace({ trace, format, gpus, recordedSpanNs }: TraceAnswer): ShownTrace {
  return { file: trace, format, gpus, spanNs: recordedSpanNs };
}

export function deviceWords(device: DeviceFigures): string {
  return (
    `${device.prefetchCommands} commands fetched ahead, at most ${device.fetchCommands} a fetch, ` +
    `${device.fetchesInFlight} fetches of a stream at once`
  );
}

export function verdictWords(answer: TraceAnswer): string {
  const { within, budgetPct, nativeErrorPct } = answer;
  const off =
    within === 'unsure' ? ` The native run is ${hundredths(nativeErrorPct)} % off the record.` : '';
  return (
    `${verdictWord(within).toUpperCase()}: ${figures.percent(answer.estimates.emulatedOverheadPct)} emulated, ` +
    `of ${figures.percent(budgetPct)} that are accepted.${off}`
  );
}

export function spanWords({ recordedSpanNs, native, pooled, nativeErrorPct }: TraceAnswer): string {
  const spanOf = (ns: number): string => `${(ns / 1e6).toFixed(3)} ms`;
  return (
    `recorded ${spanOf(recordedSpanNs)}; emulated natively ${spanOf(native.spanNs)} ` +
    `(${hundredths(nativeErrorPct)} % off), pooled ${spanOf(pooled.spanNs)}`
  );
}

/** Without the sign of what rounds to nothing. */
function hundredths(value: number): string {
  return value.toFixed(2).replace(/^-(?=0\.00$)/, '');
}

/** A row each way: TLPs, of which kinds, and the shares of link and network they took. */
export function tlpRows(run: RunAnswer): string[][] {
  const row = (
    name: string,
    { total, tlps }: RunAnswer['up'],
    link: number,
    network: number | null,
  ): string[] => {
    const kinds = Object.entries(tlps).map(([kind, number]) => `${kind} ${figures.count(number)}`);
    return [
      name,
      figures.count(total),
      kinds.join(', '),
      figures.percentOr(link),
      figures.percentOr(network),
    ];
  };
  return [
    row('to the device', run.down, run.downOccupancyPct, run.networkDownPct),
    row('from it', run.up, run.upOccupancyPct, run.networkUpPct),
  ];
}

export const TLP_TITLES = ['pooled', 'TLPs', 'kinds', 'of link', 'of network'] as const;

export function tagWords({ link, pooled, bulk }: TraceAnswer): string {
  const isBulk = bulk.htodBytes + bulk.dtohBytes > 0;
  const what = isBulk ? 'of network, and tags in use, are without copies in bulk' : 'tags in use';
  return (
    `${what}: ${figures.threeDigits(pooled.meanTags)} of ${link.tags} on average, ` +
    `${pooled.mostTags} at most`
  );
}

export function rttWords({ rttNs, isNative }: MicrobenchAnswer['rows'][number]): string {
  return `${figures.duration(rttNs)}${isNative ? ', native' : ''}`;
}

/** Header and rows of a microbenchmark; all columns but the first are numbers. */
export function microbenchTable(answer: MicrobenchAnswer): { titles: string[]; rows: string[][] } {
  switch (answer.kind) {
    case 'latency':
      return {
        titles: ['round trip', 'launch and wait'],
        rows: answer.rows.map((row) => [
          rttWords(row),
          `${(row.launchAndWaitNs / 1e3).toFixed(3)} µs`,
        ]),
      };
    case 'launch-rate':
      return {
        titles: ['round trip', 'million launches/s'],
        rows: answer.rows.map((row) => [rttWords(row), rate(row.launchesPerS / 1e6)]),
      };
    case 'bandwidth':
      return {
        titles: ['round trip', 'copy', 'HtoD GB/s', 'DtoH GB/s'],
        rows: answer.rows.map((row) => [
          rttWords(row),
          binarySize(row.bytes),
          rate(row.htodGbytesPerS),
          rate(row.dtohGbytesPerS),
        ]),
      };
  }
}

/** Of one column: thousandths, and more where those would be less than three digits. */
function rate(value: number): string {
  return value >= 0.1 ? value.toFixed(3) : figures.threeDigits(value);
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB'] as const;

/** A size that is a power of two, or near one: `64 KiB`. */
function binarySize(bytes: number): string {
  const unit = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${figures.threeDigits(bytes / 2 ** (10 * unit))} ${UNITS[unit] ?? ''}`;
}
