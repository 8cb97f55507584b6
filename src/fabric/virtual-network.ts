/**
 * Transports in virtual time. A path carries connections between a dialling and a listening end.
 *
 * Time of a frame of n bytes in one direction of a path: it waits until the wire of that direction is
 * free, then takes `(n + overheadBytes) × 8 ÷ rate` seconds to go out (nothing if the rate is
 * Infinity), then `rttNs ÷ 2` to arrive. A round trip of a request of a bytes and an answer of b bytes
 * on an idle path is therefore `rttNs + (a + b + 2 × overheadBytes) × 8e9 ÷ rate` ns, exactly.
 * Connecting takes `rttNs`. Frames of all connections of a path share its wires.
 *
 * `send` takes one frame more than the wire is sending: it returns true while at most one frame is
 * on its way out, false with a second behind it, and `writable` follows when that one's turn comes.
 * So the wire never idles while there is something to send, and TLPs gather while it is busy.
 *
 * Who owns what: `VirtualNetwork` owns paths, a path its two wires and its connections, a connection
 * is two `VirtualTransport` ends. All randomness comes from the one generator given.
 *
 * Whoever dials may lag behind (#base/virtual-clock): a path told of its clock calls it by that, bounds how
 * far it lags by half a round trip, and has it catch up before the path changes.
 */
