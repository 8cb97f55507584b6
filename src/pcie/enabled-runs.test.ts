import { expect, it } from 'vitest';
import { enabledRuns } from './enabled-runs.ts';
import { setMemoryRead } from './split.ts';
import { Tlp } from './tlp.ts';

function request(lengthDw: number, firstBe: number, lastBe: number): Tlp {
  const tlp = new Tlp();
  setMemoryRead(tlp, 0x1000, 4 * lengthDw, 0, 0);
  tlp.firstBe = firstBe;
  tlp.lastBe = lastBe;
  return tlp;
}

it.each([
  // PCIe 5.0 base, 2.2.5: bit n of first and last enables byte n of its double word.
  { lengthDw: 1, firstBe: 0b0000, lastBe: 0, runs: [] },
  { lengthDw: 1, firstBe: 0b0110, lastBe: 0, runs: [[1, 3]] },
  {
    lengthDw: 1,
    firstBe: 0b1101,
    lastBe: 0,
    runs: [
      [0, 1],
      [2, 4],
    ],
  },
  {
    lengthDw: 2,
    firstBe: 0b0101,
    lastBe: 0b0010,
    runs: [
      [0, 1],
      [2, 3],
      [5, 6],
    ],
  },
  { lengthDw: 2, firstBe: 0b1000, lastBe: 0b0001, runs: [[3, 5]] },
  { lengthDw: 1024, firstBe: 0b1100, lastBe: 0b0111, runs: [[2, 4095]] },
])(
  'finds the runs of $lengthDw DW, $firstBe and $lastBe',
  ({ lengthDw, firstBe, lastBe, runs }) => {
    const found = enabledRuns(request(lengthDw, firstBe, lastBe));
    expect(found.map(({ from, to }) => [from, to])).toEqual(runs);
  },
);
