/**
 * Faults made on purpose on running connections, for `dxpu fault link`: a `FaultInjector` belongs to
 * one process and wraps every transport of it. What this process sends is delayed and dropped; for
 * both directions the faults are set in both processes. A cut closes what is open and asks the shell
 * to open nothing for a while.
 */
import type { Clock } from '#base/clock';
import { copyOfBytes } from '#base/copy-bytes';
import type { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import type { PeerIdentity, Transport, TransportUser } from './transport.ts';

/** A transport as the shell gets it: `start` begins the delivery. */
export interface StartableTransport extends Transport {
  start(user: TransportUser): void;
}

/** What `faults` of a process are on. Zero means none. */
export interface FaultSettings {
  /** Added to each frame sent. */
  readonly delayNs: number;
  /** Share of the frames sent that is lost, 0 to 1. */
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
  #everLossy = false;

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

  /** Whether frames were ever dropped on purpose here. */
  get everLossy(): boolean {
    return this.#everLossy;
  }

  set(settings: Partial<FaultSettings>): void {
    this.#settings = { ...this.#settings, ...settings };
    if (this.#settings.dropProbability > 0) this.#everLossy = true;
  }

  /** Closes every connection at once and keeps the network cut for `durationNs`. */
  cut(now: Nanos, durationNs: number): void {
    this.#cutUntilNs = now + durationNs;
    // A set may lose the element it is at: each transport forgets itself here.
    for (const transport of this.#open) {
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

/** Passes everything straight through while no fault was ever set. */
export class FaultTransport implements StartableTransport {
  readonly peer: PeerIdentity;
  readonly #inner: StartableTransport;
  readonly #faults: FaultInjector;
  readonly #clock: Clock;
  readonly #forget: () => void;
  #user: TransportUser | undefined;
  #gone = false;
  /** Frames waiting for their time, oldest first. A later frame never overtakes them. */
  readonly #held: Held[] = [];
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
      frame: (now, bytes, offset, length) => user.frame(now, bytes, offset, length),
      turnEnd: (now) => user.turnEnd(now),
      writable: (now) => user.writable(now),
      closed: (now, reason) => this.#end(now, reason),
    });
  }

  send(now: Nanos, bytes: Uint8Array, offset: number, length: number): boolean {
    if (this.#gone || this.#faults.lose()) return true;
    const { delayNs } = this.#faults.settings;
    if (delayNs > 0 || this.#held.length > 0) {
      this.#hold(now + delayNs, copyOfBytes(bytes, offset, length));
      return true;
    }
    // Where frames get lost, one may be sent again and acknowledged while an earlier copy of it still
    // waits in the socket: the sender is then free to change the bytes. So they get a copy.
    if (!this.#faults.everLossy) return this.#inner.send(now, bytes, offset, length);
    return this.#inner.send(now, copyOfBytes(bytes, offset, length), 0, length);
  }

  flush(): void {
    this.#inner.flush?.();
  }

  close(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#forget();
    // What was sent before still goes out, as on a connection without faults.
    const now = this.#clock.now();
    for (const { bytes } of this.#held.splice(0)) this.#inner.send(now, bytes, 0, bytes.length);
    this.#inner.close();
  }

  /** Ends the connection as a broken network would: both sides are told, what was held is lost. */
  cut(now: Nanos): void {
    if (this.#gone) return;
    this.#inner.close();
    this.#end(now, 'cut by fault injection');
  }

  #end(now: Nanos, reason: string): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#forget();
    this.#held.length = 0;
    this.#user?.closed(now, reason);
  }

  #hold(atNs: number, bytes: Uint8Array): void {
    this.#faults.counters.delayedFrames++;
    this.#held.push({ atNs, bytes });
    this.#wait();
  }

  /** Polls when it is near: timers of the event loop are far too coarse for microseconds. */
  #wait(): void {
    const next = this.#held[0];
    if (this.#pumping || this.#gone || next === undefined) return;
    this.#pumping = true;
    const waitMs = (next.atNs - this.#clock.now()) / 1e6;
    if (waitMs > 3) setTimeout(() => this.#pump(), waitMs - 2);
    else setImmediate(() => this.#pump());
  }

  #pump(): void {
    this.#pumping = false;
    const now = this.#clock.now();
    while (!this.#gone) {
      const next = this.#held[0];
      if (next === undefined || next.atNs > now) break;
      this.#held.shift();
      this.#inner.send(now, next.bytes, 0, next.bytes.length);
    }
    this.#wait();
  }
}
