/** A link that goes nowhere: keeps what a proxy sends, and says how much it still takes. */
import type { Nanos } from '#base/units';
import type { LinkPort, SlotState } from '#fabric/link-user';
import type { PeerIdentity } from '#fabric/transport';
import { type FlowClass, flowClassOf, Tlp } from '#pcie/tlp';
import { decodeTlp, encodedTlpBytes, encodeTlp, TlpDecode } from '#pcie/tlp-codec';

export interface SentEntry {
  readonly slot: number;
  readonly generation: number;
  readonly tlp: Tlp;
  readonly bytes: Uint8Array;
}

export interface SentState {
  readonly slot: number;
  readonly generation: number;
  readonly state: SlotState;
}

export class FakeLink implements LinkPort {
  readonly peer: PeerIdentity;
  /** TLPs sent, oldest first. A test takes them out with `take`. */
  sent: SentEntry[] = [];
  states: SentState[] = [];
  released: { readonly flow: FlowClass; readonly payloadBytes: number }[] = [];
  /** How many more TLPs of each class are taken. */
  readonly room: [number, number, number] = [Infinity, Infinity, Infinity];
  /** `canSend` has said no since the last look. */
  refused = false;
  up = true;
  attached = true;

  constructor(kind: 'host' | 'box', id: string) {
    this.peer = { kind, id };
  }

  canSend(flow: FlowClass): boolean {
    const can = this.room[flow] > 0;
    if (!can) this.refused = true;
    return can;
  }

  sendTlp(_now: Nanos, slot: number, generation: number, tlp: Tlp): void {
    if (!this.up) throw new Error('a TLP was sent on a session that is over');
    this.room[flowClassOf(tlp.kind)]--;
    const bytes = new Uint8Array(encodedTlpBytes(tlp));
    encodeTlp(tlp, bytes, 0);
    this.sent.push({ slot, generation, tlp: decoded(bytes), bytes });
  }

  /** Each by itself. */
  sendRun(): number {
    return 0;
  }

  sendSlotState(_now: Nanos, slot: number, generation: number, state: SlotState): void {
    if (!this.up) throw new Error('a slot state was sent on a session that is over');
    this.states.push({ slot, generation, state });
  }

  flush(): void {}

  release(_now: Nanos, flow: FlowClass, payloadBytes: number): void {
    if (!this.up) throw new Error('credit was released on a session that is over');
    this.released.push({ flow, payloadBytes });
  }

  /** What has been sent since the last call. */
  take(): SentEntry[] {
    const { sent } = this;
    this.sent = [];
    return sent;
  }

  takeStates(): SentState[] {
    const { states } = this;
    this.states = [];
    return states;
  }
}

/** The encoded bytes of a record. */
export function encoded(tlp: Tlp): Uint8Array {
  const bytes = new Uint8Array(encodedTlpBytes(tlp));
  encodeTlp(tlp, bytes, 0);
  return bytes;
}

/** A record of its own, payload included, from encoded bytes, which must be valid. */
export function decoded(bytes: Uint8Array): Tlp {
  const tlp = new Tlp();
  const result = decodeTlp(bytes, 0, bytes.length, tlp);
  if (result !== TlpDecode.OK) throw new Error(`cannot be decoded: ${result}`);
  return tlp;
}
