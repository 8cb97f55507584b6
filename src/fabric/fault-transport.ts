/**
 * Faults made on purpose on running connections, for `dxpu fault link`: a `FaultInjector` belongs to
 * one process and wraps every transport of it. Frames are delayed and dropped in both directions;
 * a cut closes what is open and asks the shell to open nothing for a while.
 */
import type { Clock } from '../base/clock.ts';
import type { Prng } from '../base/prng.ts';
import type { Nanos } from '../base/units.ts';
import type { PeerIdentity, Transport, TransportUser } from './transport.ts';

/** A transport as the shell gets it: `start` begins the delivery. */
export interface StartableTransport extends Transport {
  start(user: TransportUser): void;
}

/** What `faults` of a process are on. Zero means none. */
export interface FaultSettings {
  /** Added to each frame, in each direction: a round trip grows by twice as much. */
  readonly delayNs: number;
  /** Share of frames lost, in each direction, 0 to 1. */
  readonly dropProbability: number;
}

export interface FaultCounters {
  delayedFrames: number;
  droppedFrames: number;
  cutConnections: number;
}

export class FaultInjector {
  readonly counters: FaultCounters = { delayedFrames: 0, droppedFrames: 0, cutConnections: 0 };
  readonly #clock: Clock;
  readonly #prng: Prng;
  readonly #open = new Set<FaultTransport>();
  #settings: FaultSettings = { delayNs: 0, dropProbability: 0 };
  #cutUntilNs = 0;

  constructor(clock: Clock, prng: Prng) {
    this.#clock = clock;
    this.#prng = prng;
  }

  get settings(): FaultSettings {
    return this.#settings;
  }

  /** Until when the network is cut, in the clock's time; past or 0 when it is not. */
  get cutUntilNs(): number {
    return this.#cutUntilNs;
  }

  /** While true, the shell opens no connection and closes those that come in. */
  isCut(now: Nanos): boolean {
    return now < this.#cutUntilNs;
  }

  set(settings: Partial<FaultSettings>): void {
    this.#settings = { ...this.#settings, ...settings };
  }

  /** Closes every connection at once and keeps the network cut for `durationNs`. */
  cut(now: Nanos, durationNs: number): void {
    this.#cutUntilNs = now + durationNs;
    for (const transport of [...this.#open]) {
      this.counters.cutConnections++;
      transport.cut(now);
    }
  }

  clear(): void {
    this.#cutUntilNs = 0;
    this.#settings = { delayNs: 0, dropProbability: 0 };
  }

  wrap(inner: StartableTransport): FaultTransport {
    const transport = new FaultTransport(inner, this, this.#clock, () =>
      this.#open.delete(transport),
    );
    this.#open.add(transport);
    return transport;
  }

  /** Whether the next frame is lost. */
  lose(): boolean {
    const { dropProbability } = this.#settings;
    if (dropProbability === 0 || !this.#prng.chance(dropProbability)) return false;
    this.counters.droppedFrames++;
    return true;
  }
}

interface Held {
  readonly atNs: number;
  readonly bytes: Uint8Array;
}

/** Passes everything straight through while no fault is set. */
export class FaultTransport implements StartableTransport {
  readonly peer: PeerIdentity;
  readonly #inner: StartableTransport;
  readonly #faults: FaultInjector;
  readonly #clock: Clock;
  readonly #forget: () => void;
  #user: TransportUser | undefined;
  #gone = false;
  /** Frames waiting for their time, oldest first. A later frame never overtakes them. */
  readonly #outgoing: Held[] = [];
  readonly #incoming: Held[] = [];
  #pumping = false;

  constructor(inner: StartableTransport, faults: FaultInjector, clock: Clock, forget: () => void) {
    this.peer = inner.peer;
    this.#inner = inner;
    this.#faults = faults;
    this.#clock = clock;
    this.#forget = forget;
  }

  start(user: TransportUser): void {
    this.#user = user;
    this.#inner.start({
      frame: (now, bytes, offset, length) => {
        if (this.#faults.lose()) return;
        const { delayNs } = this.#faults.settings;
        if (delayNs === 0 && this.#incoming.length === 0) {
          user.frame(now, bytes, offset, length);
          return;
        }
        this.#hold(this.#incoming, now + delayNs, bytes.slice(offset, offset + length));
      },
      turnEnd: (now) => user.turnEnd(now),
      writable: (now) => user.writable(now),
      closed: (now, reason) => this.#end(now, reason),
    });
  }

  send(now: Nanos, frame: Uint8Array): boolean {
    if (this.#gone || this.#faults.lose()) return true;
    const { delayNs } = this.#faults.settings;
    if (delayNs === 0 && this.#outgoing.length === 0) return this.#inner.send(now, frame);
    // A copy: the sender may send the same frame again meanwhile, and have it acknowledged.
    this.#hold(this.#outgoing, now + delayNs, frame.slice());
    return true;
  }

  close(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#forget();
    // What was sent before still goes out, as on a connection without faults.
    const now = this.#clock.now();
    for (const held of this.#outgoing.splice(0)) this.#inner.send(now, held.bytes);
    this.#inner.close();
  }

  /** Ends the connection as a broken network would: both sides are told, what was held is lost. */
  cut(now: Nanos): void {
    if (this.#gone) return;
    this.#outgoing.length = 0;
    this.#inner.close();
    this.#end(now, 'cut by fault injection');
  }

  #end(now: Nanos, reason: string): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#forget();
    this.#outgoing.length = 0;
    this.#incoming.length = 0;
    this.#user?.closed(now, reason);
  }

  #hold(queue: Held[], atNs: number, bytes: Uint8Array): void {
    this.#faults.counters.delayedFrames++;
    queue.push({ atNs, bytes });
    if (this.#pumping) return;
    this.#pumping = true;
    setImmediate(() => this.#pump());
  }

  /** Polls: timers of the event loop are far too coarse for delays of microseconds. */
  #pump(): void {
    this.#pumping = false;
    if (this.#gone) return;
    const now = this.#clock.now();
    while (!this.#gone) {
      const held = this.#outgoing[0];
      if (held === undefined || held.atNs > now) break;
      this.#outgoing.shift();
      this.#inner.send(now, held.bytes);
    }
    let delivered = false;
    while (!this.#gone) {
      const held = this.#incoming[0];
      if (held === undefined || held.atNs > now) break;
      this.#incoming.shift();
      delivered = true;
      this.#user?.frame(now, held.bytes, 0, held.bytes.length);
    }
    if (delivered && !this.#gone) this.#user?.turnEnd(now);
    if (this.#gone || this.#outgoing.length + this.#incoming.length === 0) return;
    this.#pumping = true;
    const nextNs = Math.min(
      this.#outgoing[0]?.atNs ?? Infinity,
      this.#incoming[0]?.atNs ?? Infinity,
    );
    if (nextNs - now > 2e6) setTimeout(() => this.#pump(), (nextNs - now) / 1e6 - 1);
    else setImmediate(() => this.#pump());
  }
}
