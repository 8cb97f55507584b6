/**
 * A seeded generator (xoshiro128**, Blackman and Vigna, public domain algorithm): the same seed
 * gives the same sequence on every machine. Not for secrets.
 */
import { assert } from './assert.ts';

export class Prng {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  /** `seed` is any safe integer; its low 53 bits count. */
  constructor(seed: number) {
    assert(Number.isSafeInteger(seed), `not a seed: ${seed}`);
    let state = (seed % 0x1_0000_0000) ^ Math.floor(seed / 0x1_0000_0000);
    const splitmix = (): number => {
      state = (state + 0x9e3779b9) | 0;
      let z = state;
      z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
      z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
      return (z ^ (z >>> 15)) >>> 0;
    };
    this.#a = splitmix();
    this.#b = splitmix();
    this.#c = splitmix();
    this.#d = splitmix() | 1;
  }

  /** An integer in [0, 2^32). */
  uint32(): number {
    const s1 = this.#b;
    const product = Math.imul(s1, 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
    const t = s1 << 9;
    this.#c ^= this.#a;
    this.#d ^= s1;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= t;
    this.#d = (this.#d << 11) | (this.#d >>> 21);
    return result;
  }

  /** A double in [0, 1) with 53 random bits. */
  float(): number {
    return ((this.uint32() >>> 5) * 0x4000000 + (this.uint32() >>> 6)) / 0x20000000000000;
  }

  /** An integer in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.float() * bound);
  }

  /** An integer in [low, high], both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  chance(probability: number): boolean {
    return this.float() < probability;
  }

  pick<T>(items: readonly T[]): T {
    assert(items.length > 0, 'cannot pick from an empty list');
    return items[this.below(items.length)] as T;
  }

  /** An independent generator, for a part that must not disturb the others' sequences. */
  fork(): Prng {
    return new Prng(this.uint32() * 0x100000 + (this.uint32() >>> 12));
  }
}
