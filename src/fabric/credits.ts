/**
 * Flow control per flow class, as cumulative counters (2.6.1): the receiver states up to which TLP
 * and which 16-byte unit of payload it has room; the sender never sends beyond. Counters are 32 bits
 * wide and wrap. Six numbers: TLPs and units of posted, non-posted, completion.
 */
import { assert } from '#base/assert';
import type { FlowClass } from '#pcie/tlp';
import type { CreditWindow } from './link-options.ts';
import { distance } from './sequence.ts';

/** Windows stay far below half the range of the counters. */
export const MAX_WINDOW = 1 << 28;

/** Payload credit units of this many bytes. */
export function creditUnits(payloadBytes: number): number {
  return (payloadBytes + 15) >> 4;
}

export class SendCredits {
  readonly #limits = new Uint32Array(6);
  readonly #used = new Uint32Array(6);

  constructor(limits: Uint32Array) {
    this.#limits.set(limits);
  }

  allows(flow: FlowClass, payloadBytes: number): boolean {
    const index = flow * 2;
    const limits = this.#limits;
    const used = this.#used;
    return (
      (((limits[index] as number) - (used[index] as number)) | 0) >= 1 &&
      (((limits[index + 1] as number) - (used[index + 1] as number)) | 0) >=
        (payloadBytes + 15) >> 4
    );
  }

  /** For how many TLPs of this class and payload (at least one byte) there is credit. */
  covers(flow: FlowClass, payloadBytes: number): number {
    const index = flow * 2;
    const limits = this.#limits;
    const used = this.#used;
    const tlps = ((limits[index] as number) - (used[index] as number)) | 0;
    const units = ((limits[index + 1] as number) - (used[index + 1] as number)) | 0;
    return Math.max(0, Math.min(tlps, Math.floor(units / ((payloadBytes + 15) >> 4))));
  }

  take(flow: FlowClass, payloadBytes: number, count = 1): void {
    const index = flow * 2;
    const used = this.#used;
    used[index] = (used[index] as number) + count;
    used[index + 1] = (used[index + 1] as number) + count * ((payloadBytes + 15) >> 4);
  }

  /**
   * Takes newer limits; older ones (of a frame that was overtaken) change nothing. False if the peer
   * grants more than any receiver can have.
   */
  update(limits: Uint32Array): boolean {
    for (let index = 0; index < 6; index++) {
      const limit = limits[index] as number;
      if (distance(limit, this.#used[index] as number) > MAX_WINDOW) return false;
      if (distance(limit, this.#limits[index] as number) > 0) this.#limits[index] = limit;
    }
    return true;
  }
}

export class ReceiveCredits {
  /** What the peer may send up to; to be stated in every frame. */
  readonly granted = new Uint32Array(6);
  readonly #received = new Uint32Array(6);
  /** TLPs and units delivered and not given back. */
  readonly #kept = new Uint32Array(6);
  readonly #advertised = new Uint32Array(6);
  readonly #half = new Uint32Array(6);

  constructor(windows: readonly CreditWindow[]) {
    windows.forEach((window, flow) => {
      assert(window.tlps >= 1 && window.tlps <= MAX_WINDOW, `window of ${window.tlps} TLPs`);
      assert(
        window.dataUnits >= 1 && window.dataUnits <= MAX_WINDOW,
        `window of ${window.dataUnits} units`,
      );
      this.granted[flow * 2] = window.tlps;
      this.granted[flow * 2 + 1] = window.dataUnits;
      this.#half[flow * 2] = Math.ceil(window.tlps / 2);
      this.#half[flow * 2 + 1] = Math.ceil(window.dataUnits / 2);
    });
    this.#advertised.set(this.granted);
  }

  /** A TLP came. False if there was no credit for it. */
  receive(flow: number, units: number): boolean {
    const index = flow * 2;
    const received = this.#received;
    const tlps = ((received[index] as number) + 1) >>> 0;
    const data = ((received[index + 1] as number) + units) >>> 0;
    received[index] = tlps;
    received[index + 1] = data;
    return (
      ((tlps - (this.#advertised[index] as number)) | 0) <= 0 &&
      ((data - (this.#advertised[index + 1] as number)) | 0) <= 0
    );
  }

  /** The TLP just received is kept: its room comes back by `release`. */
  keep(flow: number, units: number): void {
    const index = flow * 2;
    this.#kept[index] = (this.#kept[index] as number) + 1;
    this.#kept[index + 1] = (this.#kept[index + 1] as number) + units;
  }

  /** Whether `count` TLPs that take `units` each may come: then none of them lacks credit. */
  covers(flow: number, units: number, count: number): boolean {
    const index = flow * 2;
    const tlps = ((this.#received[index] as number) + count) >>> 0;
    const data = ((this.#received[index + 1] as number) + count * units) >>> 0;
    return (
      ((tlps - (this.#advertised[index] as number)) | 0) <= 0 &&
      ((data - (this.#advertised[index + 1] as number)) | 0) <= 0
    );
  }

  /** `count` TLPs that `covers` spoke of have come and are done with. */
  pass(flow: number, units: number, count: number): void {
    const index = flow * 2;
    const received = this.#received;
    received[index] = (received[index] as number) + count;
    received[index + 1] = (received[index + 1] as number) + count * units;
    this.free(flow, count * units, count);
  }

  /** The TLP just received, or `count` of them, are done with. */
  free(flow: number, units: number, count = 1): void {
    const index = flow * 2;
    const granted = this.granted;
    granted[index] = (granted[index] as number) + count;
    granted[index + 1] = (granted[index + 1] as number) + units;
  }

  /** Room of a kept TLP comes back. */
  release(flow: number, units: number): void {
    const index = flow * 2;
    const kept = this.#kept;
    assert(
      (kept[index] as number) >= 1 && (kept[index + 1] as number) >= units,
      'more credit released than kept',
    );
    kept[index] = (kept[index] as number) - 1;
    kept[index + 1] = (kept[index + 1] as number) - units;
    this.free(flow, units);
  }

  /** `granted` has been put into a frame. */
  advertise(): void {
    // As quick as can be: `set` takes longer for six numbers.
    for (let index = 0; index < 6; index++) this.#advertised[index] = this.granted[index] as number;
  }

  /** Whether the peer knows less than is granted by half a window of some kind. */
  get updateDue(): boolean {
    for (let index = 0; index < 6; index++) {
      const news = ((this.granted[index] as number) - (this.#advertised[index] as number)) | 0;
      if (news >= (this.#half[index] as number)) return true;
    }
    return false;
  }
}
