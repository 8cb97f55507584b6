/**
 * Which named ranges of a host thread are iterations, where a format has ranges but no word for
 * iterations. Only the obvious: names such as "iteration 12", "step_3", "train step", again and again on
 * one thread, one after another.
 */
import type { Iteration } from './timeline.ts';

const NAME =
  /^(?:(?:profiler|train(?:ing)?|eval(?:uation)?|validation|test|inference|decode|prefill|global|mini|micro)?[ _-]?(?:step|iteration|iter|batch))[\s_:#=-]*(\d{1,12})?$/i;
const MAX_RANGES = 100_000;
const MAX_NAME = 64;

interface Range {
  readonly number: number | undefined;
  readonly startNs: number;
  readonly endNs: number;
}

interface Family {
  readonly name: string;
  readonly ranges: Range[];
}

export class IterationRanges {
  readonly #families = new Map<string, Family>();
  #count = 0;

  /** Keeps the range if its name may mark an iteration. `thread` is any name of the thread. */
  add(thread: string, name: string, startNs: number, endNs: number): void {
    if (name.length > MAX_NAME || this.#count >= MAX_RANGES || !(endNs > startNs)) return;
    const match = NAME.exec(name.trim());
    if (match === null) return;
    const digits = match[1];
    const stem = name.trim().slice(0, digits === undefined ? undefined : -digits.length);
    const key = `${thread}\n${stem.toLowerCase()}`;
    let family = this.#families.get(key);
    if (family === undefined) {
      family = { name: stem, ranges: [] };
      this.#families.set(key, family);
    }
    const number = digits === undefined ? undefined : Number(digits);
    family.ranges.push({ number, startNs, endNs });
    this.#count += 1;
  }

  /** Of the families that qualify, the one that covers the most time; none where none does. */
  iterations(): Iteration[] {
    let best: Iteration[] = [];
    let bestNs = 0;
    for (const family of this.#families.values()) {
      const found = inSequence(family);
      const coveredNs = found.reduce((sum, { startNs, endNs }) => sum + endNs - startNs, 0);
      if (coveredNs > bestNs) [best, bestNs] = [found, coveredNs];
    }
    return best;
  }
}

/** The family's ranges in order of time; none if fewer than two, if they overlap, or if numbers fall. */
function inSequence({ name, ranges }: Family): Iteration[] {
  const sorted = ranges.toSorted((a, b) => a.startNs - b.startNs);
  for (const [index, range] of sorted.entries()) {
    const before = sorted[index - 1];
    if (before === undefined) continue;
    if (range.startNs < before.endNs) return [];
    if ((range.number === undefined) !== (before.number === undefined)) return [];
    if ((range.number ?? 1) <= (before.number ?? 0)) return [];
  }
  return sorted.length < 2
    ? []
    : sorted.map(({ number, startNs, endNs }, index) => ({
        label: number === undefined ? `${name} #${index + 1}` : `${name}${number}`,
        startNs,
        endNs,
      }));
}
