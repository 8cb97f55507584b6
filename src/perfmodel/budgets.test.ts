import { describe, expect, it } from 'vitest';
import type { ConvexFunction } from './budgets.ts';
import { largestWithin } from './budgets.ts';

/** The largest of some lines, as an intercept and a slope each. */
function lines(
  ...pieces: readonly (readonly [number, number])[]
): ConvexFunction & { asked: number } {
  const f = Object.assign(
    (at: number) => {
      f.asked += 1;
      return pieces
        .map(([start, slope]) => ({ value: start + slope * at, slope }))
        .reduce((best, piece) => (piece.value > best.value ? piece : best));
    },
    { asked: 0 },
  );
  return f;
}

describe('largestWithin', () => {
  it('is exact, in as many steps as there are pieces', () => {
    // Flat to 100, then slope 1 from there, then slope 10 from 200 on.
    const f = lines([1000, 0], [900, 1], [-900, 10]);
    expect(largestWithin(f, 1050)).toEqual({ addedRttNs: 150 });
    expect(f.asked).toBeLessThanOrEqual(5);
    expect(largestWithin(f, 1200)).toEqual({ addedRttNs: 210 });
    // At the end of the flat piece.
    expect(largestWithin(f, 1000)).toEqual({ addedRttNs: 100 });
  });

  it('goes on from the answer to a larger limit', () => {
    const f = lines([1000, 0], [900, 1]);
    expect(largestWithin(f, 1050, 300)).toEqual({ addedRttNs: 150 });
  });

  it('says when there is none, and when there is no end', () => {
    expect(largestWithin(lines([1000, 1]), 999)).toEqual({ reason: 'unreachable' });
    expect(largestWithin(lines([1000, 0]), 1010)).toEqual({ reason: 'unlimited' });
    expect(largestWithin(lines([1000, 0], [999, 1e-9]), 1010)).toEqual({ reason: 'unlimited' });
  });

  it('takes a function that is not what it should be, without hanging', () => {
    let calls = 0;
    const odd: ConvexFunction = () => {
      calls += 1;
      return { value: calls === 1 ? 0 : 10 + (calls % 2), slope: 1e-6 };
    };
    expect(() => largestWithin(odd, 5)).not.toThrow();
    expect(calls).toBeLessThan(1000);
  });
});
