import { describe, expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { AssertionError } from './assert.ts';
import { Prng } from './prng.ts';

const MASK = 0xffff_ffffn;
const rotl = (value: bigint, bits: bigint): bigint =>
  ((value << bits) | (value >> (32n - bits))) & MASK;

/** xoshiro128** in whole numbers, from the published algorithm, seeded as `Prng` says. */
function* reference(seed: number): Generator<number> {
  let counter = BigInt.asUintN(32, (BigInt(seed) & MASK) ^ (BigInt(seed) >> 32n));
  const splitmix = (): bigint => {
    counter = (counter + 0x9e37_79b9n) & MASK;
    let z = counter;
    z = ((z ^ (z >> 16n)) * 0x21f0_aaadn) & MASK;
    z = ((z ^ (z >> 15n)) * 0x735a_2d97n) & MASK;
    return z ^ (z >> 15n);
  };
  const s = [splitmix(), splitmix(), splitmix(), splitmix() | 1n] as [
    bigint,
    bigint,
    bigint,
    bigint,
  ];
  for (;;) {
    yield Number((rotl((s[1] * 5n) & MASK, 7n) * 9n) & MASK);
    const t = (s[1] << 9n) & MASK;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 11n);
  }
}

describe('Prng', () => {
  it('is xoshiro128** for any seed', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), (seed) => {
        const prng = new Prng(seed);
        const expected = reference(seed);
        for (let n = 0; n < 50; n++) expect(prng.uint32()).toBe(expected.next().value);
      }),
      { numRuns: 50 },
    );
  });

  it('stays inside its ranges and reaches both ends', () => {
    const prng = new Prng(1);
    const seen = new Set<number>();
    for (let n = 0; n < 2000; n++) {
      const float = prng.float();
      expect(float >= 0 && float < 1).toBe(true);
      seen.add(prng.between(-3, 3));
      expect(prng.below(5)).toBeLessThan(5);
    }
    expect([...seen].sort((a, b) => a - b)).toEqual([-3, -2, -1, 0, 1, 2, 3]);
  });

  it('spreads evenly: 16 bins of 160,000 draws within 5 standard deviations', () => {
    const prng = new Prng(42);
    const bins = new Array<number>(16).fill(0);
    for (let n = 0; n < 160_000; n++) bins[prng.below(16)]! += 1;
    // Binomial: mean 10,000, deviation √(160,000 × 1/16 × 15/16) = 96.8.
    for (const count of bins) expect(Math.abs(count - 10_000)).toBeLessThan(5 * 96.8);
  });

  it('draws a chance as often as it says', () => {
    const prng = new Prng(7);
    let hits = 0;
    for (let n = 0; n < 10_000; n++) if (prng.chance(0.1)) hits++;
    // Mean 1000, deviation √(10,000 × 0.09) = 30.
    expect(Math.abs(hits - 1000)).toBeLessThan(150);
    expect(prng.chance(0)).toBe(false);
    expect(prng.chance(1)).toBe(true);
  });

  it('forks into a sequence that does not disturb the parent', () => {
    const drawn = (fromFork: number): number => {
      const parent = new Prng(9);
      const fork = parent.fork();
      for (let n = 0; n < fromFork; n++) fork.uint32();
      return parent.uint32();
    };
    expect(drawn(0)).toBe(drawn(10));
  });

  it('picks from a list, asserts on an empty one and on what is no seed', () => {
    expect(['a', 'b']).toContain(new Prng(3).pick(['a', 'b']));
    expect(() => new Prng(3).pick([])).toThrow(AssertionError);
    expect(() => new Prng(0.5)).toThrow(AssertionError);
  });
});
