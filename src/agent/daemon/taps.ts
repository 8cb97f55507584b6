/** Lets any number of captures share the one tap of a link; without any, the link has none. */
import { type LinkTap, TapDirection } from '#fabric/link-options';

/**
 * Called for each TLP of a slot, with its time in nanoseconds since 1970 as two words of 32 bits; the
 * bytes are valid during the call.
 */
export type TapListener = (
  timeHi: number,
  timeLo: number,
  up: boolean,
  bytes: Uint8Array,
  offset: number,
  length: number,
) => void;

export interface TapsOptions {
  /** Where what a link sends goes: down on a host, up on a box. */
  readonly outgoing: 'down' | 'up';
  /** Sets the tap of every link, or takes it away; slots are those the caller of `add` names. */
  readonly install: (tap: LinkTap | undefined) => void;
}

const TWO_TO_32 = 0x1_0000_0000;

export class Taps {
  readonly #options: TapsOptions;
  readonly #listeners = new Map<TapListener, number>();
  /** What makes wall-clock time of the monotonic time of an event; in words, for speed. */
  readonly #epochHi: number;
  readonly #epochLo: number;

  constructor(options: TapsOptions) {
    this.#options = options;
    const epochNs = BigInt(Date.now()) * 1_000_000n - BigInt(Math.round(performance.now() * 1e6));
    this.#epochHi = Number(epochNs >> 32n);
    this.#epochLo = Number(epochNs & 0xffff_ffffn);
  }

  /** Calls `listener` for each TLP of `slot` from now on. Returns how to end. */
  add(slot: number, listener: TapListener): () => void {
    this.#listeners.set(listener, slot);
    if (this.#listeners.size === 1) this.#options.install(this.#tap);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#options.install(undefined);
    };
  }

  readonly #tap: LinkTap = (now, direction, slot, bytes, offset, length) => {
    for (const [listener, wanted] of this.#listeners) {
      if (wanted !== slot) continue;
      const lowNs = this.#epochLo + Math.round(now);
      listener(
        this.#epochHi + Math.floor(lowNs / TWO_TO_32),
        lowNs % TWO_TO_32,
        this.#isUp(direction),
        bytes,
        offset,
        length,
      );
    }
  };

  #isUp(direction: TapDirection): boolean {
    return (direction === TapDirection.OUT) === (this.#options.outgoing === 'up');
  }
}