import { AssertionError, assert } from '#base/assert';
import { ClockEvent } from '#base/clock-queue';
import type { Prng } from '#base/prng';
import { type Nanos, nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import { identityName, sameIdentity } from '#identity/identity';
import type { PeerIdentity, Transport, TransportUser } from './transport.ts';
import { VirtualWire } from './virtual-wire.ts';

export interface VirtualPathOptions {
  readonly rttNs: number;
  /** Bits per second of each direction; default Infinity. */
  readonly rateToListener?: number;
  readonly rateToDialer?: number;
  /** Added to every frame on the wire: TCP, IP and TLS headers; default 0. */
  readonly overheadBytes?: number;
  /** Probabilities per frame; default 0. A lost frame takes its time on the wire. */
  readonly loss?: number;
  readonly duplication?: number;
  readonly reordering?: number;
  /** A reordered frame, or the second of a duplicated one, comes up to this much later; default rttNs. */
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

/** One direction of a path, and who waits until it takes frames again. */
class Wire extends VirtualWire<VirtualTransport> {
  readonly waiting = new Set<VirtualTransport>();
}

type PathState = 'up' | 'reset' | 'silent';

export class VirtualPath {
  readonly #clock: VirtualClock;
  /** Of whoever dials; it may lag. */
  readonly dialerClock: VirtualClock;
  readonly #prng: Prng;
  readonly #connections = new Set<VirtualTransport>();
  readonly #wires: readonly [Wire, Wire];
  #options: VirtualPathOptions;
  /** Nothing is left to chance. */
  #isExact: boolean;
  #state: PathState = 'up';
  /** Frames in flight belong to an epoch; a cut begins another. */
  #epoch = 0;

  /** By `VirtualNetwork.addPath`. */
  constructor(
    clock: VirtualClock,
    dialerClock: VirtualClock,
    prng: Prng,
    options: VirtualPathOptions,
  ) {
    this.#clock = clock;
    this.dialerClock = dialerClock;
    this.#prng = prng;
    this.#options = options;
    this.#isExact = isExact(options);
    this.#wires = [this.#newWire(dialerClock, clock), this.#newWire(clock, dialerClock)];
    this.#boundLag();
  }

  get isUp(): boolean {
    return this.#state === 'up';
  }

  /** Changes what the path does from now on; frames in flight keep their times. */
  setOptions(options: Partial<VirtualPathOptions>): void {
    this.dialerClock.catchUp();
    this.#options = { ...this.#options, ...options };
    this.#isExact = isExact(this.#options);
    this.#boundLag();
  }

  /** Answers `dialer` after a round trip. */
  connect(dialer: VirtualDialer, listener: VirtualListener | undefined): void {
    const near = this.dialerClock;
    const halfNs = this.#options.rttNs / 2;
    const now = near.now();
    const fail = (by: VirtualClock, atNs: number, reason: string): void => {
      tell(near, by, atNs, (at) => dialer.connectFailed(at, reason));
    };
    if (this.#state === 'silent') {
      fail(near, now + (this.#options.connectTimeoutNs ?? 1e9), 'connecting timed out');
      return;
    }
    if (this.#state === 'reset') {
      fail(near, now + 2 * halfNs, 'the path is cut');
      return;
    }
    const epoch = this.#epoch;
    tell(this.#clock, near, now + halfNs, (arrived) => {
      if (epoch !== this.#epoch) {
        fail(this.#clock, arrived + halfNs, 'the path was cut while connecting');
        return;
      }
      if (listener === undefined) {
        fail(this.#clock, arrived + halfNs, 'connection refused');
        return;
      }
      this.#accept(arrived, dialer, listener, arrived + halfNs);
    });
  }

  #accept(now: Nanos, dialer: VirtualDialer, listener: VirtualListener, answeredNs: number): void {
    const near = new VirtualTransport(this, dialer.local, listener.local, 0);
    const far = new VirtualTransport(this, listener.local, dialer.local, 1);
    near.other = far;
    far.other = near;
    this.#connections.add(near);
    this.#connections.add(far);
    // Before anything the listener sends in `accept`.
    tell(this.dialerClock, this.#clock, answeredNs, (at) => {
      if (near.state === 'closed') dialer.connectFailed(at, 'connection lost');
      else near.user = dialer.connected(at, near);
    });
    far.user = listener.accept(now, far);
  }

  /**
   * Loses all frames in flight and refuses connections until `heal`. `reset`: both ends of every
   * connection are told at once. `silent`: nobody is told, frames vanish.
   */
  cut(mode: 'reset' | 'silent'): void {
    this.dialerClock.catchUp();
    this.#state = mode;
    this.#epoch++;
    if (mode === 'silent') return;
    const now = this.#clock.now();
    for (const transport of this.#connections) this.lose(now, transport, 'the path was cut');
  }

  /** After a silent cut, the connections that nobody has closed work again. */
  heal(): void {
    this.dialerClock.catchUp();
    this.#state = 'up';
  }

  /** A transport of `local` vanishes without a call; the other end hears of it. */
  kill(local: PeerIdentity): void {
    this.dialerClock.catchUp();
    for (const transport of this.#connections) {
      if (sameIdentity(transport.local, local)) transport.close();
    }
  }

  /** For `VirtualTransport`: takes a frame. */
  send(
    now: Nanos,
    from: VirtualTransport,
    frame: Uint8Array,
    offset: number,
    length: number,
  ): boolean {
    const options = this.#options;
    const wire = this.#wires[from.side];
    const rate = from.side === 0 ? options.rateToListener : options.rateToDialer;
    const bits = (length + (options.overheadBytes ?? 0)) * 8;
    const outNs = rate === undefined || rate === Infinity ? 0 : (bits * 1e9) / rate;
    const goneAtNs = Math.max(now, wire.freeAtNs) + outNs;
    wire.freeAtNs = goneAtNs;
    this.#fly(wire, from, frame, offset, length, goneAtNs + options.rttNs / 2);
    if (outNs === 0 && goneAtNs <= now) return true;
    wire.goOut(goneAtNs);
    if (wire.outgoing < 2) return true;
    wire.waiting.add(from);
    wire.callWhenThin();
    return false;
  }

  /** For `VirtualTransport`: this end has closed; the other hears it behind the frames in flight. */
  closing(transport: VirtualTransport): void {
    this.#forget(transport);
    const other = transport.other;
    if (other === undefined || other.state === 'closed' || this.#state === 'silent') return;
    const epoch = this.#epoch;
    const wire = this.#wires[transport.side];
    const [far, near] = [this.#clock, this.dialerClock];
    const [by, on] = transport.side === 0 ? [near, far] : [far, near];
    const goneNs = Math.max(by.now(), wire.freeAtNs);
    tell(on, by, goneNs + this.#options.rttNs / 2, (at) => {
      if (epoch === this.#epoch) this.lose(at, other, 'the peer closed the connection');
    });
  }

  /** Ends `transport` and tells its user. */
  lose(now: Nanos, transport: VirtualTransport, reason: string): void {
    if (transport.state === 'closed') return;
    transport.state = 'closed';
    this.#forget(transport);
    transport.user?.closed(now, reason);
  }

  #forget(transport: VirtualTransport): void {
    this.#connections.delete(transport);
    for (const wire of this.#wires) wire.waiting.delete(transport);
  }

  #boundLag(): void {
    // The generator of what is left to chance is both ends': it must be asked in order.
    if (this.dialerClock === this.#clock) return;
    this.dialerClock.boundLag(this.#isExact ? this.#options.rttNs / 2 : 0);
  }

  #newWire(sender: VirtualClock, receiver: VirtualClock): Wire {
    const wire: Wire = new Wire(
      sender,
      receiver,
      (now, from, epoch, bytes, offset, length) => {
        this.#land(now, from, epoch, bytes, offset, length);
      },
      (now) => this.#thinned(now, wire),
    );
    return wire;
  }

  /** Less than two frames go out on a wire that somebody waits for. */
  #thinned(now: Nanos, wire: Wire): void {
    for (const transport of wire.waiting) {
      // Another connection may have filled the wire meanwhile.
      if (wire.outgoing >= 2) break;
      wire.waiting.delete(transport);
      if (transport.state === 'open') transport.user?.writable(now);
    }
    if (wire.waiting.size > 0) wire.callWhenThin();
  }

  #fly(
    wire: Wire,
    from: VirtualTransport,
    bytes: Uint8Array,
    offset: number,
    length: number,
    arrivesAtNs: number,
  ): void {
    if (this.#state !== 'up') return;
    if (this.#isExact) {
      wire.fly(from, this.#epoch, bytes, offset, length, arrivesAtNs);
      return;
    }
    const { loss = 0, duplication = 0, reordering = 0, rttNs } = this.#options;
    const { reorderDelayNs = rttNs } = this.#options;
    const prng = this.#prng;
    if (loss > 0 && prng.chance(loss)) return;
    let atNs = arrivesAtNs;
    if (reordering > 0 && prng.chance(reordering)) atNs += prng.float() * reorderDelayNs;
    wire.fly(from, this.#epoch, bytes, offset, length, atNs);
    if (duplication > 0 && prng.chance(duplication)) {
      const secondAtNs = atNs + prng.float() * reorderDelayNs;
      wire.fly(from, this.#epoch, bytes, offset, length, secondAtNs);
    }
  }

  #land(
    now: Nanos,
    from: VirtualTransport,
    epoch: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    const to = from.other;
    if (epoch !== this.#epoch || to === undefined || to.state === 'closed') return;
    const { user } = to;
    if (user === undefined) {
      throw new AssertionError(`a frame for ${identityName(to.local)}, which has no user yet`);
    }
    user.frame(now, bytes, offset, length);
    if (to.isOpen()) user.turnEnd(now);
  }
}

/** Has `fn` called at the end that lives by `on`; `by` is the clock of whoever says so. */
function tell(on: VirtualClock, by: VirtualClock, atNs: number, fn: (now: Nanos) => void): void {
  assert(atNs >= on.now(), 'a sender that lags was heard of before it sent');
  on.schedule(new ClockEvent(fn), nanos(atNs), by.takeTurn(), by.now());
}

function isExact({ loss = 0, duplication = 0, reordering = 0 }: VirtualPathOptions): boolean {
  return loss === 0 && duplication === 0 && reordering === 0;
}

/** One end of a connection. */
export class VirtualTransport implements Transport {
  readonly peer: PeerIdentity;
  readonly local: PeerIdentity;
  /** 0 at the dialling end, 1 at the listening end. */
  readonly side: 0 | 1;
  state: 'open' | 'closed' = 'open';
  user: TransportUser | undefined;
  other: VirtualTransport | undefined;
  readonly #path: VirtualPath;

  /** By `VirtualPath.connect`. */
  constructor(path: VirtualPath, local: PeerIdentity, peer: PeerIdentity, side: 0 | 1) {
    this.#path = path;
    this.local = local;
    this.peer = peer;
    this.side = side;
  }

  isOpen(): boolean {
    return this.state === 'open';
  }

  send(now: Nanos, bytes: Uint8Array, offset: number, length: number): boolean {
    return this.state === 'closed' || this.#path.send(now, this, bytes, offset, length);
  }

  close(): void {
    if (this.state === 'closed') return;
    this.state = 'closed';
    this.#path.closing(this);
  }
}

export class VirtualNetwork {
  readonly #clock: VirtualClock;
  readonly #prng: Prng;
  readonly #paths: VirtualPath[] = [];

  constructor(clock: VirtualClock, prng: Prng) {
    this.#clock = clock;
    this.#prng = prng;
  }

  /** `dialerClock`: of a process that may lag; it alone dials over this path. */
  addPath(options: VirtualPathOptions, dialerClock: VirtualClock = this.#clock): VirtualPath {
    const path = new VirtualPath(this.#clock, dialerClock, this.#prng.fork(), options);
    this.#paths.push(path);
    return path;
  }

  /**
   * A process dies: its ends of all connections vanish without a call, the other ends see `closed`
   * half a round trip later.
   */
  kill(local: PeerIdentity): void {
    for (const path of this.#paths) path.kill(local);
  }
}
