/** Which part fails next, and when. */
import type { Prng } from '#base/prng';
import type { Unit, Units } from './design.ts';

/** Mean times in hours; Infinity for what never fails. Times between failures are exponential. */
export interface FailureRates {
  readonly gpuMtbfH: number;
  /** Of a server, and of a host of a pool. */
  readonly serverMtbfH: number;
  /** Of a box of a pool. */
  readonly boxMtbfH: number;
  /** Exponential too. */
  readonly repairH: number;
}

export const NO_FAILURES: FailureRates = {
  gpuMtbfH: Infinity,
  serverMtbfH: Infinity,
  boxMtbfH: Infinity,
  repairH: 0,
};

const HOUR_MS = 3_600_000;

/** All parts together as one stream: a part that is down already may be hit again. */
export class FailureStream {
  readonly #prng: Prng;
  readonly #units: Units;
  readonly #repairMs: number;
  /** Failures a millisecond. */
  readonly #gpus: number;
  readonly #servers: number;
  readonly #total: number;

  constructor(units: Units, rates: FailureRates, prng: Prng) {
    this.#prng = prng;
    this.#units = units;
    this.#repairMs = rates.repairH * HOUR_MS;
    this.#gpus = units.gpus.length / (rates.gpuMtbfH * HOUR_MS);
    this.#servers = units.servers / (rates.serverMtbfH * HOUR_MS);
    this.#total = this.#gpus + this.#servers + units.boxes / (rates.boxMtbfH * HOUR_MS);
  }

  /** When the next one is, after `nowMs`; Infinity if nothing fails. */
  next(nowMs: number): number {
    return this.#total === 0 ? Infinity : nowMs + this.#exponential(1 / this.#total);
  }

  unit(): Unit {
    const at = this.#prng.float() * this.#total;
    if (at < this.#gpus) return { kind: 'gpu', index: this.#prng.pick(this.#units.gpus) };
    if (at < this.#gpus + this.#servers) {
      return { kind: 'server', index: this.#prng.below(this.#units.servers) };
    }
    return { kind: 'box', index: this.#prng.below(this.#units.boxes) };
  }

  repairMs(): number {
    return this.#exponential(this.#repairMs);
  }

  #exponential(mean: number): number {
    return -Math.log(1 - this.#prng.float()) * mean;
  }
}
