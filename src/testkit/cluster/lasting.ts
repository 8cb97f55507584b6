/** Things that go wrong for a while: each ends by itself, or when all is to be well again. */
import type { Prng } from '#base/prng';
import { nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import type { ClusterOracle } from './cluster-oracle.ts';

const SHORTEST_NS = 1e6;

export class Lasting {
  readonly #clock: VirtualClock;
  readonly #oracle: ClusterOracle;
  readonly #ends = new Map<string, () => void>();

  constructor(clock: VirtualClock, oracle: ClusterOracle) {
    this.#clock = clock;
    this.#oracle = oracle;
  }

  /** `undo` is called after so long. What is wrong already under this name ends first. */
  begin(what: string, forNs: number, undo: () => void): void {
    this.#ends.get(what)?.();
    const end = (): void => {
      if (this.#ends.get(what) !== end) return;
      this.#ends.delete(what);
      this.#oracle.event(`end of: ${what}`);
      undo();
    };
    this.#ends.set(what, end);
    this.#clock.at(nanos(this.#clock.now() + forNs), end);
  }

  endAll(): void {
    for (const end of this.#ends.values()) end();
  }
}

/** Short ones as well as long ones. */
export function drawDuration(prng: Prng, longestNs: number): number {
  if (prng.chance(0.5)) return longestNs * prng.float();
  return SHORTEST_NS * (longestNs / SHORTEST_NS) ** prng.float();
}
