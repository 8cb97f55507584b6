/**
 * The accepting end of all links of a box: reads HELLO and picks or makes the session.
 *
 * A host has at most one session. HELLO of
 *   - a new session while there is none: a session begins;
 *   - a new session while the old one is resuming: the old one ends, the new one begins;
 *   - a new session while the old one has a live connection: refused and reported;
 *   - the session there is: it goes on over the new connection, whatever became of the old one;
 *   - an unknown session to be resumed: refused; the host then begins a new one.
 */
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import { identityName, sameIdentity } from '#identity/identity';
import { Connection, type ConnectionOwner } from './connection.ts';
import { EndCode, type Frame, FrameType, helloFrame } from './frame.ts';
import { type Hello, PROTOCOL_VERSION } from './hello.ts';
import { LinkCounters } from './link-counters.ts';
import { checkLinkOptions, type LinkOptions, type LinkTap } from './link-options.ts';
import type { LinkUser } from './link-user.ts';
import { Session, type SessionOwner } from './session.ts';
import type { PeerIdentity, Transport, TransportUser } from './transport.ts';

export interface BoxLinksConfig {
  readonly local: PeerIdentity;
  /** Serves all sessions; each call names its link. */
  readonly user: LinkUser;
  /**
   * Something an operator may want to read: a refusal, a second session, a session's end. With the
   * connection it is about, where it is about one alone.
   */
  readonly report?: (
    now: Nanos,
    peer: PeerIdentity,
    message: string,
    transport?: Transport,
  ) => void;
  readonly options?: Partial<LinkOptions>;
}

/** Connections of one peer whose HELLO has not come; a host needs one at a time. */
const MAX_PENDING = 8;

/** A host that has had a session. */
interface Known {
  readonly counters: LinkCounters;
  session: Session | undefined;
}

export class BoxLinks implements Timed {
  readonly local: PeerIdentity;
  readonly #config: BoxLinksConfig;
  readonly #options: LinkOptions;
  readonly #connectionOwner: ConnectionOwner;
  readonly #sessionOwner: SessionOwner;
  readonly #hosts = new Map<string, Known>();
  /** Those of all hosts, in the same order: gone through at each turn. */
  #sessions: readonly Session[] = [];
  /** Connections whose HELLO has not come. */
  readonly #pending = new Set<Connection>();
  /** Peers that were refused for too many of those, until they have none: each is reported once. */
  readonly #crowding = new Set<string>();
  #tap: LinkTap | undefined;
  #stopped = false;

