/**
 * How frames get from one proxy to the other. A transport is one connection of one path: ordered or
 * not, lossy or not (the link above makes it exact), authenticated, and gone once it has closed.
 */
import type { Nanos } from '#base/units';
import type { Identity } from '#identity/identity';

/** Who is at the other end, as its certificate says. */
export type PeerIdentity = Identity<'host' | 'box'>;

export interface Transport {
  readonly peer: PeerIdentity;
  /**
   * Sends one whole frame: `length` bytes at `offset`. They must not change until the frame has been
   * acknowledged by the peer or the transport has closed. Returns false when the sender should hold
   * further frames until `writable`; the frame itself is taken all the same.
   */
  send(now: Nanos, bytes: Uint8Array, offset: number, length: number): boolean;
  /** There is nothing behind what was sent for now: it need not wait for more to go with it. */
  flush?(): void;
  /** Ends the connection. `closed` is not called for it. */
  close(): void;
}

/** Set by whoever uses the transport, before the first frame can arrive. */
export interface TransportUser {
  /**
   * One whole frame: `length` bytes at `offset`, valid during the call alone. Of a frame whose stated
   * length cannot be, a stream gives the header by itself, which is no frame (`decodeFrame` says so),
   * and closes behind it.
   */
  frame(now: Nanos, bytes: Uint8Array, offset: number, length: number): void;
  /** After the last of the frames that arrived together: the place to flush what they caused. */
  turnEnd(now: Nanos): void;
  writable(now: Nanos): void;
  /** The connection is gone, for `reason`. Called once. */
  closed(now: Nanos, reason: string): void;
}
