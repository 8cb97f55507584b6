/** Figures, how they are printed, and how blocks of measurements become one. */
import * as os from 'node:os';

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The raw figure measured in the same run, in the same unit. */
  readonly baseline: number;
  /** value ÷ baseline. */
  readonly ratio: number;
  /** CPU time of all processes per byte or operation, in ns, where it was measured. */
  readonly cpuNs?: number;
  readonly baselineCpuNs?: number;
  /** What the ratio or the value must reach, where something was promised. */
  readonly goal?: string;
}

/** One block of a measurement and the block of its baseline that followed it. */
export interface Pair {
  readonly value: number;
  readonly baseline: number;
  /** CPU time per byte or operation, in ns. */
  readonly cpu?: { readonly value: number; readonly baseline: number };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const high = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? high : (high + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** Interleaved blocks of a measurement and its baseline, as medians; the ratio is of the pairs. */
export function figure(name: string, unit: string, pairs: readonly Pair[], goal?: string): Figure {
  const cpu = pairs.map((pair) => pair.cpu).filter((one) => one !== undefined);
  return {
    name,
    unit,
    value: median(pairs.map((pair) => pair.value)),
    baseline: median(pairs.map((pair) => pair.baseline)),
    ratio: median(pairs.map((pair) => pair.value / pair.baseline)),
    ...(cpu.length === 0
      ? {}
      : {
          cpuNs: median(cpu.map((one) => one.value)),
          baselineCpuNs: median(cpu.map((one) => one.baseline)),
        }),
    ...(goal === undefined ? {} : { goal }),
  };
}

/** Of what was promised, and whether it is so. */
export function atMost(what: string, is: number, limit: number): string {
  return `${what} ≤ ${limit}: ${is <= limit ? 'holds' : 'missed'}`;
}

export function atLeast(what: string, is: number, limit: number): string {
  return `${what} ≥ ${limit}: ${is >= limit ? 'holds' : 'missed'}`;
}

/** What the measured adds to its baseline: the difference of the medians, against the median of `others`, in ns. */
export function addedFigure(
  name: string,
  pairs: readonly Pair[],
  others: readonly number[],
  limit?: number,
): Figure {
  const value =
    median(pairs.map((pair) => pair.value)) - median(pairs.map((pair) => pair.baseline));
  const baseline = median(others);
  const ratio = value / baseline;
  const goal = limit === undefined ? {} : { goal: atMost('ratio', ratio, limit) };
  return { name, unit: 'ns', value, baseline, ratio, ...goal };
}

export function machine(): string {
  const cpus = os.cpus();
  return `${cpus.length} × ${cpus[0]?.model ?? 'unknown'}, Node ${process.version}, ${os.type()} ${os.release()}`;
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}

/** A table for people, or one JSON object as the last line. */
export function printFigures(bench: string, figures: readonly Figure[], json: boolean): void {
  if (json) {
    const rounded = figures.map((one) => ({
      ...one,
      value: round(one.value),
      baseline: round(one.baseline),
      ratio: round(one.ratio),
      ...(one.cpuNs === undefined ? {} : { cpuNs: round(one.cpuNs) }),
      ...(one.baselineCpuNs === undefined ? {} : { baselineCpuNs: round(one.baselineCpuNs) }),
    }));
    console.log(JSON.stringify({ bench, machine: machine(), figures: rounded }));
    return;
  }
  console.log(machine());
  const rows = [
    ['figure', 'value', 'baseline', 'unit', 'ratio', 'CPU ns', 'of baseline', 'goal'],
    ...figures.map((one) => [
      one.name,
      String(round(one.value)),
      String(round(one.baseline)),
      one.unit,
      one.ratio.toFixed(3),
      one.cpuNs === undefined ? '' : String(round(one.cpuNs)),
      one.baselineCpuNs === undefined ? '' : String(round(one.baselineCpuNs)),
      one.goal ?? '',
    ]),
  ];
  const widths = rows[0]?.map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  for (const row of rows) {
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths?.[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  }
}