  constructor(config: BoxLinksConfig) {
    this.local = config.local;
    this.#config = config;
    this.#options = checkLinkOptions(config.options);
    this.#connectionOwner = {
      handshakeFrame: (now, connection, frame) => this.#handshakeFrame(now, connection, frame),
      earlyFrame: (now, connection) => this.#broken(now, connection, 'sent data before HELLO'),
      nonsense: (now, connection, reason) => this.#broken(now, connection, reason),
      connectionClosed: (now, connection, reason) => {
        if (!this.#noLongerPending(connection)) return;
        const { transport } = connection;
        this.#report(now, transport.peer, `connection closed before HELLO: ${reason}`, transport);
      },
    };
    this.#sessionOwner = {
      sessionDetached: (now, session, reason) =>
        this.#report(now, session.peer, `connection lost, resuming: ${reason}`),
      sessionEnded: (now, session, reason) => {
        const known = this.#hosts.get(session.peer.id);
        if (known?.session === session) this.#setSession(known, undefined);
        this.#report(now, session.peer, `session ended: ${reason}`);
      },
    };
  }

  /** Called for each TLP passed, both ways, while set. */
  set tap(tap: LinkTap | undefined) {
    this.#tap = tap;
    for (const session of this.#sessions) session.tap = tap;
  }

  /** Counters by host identity, kept from the first accepted session of that host on. */
  counters(): ReadonlyMap<string, LinkCounters> {
    return new Map([...this.#hosts].map(([host, known]) => [host, known.counters]));
  }

  /** Id of the live session of a host, or 0. */
  sessionId(host: string): number {
    return this.#hosts.get(host)?.session?.id ?? 0;
  }

  /** A connection came in; the returned user must be set before its first frame. */
  accept(now: Nanos, transport: Transport): TransportUser {
    const connection = new Connection(now, transport, this.#connectionOwner);
    if (this.#stopped) connection.close();
    else if (this.#pendingOf(transport.peer) >= MAX_PENDING) this.#tooMany(now, connection);
    else this.#pending.add(connection);
    return connection;
  }

  /** Tells all peers and ends all sessions. New connections are closed. */
  stop(now: Nanos, reason: string): void {
    this.#stopped = true;
    for (const connection of this.#pending) connection.close();
    this.#pending.clear();
    for (const session of this.#sessions) session.end(now, reason, EndCode.STOPPED);
  }

  nextDeadlineNs(): number {
    let nextNs = Infinity;
    for (const session of this.#sessions) {
      nextNs = Math.min(nextNs, session.nextDeadlineNs());
    }
    for (const { openedAtNs } of this.#pending) {
      nextNs = Math.min(nextNs, openedAtNs + this.#options.handshakeTimeoutNs);
    }
    return nextNs;
  }

  tick(now: Nanos): void {
    for (const session of this.#sessions) session.tick(now);
    for (const connection of this.#pending) {
      if (now < connection.openedAtNs + this.#options.handshakeTimeoutNs) continue;
      this.#noLongerPending(connection);
      connection.close();
      const { transport } = connection;
      this.#report(now, transport.peer, 'connection closed: no HELLO came', transport);
    }
  }

  #handshakeFrame(now: Nanos, connection: Connection, frame: Frame): void {
    const peer = connection.transport.peer;
    const session = this.#hosts.get(peer.id)?.session;
    const attached = session !== undefined && connection.session === session;
    if (frame.type === FrameType.BYE) {
      const reason = `the peer ended the session: ${frame.text}`;
      if (attached) session.end(now, reason);
      else this.#drop(now, connection, `ended the handshake: ${frame.text}`);
      return;
    }
    if (frame.type !== FrameType.HELLO || frame.hello === undefined) {
      if (attached) session.violation(now, 'sent a handshake frame in a session');
      else this.#broken(now, connection, 'sent no HELLO first');
      return;
    }
    const hello = frame.hello;
    if (!attached) {
      this.#noLongerPending(connection);
      this.#greet(now, connection, hello);
    } else if (hello.sessionId === session.id) {
      // Our answer was lost, or is late. It says more than the first one, which does no harm.
      this.#acknowledge(now, connection, session, hello.resume);
    } else {
      session.violation(now, 'sent HELLO of another session in a session');
    }
  }

  #greet(now: Nanos, connection: Connection, hello: Hello): void {
    const peer = connection.transport.peer;
    if (hello.version !== PROTOCOL_VERSION) {
      const text = `protocol version ${hello.version}, this end speaks ${PROTOCOL_VERSION}`;
      this.#refuse(now, connection, EndCode.VERSION, text);
      return;
    }
    if (!sameIdentity(hello.identity, peer) || peer.kind !== 'host') {
      const text = `${identityName(peer)} claims to be ${identityName(hello.identity)}`;
      this.#refuse(now, connection, EndCode.IDENTITY, text);
      return;
    }
    const session = this.#hosts.get(peer.id)?.session;
    // A new session whose HELLO-ACK never arrived is offered again under the same id.
    const same = session?.id === hello.sessionId;
    if (session !== undefined && same && (hello.resume || session.untouched)) {
      const wrong = session.attach(now, connection, hello);
      if (wrong === undefined) {
        this.#acknowledge(now, connection, session, hello.resume);
        session.start(now);
      } else {
        session.violation(now, wrong);
        this.#refuse(now, connection, EndCode.UNKNOWN_SESSION, wrong);
      }
      return;
    }
    if (hello.resume) {
      this.#refuse(now, connection, EndCode.UNKNOWN_SESSION, 'no such session');
      return;
    }
    if (session?.connection !== undefined) {
      const text = `a session of ${identityName(peer)} is live`;
      this.#refuse(now, connection, EndCode.BUSY, text);
      return;
    }
    session?.end(now, 'the host has begun another session');
    this.#begin(now, connection, hello);
  }

  #begin(now: Nanos, connection: Connection, hello: Hello): void {
    const peer = connection.transport.peer;
    let known = this.#hosts.get(peer.id);
    if (known === undefined) {
      known = { counters: new LinkCounters(), session: undefined };
      this.#hosts.set(peer.id, known);
    }
    const { user } = this.#config;
    const session = new Session(
      peer,
      hello,
      this.#options,
      known.counters,
      user,
      this.#sessionOwner,
    );
    const wrong = session.attach(now, connection, hello);
    if (wrong !== undefined) {
      known.counters.protocolErrors++;
      this.#refuse(now, connection, EndCode.PROTOCOL, wrong);
      return;
    }
    this.#setSession(known, session);
    session.tap = this.#tap;
    this.#acknowledge(now, connection, session, false);
    user.linkUp(now, session);
    session.start(now);
  }

  #setSession(known: Known, session: Session | undefined): void {
    known.session = session;
    this.#sessions = [...this.#hosts.values()].flatMap((host) => host.session ?? []);
  }

  #acknowledge(now: Nanos, connection: Connection, session: Session, resume: boolean): void {
    connection.say(now, helloFrame(FrameType.HELLO_ACK, session.hello(this.local, resume)));
  }

  #refuse(now: Nanos, connection: Connection, code: EndCode, text: string): void {
    const known = this.#hosts.get(connection.transport.peer.id);
    if (known !== undefined) known.counters.refusals++;
    connection.end(now, FrameType.REFUSE, code, text);
    const { transport } = connection;
    this.#report(now, transport.peer, `refused: ${text}`, transport);
  }

  #pendingOf(peer: PeerIdentity): number {
    let count = 0;
    for (const { transport } of this.#pending) if (sameIdentity(transport.peer, peer)) count++;
    return count;
  }

  /** Whether it was pending till now. */
  #noLongerPending(connection: Connection): boolean {
    const was = this.#pending.delete(connection);
    const { peer } = connection.transport;
    if (this.#crowding.size > 0 && this.#pendingOf(peer) === 0) {
      this.#crowding.delete(identityName(peer));
    }
    return was;
  }

  #tooMany(now: Nanos, connection: Connection): void {
    const { transport } = connection;
    const name = identityName(transport.peer);
    const text = `${MAX_PENDING} connections of ${name} have not said HELLO`;
    const known = this.#hosts.get(transport.peer.id);
    if (known !== undefined) known.counters.refusals++;
    connection.end(now, FrameType.REFUSE, EndCode.BUSY, text);
    if (this.#crowding.has(name)) return;
    this.#crowding.add(name);
    this.#report(now, transport.peer, `refused: ${text}`, transport);
  }

  /** What came over a connection without a session breaks the protocol. */
  #broken(now: Nanos, connection: Connection, what: string): void {
    const known = this.#hosts.get(connection.transport.peer.id);
    if (known !== undefined) known.counters.protocolErrors++;
    this.#drop(now, connection, what);
  }

  /** Closes a connection that has no session, for what it sent. */
  #drop(now: Nanos, connection: Connection, what: string): void {
    this.#noLongerPending(connection);
    connection.close();
    const { transport } = connection;
    this.#report(now, transport.peer, `connection closed: the peer ${what}`, transport);
  }

  #report(now: Nanos, peer: PeerIdentity, message: string, transport?: Transport): void {
    this.#config.report?.(now, peer, message, transport);
  }
}
