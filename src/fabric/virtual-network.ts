/**
 * Transports in virtual time. A path carries connections between a dialling and a listening end.
 *
 * Time of a frame of n bytes in one direction of a path: it waits until the wire of that direction is
 * free, then takes `(n + overheadBytes) × 8 ÷ rate` seconds to go out (nothing if the rate is
 * Infinity), then `rttNs ÷ 2` to arrive. A round trip of a request of a bytes and an answer of b bytes
 * on an idle path is therefore `rttNs + (a + b + 2 × overheadBytes) × 8e9 ÷ rate` ns, exactly.
 * Connecting takes `rttNs`. Frames of all connections of a path share its wires.
 */
import type { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import type { PeerIdentity, Transport, TransportUser } from './transport.ts';

export interface VirtualPathOptions {
  readonly rttNs: number;
  /** Bits per second of each direction; default Infinity. */
  readonly rateToListener?: number;
  readonly rateToDialer?: number;
  /** Added to every frame on the wire: TCP, IP and TLS headers; default 0. */
  readonly overheadBytes?: number;
  /** Probabilities per frame; default 0. */
  readonly loss?: number;
  readonly duplication?: number;
  readonly reordering?: number;
  /** A reordered or duplicated frame comes up to this much later; default rttNs. */
  readonly reorderDelayNs?: number;
  /** What connecting takes to fail while the path is silently cut; default 1 s. */
  readonly connectTimeoutNs?: number;
}

/** `HostLink` is one. */
export interface VirtualDialer {
  readonly local: PeerIdentity;
  connected(now: Nanos, transport: Transport): TransportUser;
  connectFailed(now: Nanos, reason: string): void;
}

/** `BoxLinks` is one. */
export interface VirtualListener {
  readonly local: PeerIdentity;
  accept(now: Nanos, transport: Transport): TransportUser;
}

export class VirtualPath {
  /** Changes what the path does from now on; frames in flight keep their times. */
  setOptions(_options: Partial<VirtualPathOptions>): void {
    throw new Error('to be written');
  }

  /** Answers `dialer` after a round trip. */
  connect(_dialer: VirtualDialer, _listener: VirtualListener | undefined): void {
    throw new Error('to be written');
  }

  /**
   * Loses all frames in flight and refuses connections until `heal`. `reset`: both ends of every
   * connection are told at once. `silent`: nobody is told, frames vanish.
   */
  cut(_mode: 'reset' | 'silent'): void {
    throw new Error('to be written');
  }

  /** After a silent cut, the connections that nobody has closed work again. */
  heal(): void {
    throw new Error('to be written');
  }
}

export class VirtualNetwork {
  constructor(_clock: VirtualClock, _prng: Prng) {}

  addPath(_options: VirtualPathOptions): VirtualPath {
    throw new Error('to be written');
  }

  /**
   * A process dies: its ends of all connections vanish without a call, the other ends see `closed`
   * half a round trip later.
   */
  kill(_local: PeerIdentity): void {
    throw new Error('to be written');
  }
}
