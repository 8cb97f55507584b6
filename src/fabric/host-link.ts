/**
 * The initiating end of a link: finds connections for its one session, begins a new session when the
 * old one is over, and never gives up until it is stopped.
 *
 *   waiting       until the next attempt; the pause doubles from `backoffMinNs` to `backoffMaxNs`,
 *                 and is at most a tenth of the resume window while the peer of a session is out of reach
 *   connecting    the shell has been asked for a connection
 *   handshaking   HELLO is out
 *   up            the session has its connection
 *   stopped       before `start`, after `stop`
 *
 * A session outlives all but `stopped`, for its resume window. Each attempt takes the next path; the
 * first after a loss is made at once. A connection that was lost before it had lasted `backoffMaxNs`
 * counts as a failed attempt, after the first such: a peer that takes connections only to drop them,
 * or ends each session as it begins, does not keep this end busy.
 */
import { assert } from '#base/assert';
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import { identityName, sameIdentity } from '#identity/identity';
import { Connection, type ConnectionOwner } from './connection.ts';
import { EndCode, type Frame, FrameType, helloFrame } from './frame.ts';
import { type Hello, PROTOCOL_VERSION } from './hello.ts';
import { LinkCounters } from './link-counters.ts';
import { checkLinkOptions, type LinkOptions, type LinkTap } from './link-options.ts';
import type { LinkUser } from './link-user.ts';
import { freshHello, Session, type SessionOwner } from './session.ts';
import type { PeerIdentity, Transport, TransportUser } from './transport.ts';

export interface HostLinkSink {
  /**
   * Asks for a connection to the peer over path number `pathIndex`. Answered by exactly one call of
   * `connected` or `connectFailed`, during the call or later.
   */
  connect(now: Nanos, pathIndex: number): void;
  /**
   * Something an operator may want to read: a refusal, a lost connection, a session's end. It is about
   * the path `pathIndex` of the link at the time of the call.
   */
  report?(now: Nanos, peer: PeerIdentity, message: string): void;
}

export interface HostLinkConfig {
  readonly local: PeerIdentity;
  readonly peer: PeerIdentity;
  /** Number of paths to the peer; they are tried in turn. `setPaths` changes it. */
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
  readonly #config: HostLinkConfig;
  readonly #options: LinkOptions;
  readonly #connectionOwner: ConnectionOwner;
  readonly #sessionOwner: SessionOwner;
  #state: HostLinkState = 'stopped';
  #tap: LinkTap | undefined;
  #session: Session | undefined;
  /** The connection being handshaken; once up it is the session's. */
  #connection: Connection | undefined;
  /** Id offered for a new session, kept until it is accepted or refused. */
  #offeredId = 0;
  #paths: number;
  #pathIndex = 0;
  #backoffNs: number;
  /** When the last connection came up; what it was worth shows in how long it lasts. */
  #upAtNs = -Infinity;
  /** The next loss is followed by an attempt at once. */
  #mayHurry = true;
  /** The next attempt, the next HELLO, and the end of the handshake. */
  #retryAtNs = Infinity;
  #helloAtNs = Infinity;
  #handshakeUntilNs = Infinity;
  /** Attempts that have been asked for and not answered; at most one is wanted. */
  #unanswered = 0;

