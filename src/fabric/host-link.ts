/** The initiating end of a link. */
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import { LinkCounters } from './link-counters.ts';
import type { LinkOptions, LinkTap } from './link-options.ts';
import type { LinkUser } from './link-user.ts';
import type { PeerIdentity, Transport, TransportUser } from './transport.ts';

export interface HostLinkSink {
  /**
   * Asks for a connection to the peer over path number `pathIndex`. Answered by exactly one call of
   * `connected` or `connectFailed`, during the call or later.
   */
  connect(now: Nanos, pathIndex: number): void;
  /** Something an operator may want to read: a refusal, a lost connection, a session's end. */
  report?(now: Nanos, peer: PeerIdentity, message: string): void;
}

export interface HostLinkConfig {
  readonly local: PeerIdentity;
  readonly peer: PeerIdentity;
  /** Number of paths to the peer; they are tried in turn. */
  readonly paths: number;
  readonly user: LinkUser;
  readonly sink: HostLinkSink;
  /** A safe integer from 1 that never came before. */
  readonly newSessionId: () => number;
  readonly options?: Partial<LinkOptions>;
}

export type HostLinkState = 'stopped' | 'waiting' | 'connecting' | 'handshaking' | 'up';

export class HostLink implements Timed {
  readonly local: PeerIdentity;
  readonly peer: PeerIdentity;
  readonly counters = new LinkCounters();

  constructor(config: HostLinkConfig) {
    this.local = config.local;
    this.peer = config.peer;
  }

  /** State of the connection; a session may live on (`sessionId` not 0) while it is not `up`. */
  get state(): HostLinkState {
    throw new Error('to be written');
  }

  /** Id of the live session, or 0. */
  get sessionId(): number {
    throw new Error('to be written');
  }

  /** The path in use or being tried. */
  get pathIndex(): number {
    throw new Error('to be written');
  }

  /** Called for each TLP passed, both ways, while set. */
  set tap(_tap: LinkTap | undefined) {
    throw new Error('to be written');
  }

  /** Starts connecting. */
  start(_now: Nanos): void {
    throw new Error('to be written');
  }

  /** Tells the peer, ends the session (`linkDown`) and stops connecting. */
  stop(_now: Nanos, _reason: string): void {
    throw new Error('to be written');
  }

  /** A connection asked for is there; the returned user must be set before its first frame. */
  connected(_now: Nanos, _transport: Transport): TransportUser {
    throw new Error('to be written');
  }

  connectFailed(_now: Nanos, _reason: string): void {
    throw new Error('to be written');
  }

  /** Closes the connection in use, as if it had been lost: the session resumes. */
  dropConnection(_now: Nanos, _reason: string): void {
    throw new Error('to be written');
  }

  nextDeadlineNs(): number {
    throw new Error('to be written');
  }

  tick(_now: Nanos): void {
    throw new Error('to be written');
  }
}
