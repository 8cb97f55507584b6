/** The accepting end of all links of a box: reads HELLO and picks or makes the session. */
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import type { LinkCounters } from './link-counters.ts';
import type { LinkOptions, LinkTap } from './link-options.ts';
import type { LinkUser } from './link-user.ts';
import type { PeerIdentity, Transport, TransportUser } from './transport.ts';

export interface BoxLinksConfig {
  readonly local: PeerIdentity;
  /** Serves all sessions; each call names its link. */
  readonly user: LinkUser;
  /** Something an operator may want to read: a refusal, a second session, a session's end. */
  readonly report?: (now: Nanos, peer: PeerIdentity, message: string) => void;
  readonly options?: Partial<LinkOptions>;
}

export class BoxLinks implements Timed {
  readonly local: PeerIdentity;

  constructor(config: BoxLinksConfig) {
    this.local = config.local;
  }

  /** Called for each TLP passed, both ways, while set. */
  set tap(_tap: LinkTap | undefined) {
    throw new Error('to be written');
  }

  /** Counters by host identity, kept from the first accepted session of that host on. */
  counters(): ReadonlyMap<string, LinkCounters> {
    throw new Error('to be written');
  }

  /** A connection came in; the returned user must be set before its first frame. */
  accept(_now: Nanos, _transport: Transport): TransportUser {
    throw new Error('to be written');
  }

  /** Tells all peers and ends all sessions. New connections are closed. */
  stop(_now: Nanos, _reason: string): void {
    throw new Error('to be written');
  }

  nextDeadlineNs(): number {
    throw new Error('to be written');
  }

  tick(_now: Nanos): void {
    throw new Error('to be written');
  }
}