  constructor(config: HostLinkConfig) {
    assert(config.paths >= 1, 'a link has at least one path');
    this.local = config.local;
    this.peer = config.peer;
    this.#config = config;
    this.#paths = config.paths;
    this.#options = checkLinkOptions(config.options);
    this.#backoffNs = this.#options.backoffMinNs;
    this.#connectionOwner = {
      handshakeFrame: (now, connection, frame) => this.#handshakeFrame(now, connection, frame),
      // Sent before HELLO-ACK and come before it, or HELLO-ACK was lost: it will be sent again.
      earlyFrame: () => {},
      nonsense: (now, connection, reason) => {
        this.counters.protocolErrors++;
        this.#attemptFailed(now, connection, `the peer ${reason}`);
      },
      connectionClosed: (now, connection, reason) => this.#attemptFailed(now, connection, reason),
    };
    this.#sessionOwner = {
      sessionDetached: (now, _session, reason) => {
        this.#report(now, `connection lost, resuming: ${reason}`);
        this.#connection = undefined;
        this.#judgeConnection(now);
        if (!this.#mayHurry) {
          this.#waitAndRetry(now);
          return;
        }
        this.#mayHurry = false;
        this.#nextPath();
        this.#connect(now);
      },
      sessionEnded: (now, session, reason) => this.#sessionEnded(now, session, reason),
    };
  }

  /** State of the connection; a session may live on (`sessionId` not 0) while it is not `up`. */
  get state(): HostLinkState {
    return this.#state;
  }

  /** Id of the live session, or 0. */
  get sessionId(): number {
    return this.#session?.id ?? 0;
  }

  /** The path in use or being tried. */
  get pathIndex(): number {
    return this.#pathIndex;
  }

  /** Called for each TLP passed, both ways, while set. */
  set tap(tap: LinkTap | undefined) {
    this.#tap = tap;
    if (this.#session !== undefined) this.#session.tap = tap;
  }

  /** Starts connecting. */
  start(now: Nanos): void {
    if (this.#state !== 'stopped') return;
    this.#backoffNs = this.#options.backoffMinNs;
    this.#mayHurry = true;
    this.#connect(now);
  }

  /** Tells the peer, ends the session (`linkDown`) and stops connecting. */
  stop(now: Nanos, reason: string): void {
    this.#state = 'stopped';
    this.#clearDeadlines();
    const connection = this.#connection;
    this.#connection = undefined;
    this.#offeredId = 0;
    // A session's own connection ends with it.
    this.#session?.end(now, reason, EndCode.STOPPED);
    connection?.end(now, FrameType.BYE, EndCode.STOPPED, reason);
  }

  /**
   * There are other paths now. `current` is the number the one in use or being tried has among them;
   * what is up stays up, whatever becomes of its path.
   */
  setPaths(paths: number, current: number): void {
    assert(paths >= 1 && current >= 0 && current < paths, 'a link has at least one path');
    this.#paths = paths;
    this.#pathIndex = current;
  }

  /** A connection asked for is there; the returned user must be set before its first frame. */
  connected(now: Nanos, transport: Transport): TransportUser {
    const connection = new Connection(now, transport, this.#connectionOwner);
    this.#unanswered = Math.max(0, this.#unanswered - 1);
    if (this.#state !== 'connecting' || this.#unanswered > 0) {
      connection.close();
      return connection;
    }
    if (!sameIdentity(transport.peer, this.peer)) {
      this.#connection = connection;
      const found = identityName(transport.peer);
      this.#attemptFailed(now, connection, `${found} answered, not ${identityName(this.peer)}`);
      return connection;
    }
    this.#state = 'handshaking';
    this.#connection = connection;
    this.#handshakeUntilNs = now + this.#options.handshakeTimeoutNs;
    this.#sayHello(now);
    return connection;
  }

  connectFailed(now: Nanos, reason: string): void {
    this.#unanswered = Math.max(0, this.#unanswered - 1);
    if (this.#state !== 'connecting' || this.#unanswered > 0) return;
    this.#attemptFailed(now, undefined, reason);
  }

  /** Closes the connection in use, as if it had been lost: the session resumes. */
  dropConnection(now: Nanos, reason: string): void {
    if (this.#state === 'up') this.#session?.connectionLost(now, reason);
  }

  nextDeadlineNs(): number {
    const ownNs = Math.min(this.#retryAtNs, this.#helloAtNs, this.#handshakeUntilNs);
    return this.#session === undefined ? ownNs : Math.min(ownNs, this.#session.nextDeadlineNs());
  }

  tick(now: Nanos): void {
    this.#session?.tick(now);
    if (now >= this.#handshakeUntilNs) {
      this.#attemptFailed(now, this.#connection, 'no answer to HELLO');
    } else if (now >= this.#helloAtNs) {
      this.#sayHello(now);
    }
    if (now >= this.#retryAtNs) this.#connect(now);
  }

  #connect(now: Nanos): void {
    this.#clearDeadlines();
    this.#state = 'connecting';
    this.#unanswered++;
    this.#config.sink.connect(now, this.#pathIndex);
  }

  #sayHello(now: Nanos): void {
    const session = this.#session;
    if (session === undefined && this.#offeredId === 0) {
      this.#offeredId = this.#config.newSessionId();
    }
    const hello =
      session?.hello(this.local, true) ?? freshHello(this.local, this.#offeredId, this.#options);
    this.#connection?.say(now, helloFrame(FrameType.HELLO, hello));
    this.#helloAtNs = now + this.#options.helloRetryNs;
  }

  #handshakeFrame(now: Nanos, connection: Connection, frame: Frame): void {
    const { hello } = frame;
    switch (frame.type) {
      case FrameType.HELLO_ACK:
        // Once up it can only be the answer to a repeated HELLO.
        if (
          hello !== undefined &&
          connection === this.#connection &&
          this.#state === 'handshaking'
        ) {
          this.#acknowledged(now, connection, hello);
        }
        return;
      case FrameType.REFUSE:
        if (connection === this.#connection && this.#state === 'handshaking') {
          this.#refused(now, connection, frame.code, frame.text);
        }
        return;
      case FrameType.BYE: {
        const reason = `the peer ended the session: ${frame.text}`;
        if (connection.session !== undefined) this.#session?.end(now, reason);
        else this.#attemptFailed(now, connection, reason);
        return;
      }
      default:
        this.#broken(now, connection, 'sent HELLO to the end that connects');
    }
  }

  #acknowledged(now: Nanos, connection: Connection, hello: Hello): void {
    const wanted = this.#session?.id ?? this.#offeredId;
    if (hello.version !== PROTOCOL_VERSION || hello.sessionId !== wanted) {
      this.#broken(now, connection, 'acknowledged another session or protocol version');
      return;
    }
    if (!sameIdentity(hello.identity, this.peer)) {
      this.#broken(now, connection, `claims to be ${identityName(hello.identity)}`);
      return;
    }
    let session = this.#session;
    const isNew = session === undefined;
    session ??= new Session(
      this.peer,
      hello,
      this.#options,
      this.counters,
      this.#config.user,
      this.#sessionOwner,
    );
    const wrong = session.attach(now, connection, hello);
    if (wrong !== undefined) {
      this.#broken(now, connection, wrong);
      return;
    }
    this.#clearDeadlines();
    this.#state = 'up';
    this.#session = session;
    this.#offeredId = 0;
    this.#upAtNs = now;
    if (isNew) {
      session.tap = this.#tap;
      this.#config.user.linkUp(now, session);
    }
    session.start(now);
  }

  #refused(now: Nanos, connection: Connection, code: number, text: string): void {
    this.counters.refusals++;
    this.#offeredId = 0;
    if (code === EndCode.UNKNOWN_SESSION && this.#session !== undefined) {
      connection.close();
      this.#connection = undefined;
      this.#session.end(now, 'the peer has restarted: it does not know the session');
      return;
    }
    this.#attemptFailed(now, connection, `refused: ${text}`);
  }

  /** The peer broke the protocol in a handshake: that ends the session it is about. */
  #broken(now: Nanos, connection: Connection, what: string): void {
    this.counters.protocolErrors++;
    connection.end(now, FrameType.BYE, EndCode.PROTOCOL, what);
    this.#offeredId = 0;
    if (this.#session !== undefined) {
      if (this.#connection === connection) this.#connection = undefined;
      this.#session.end(now, `the peer ${what}`);
    } else {
      this.#attemptFailed(now, connection, `the peer ${what}`);
    }
  }

  #sessionEnded(now: Nanos, session: Session, reason: string): void {
    if (this.#session !== session) return;
    this.#session = undefined;
    this.#report(now, `session ended: ${reason}`);
    if (this.#state === 'stopped') return;
    if (this.#state === 'up') this.#judgeConnection(now);
    // A handshake under way would resume what is no more.
    this.#connection?.close();
    this.#connection = undefined;
    if (this.#state === 'connecting' || this.#state === 'waiting') return;
    this.#waitAndRetry(now);
  }

  #attemptFailed(now: Nanos, connection: Connection | undefined, reason: string): void {
    connection?.close();
    if (connection !== this.#connection) return;
    this.#connection = undefined;
    if (this.#state === 'stopped') return;
    this.counters.connectFailures++;
    this.#report(now, reason);
    // While nobody is reached, a session that could go on is not lost to a long pause.
    const isCutOff = connection === undefined && this.#session !== undefined;
    this.#waitAndRetry(now, isCutOff ? this.#options.resumeWindowNs / 10 : undefined);
  }

  /** A connection that was up is gone. */
  #judgeConnection(now: Nanos): void {
    if (now - this.#upAtNs < this.#options.backoffMaxNs) return;
    this.#mayHurry = true;
    this.#backoffNs = this.#options.backoffMinNs;
  }

  #waitAndRetry(now: Nanos, mostNs: number = this.#options.backoffMaxNs): void {
    this.#clearDeadlines();
    this.#state = 'waiting';
    this.#nextPath();
    const { backoffMaxNs } = this.#options;
    this.#retryAtNs = now + Math.min(mostNs, this.#backoffNs);
    this.#backoffNs = Math.min(backoffMaxNs, this.#backoffNs * 2);
  }

  #nextPath(): void {
    this.#pathIndex = (this.#pathIndex + 1) % this.#paths;
  }

  #clearDeadlines(): void {
    this.#retryAtNs = Infinity;
    this.#helloAtNs = Infinity;
    this.#handshakeUntilNs = Infinity;
  }

  #report(now: Nanos, message: string): void {
    this.#config.sink.report?.(now, this.peer, message);
  }
}
