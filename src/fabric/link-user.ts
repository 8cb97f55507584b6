/**
 * What a proxy and its link say to each other. `Session` (session.ts) implements `LinkPort`; the proxies
 * implement `LinkUser`.
 */
import type { Nanos } from '#base/units';
import type { FlowClass, Tlp } from '#pcie/tlp';
import type { PeerIdentity } from './transport.ts';

/** State of one box slot for one generation, sent by the box proxy in order with the TLPs. */
export const SlotState = {
  /** The row is valid and the device answers: the host may hot-plug. */
  READY: 1,
  /** The row is gone or contained: nothing more comes of this generation. */
  GONE: 2,
} as const;
export type SlotState = (typeof SlotState)[keyof typeof SlotState];

/** A TLP as it arrived: `length` bytes at `offset`, still encoded. Good during the call alone. */
export interface ArrivedTlp {
  readonly slot: number;
  readonly generation: number;
  readonly bytes: Uint8Array;
  readonly offset: number;
  readonly length: number;
}

/** `count` of them one behind the other, `stride` bytes from each to the next; the first is as above. */
export interface ArrivedRun extends ArrivedTlp {
  readonly stride: number;
  readonly count: number;
}

export interface LinkPort {
  readonly peer: PeerIdentity;
  /**
   * False while the session has lost its connection and may yet end without another. `linkResume`
   * tells when it has one again.
   */
  readonly attached: boolean;
  /** Whether the egress queue has room for one more TLP of this class and payload. */
  canSend(flow: FlowClass, payloadBytes: number): boolean;
  /**
   * Queues a TLP; encoded before the call returns. It leaves when `flush` is called or a frame is
   * full, as credits and the ordering table allow. Only while the session is up.
   */
  sendTlp(now: Nanos, slot: number, generation: number, tlp: Tlp): void;
  /**
   * Puts a run (pcie/tlp-run.ts) into frames: `first`, and up to `count` − 1 more. Only after `canSend`.
   * Returns how many it took, as many as one frame, the credits and the buffers have room for; 0 when
   * the first has to be queued. Calls nothing back.
   */
  sendRun(now: Nanos, slot: number, generation: number, first: Tlp, count: number): number;
  /** Queues a slot state behind everything queued so far. TLPs queued later may overtake it. */
  sendSlotState(now: Nanos, slot: number, generation: number, state: SlotState): void;
  /** Sends what is queued, in as few frames as hold it. */
  flush(now: Nanos): void;
  /** Gives back the buffers of one TLP that `linkTlp` kept by returning false. */
  release(now: Nanos, flow: FlowClass, payloadBytes: number): void;
}

export interface LinkUser {
  /** A new session is up; nothing of an earlier one will be delivered any more. */
  linkUp(now: Nanos, link: LinkPort): void;
  /**
   * One TLP, in order and exactly once in this session, not yet looked at. Returns true when it is done
   * with, false when it keeps the credit (it must copy what it needs) and will call `release`.
   */
  linkTlp(now: Nanos, link: LinkPort, arrived: ArrivedTlp): boolean;
  /**
   * TLPs that are a run (pcie/tlp-run.ts), but for their validity, which nobody has looked at. Of
   * completions none is the last of its request. Returns true when all are done with, as `linkTlp` would
   * have done them; false when nothing has happened and they are to come to it one by one. Calls nothing
   * of the link.
   */
  linkRun(now: Nanos, link: LinkPort, run: ArrivedRun): boolean;
  linkSlotState(
    now: Nanos,
    link: LinkPort,
    slot: number,
    generation: number,
    state: SlotState,
  ): void;
  /** `canSend` or `attached` may have become true again. */
  linkResume(now: Nanos, link: LinkPort): void;
  /** The session is over: what was unacknowledged is lost, and nothing can be sent. */
  linkDown(now: Nanos, link: LinkPort, reason: string): void;
}
