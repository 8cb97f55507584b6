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
  /** What the ratio or the value must reach, where something was promised. */
  readonly goal?: string;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const high = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? high : (high + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** Interleaved blocks of a measurement and its baseline, as medians; the ratio is of the pairs. */
export function figure(
  name: string,
  unit: string,
  pairs: readonly { readonly value: number; readonly baseline: number }[],
  goal?: string,
): Figure {
  return {
    name,
    unit,
    value: median(pairs.map((pair) => pair.value)),
    baseline: median(pairs.map((pair) => pair.baseline)),
    ratio: median(pairs.map((pair) => pair.value / pair.baseline)),
    ...(goal === undefined ? {} : { goal }),
  };
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
    }));
    console.log(JSON.stringify({ bench, machine: machine(), figures: rounded }));
    return;
  }
  console.log(machine());
  const rows = [
    ['figure', 'value', 'baseline', 'unit', 'ratio', 'goal'],
    ...figures.map((one) => [
      one.name,
      String(round(one.value)),
      String(round(one.baseline)),
      one.unit,
      one.ratio.toFixed(3),
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
