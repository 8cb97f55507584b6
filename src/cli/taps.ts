/** Lets any number of captures share the one tap of a link; without any, the link has none. */
import type { Nanos } from '#base/units';
import { type LinkTap, TapDirection } from '#fabric/link-options';
import type { CapturedTlp } from './pcapng.ts';

type Listener = (captured: CapturedTlp) => void;

export interface TapsOptions {
  /** Where what a link sends goes: down on a host, up on a box. */
  readonly outgoing: 'down' | 'up';
  /** Sets the tap of every link, or takes it away; slots are those the caller of `add` names. */
  readonly install: (tap: LinkTap | undefined) => void;
}

export class Taps {
  readonly #options: TapsOptions;
  readonly #listeners = new Map<Listener, number>();
  /** What makes wall-clock time of the monotonic time of an event. */
  readonly #epochNs = BigInt(Date.now()) * 1_000_000n - BigInt(Math.round(performance.now() * 1e6));

  constructor(options: TapsOptions) {
    this.#options = options;
  }

  /** Calls `listener` for each TLP of `slot` from now on, with bytes of its own. Returns how to end. */
  add(slot: number, listener: Listener): () => void {
    this.#listeners.set(listener, slot);
    if (this.#listeners.size === 1) this.#options.install(this.#tap);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#options.install(undefined);
    };
  }

  readonly #tap: LinkTap = (now, direction, slot, bytes, offset, length) => {
    let captured: CapturedTlp | undefined;
    for (const [listener, wanted] of this.#listeners) {
      if (wanted !== slot) continue;
      captured ??= {
        timeNs: this.#time(now),
        slot,
        direction: this.#directionOf(direction),
        tlp: bytes.slice(offset, offset + length),
      };
      listener(captured);
    }
  };

  #directionOf(direction: TapDirection): 'down' | 'up' {
    const { outgoing } = this.#options;
    if (direction === TapDirection.OUT) return outgoing;
    return outgoing === 'down' ? 'up' : 'down';
  }

  #time(now: Nanos): bigint {
    return this.#epochNs + BigInt(Math.round(now));
  }
}
