/** What a receiver of a fault world holds back, in order of arrival, as if its buffers were full. */
import { assert } from '#base/assert';
import { RingBuffer } from '#base/ring-buffer';
import type { ArrivedTlp, SlotState } from '#fabric/link-user';
import { FlowClass } from '#pcie/tlp';

/**
 * - `non-posted`: no room for non-posted requests; the rest must keep flowing (invariant 7).
 * - `posted`: no room for posted requests, so nothing may be handed over that came after one;
 *   completions do find room.
 */
export type HoldMode = 'nothing' | 'non-posted' | 'posted';

interface HeldTlp {
  readonly flow: FlowClass | undefined;
  readonly slot: number;
  readonly generation: number;
  readonly bytes: Uint8Array;
  readonly payloadBytes: number;
  /** The link has been told that there is room again. */
  readonly creditGiven: boolean;
  readonly state: SlotState;
}

const NO_BYTES = new Uint8Array(0);
const WITH_DATA = 0x40;

export class HeldTlps {
  mode: HoldMode = 'nothing';
  readonly #queue = new RingBuffer<HeldTlp>();
  readonly #counts: [number, number, number] = [0, 0, 0];

  get size(): number {
    return this.#queue.size;
  }

  /** How many of a class are held whose room the sender does not have again. */
  withoutCredit(flow: FlowClass): number {
    return this.#counts[flow];
  }

  holds(flow: FlowClass): boolean {
    switch (this.mode) {
      case 'posted':
        return true;
      case 'non-posted':
        return flow === FlowClass.NON_POSTED;
      default:
        return false;
    }
  }

  /** Returns what `linkTlp` returns: whether its credit is free again. */
  push(flow: FlowClass, arrived: ArrivedTlp): boolean {
    const { slot, generation, bytes, offset, length } = arrived;
    const lengthDw = ((bytes[offset + 2] as number) & 3) * 256 + (bytes[offset + 3] as number);
    const withData = ((bytes[offset] as number) & WITH_DATA) !== 0;
    const creditGiven = flow === FlowClass.COMPLETION;
    if (!creditGiven) this.#counts[flow]++;
    this.#queue.push({
      flow,
      slot,
      generation,
      bytes: bytes.slice(offset, offset + length),
      payloadBytes: withData ? (lengthDw === 0 ? 4096 : lengthDw * 4) : 0,
      creditGiven,
      state: 1,
    });
    return creditGiven;
  }

  pushState(slot: number, generation: number, state: SlotState): void {
    assert(this.#queue.size > 0, 'a state waits for TLPs alone');
    const nothing = { bytes: NO_BYTES, payloadBytes: 0, creditGiven: true };
    this.#queue.push({ flow: undefined, slot, generation, state, ...nothing });
  }

  shift(): HeldTlp | undefined {
    const held = this.#queue.shift();
    if (held?.flow !== undefined && !held.creditGiven) this.#counts[held.flow]--;
    return held;
  }
}
