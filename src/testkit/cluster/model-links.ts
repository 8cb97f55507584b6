/**
 * The links between model hosts and model boxes: sessions that come up by themselves, outlive a cut by
 * the resume window, and end on the two sides at different times.
 *
 * `ModelLinks` owns every link's state; a `LinkSide` is a proxy that is told. What a box says of a slot
 * travels to the host in order, within the session it was said in.
 */
import type { Prng } from '#base/prng';
import { type Nanos, nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';

/** A proxy, as its links see it. */
export interface LinkSide {
  sessionUp(now: Nanos, peer: string): void;
  sessionDown(now: Nanos, peer: string, why: string): void;
  /** The session has a connection again. */
  sessionResumed(now: Nanos, peer: string): void;
}

export interface HostSide extends LinkSide {
  boxSaid(now: Nanos, box: string, slot: number, generation: number, isReady: boolean): void;
}

const RESUME_WINDOW_NS = 3e9;
const DIAL_NS = 80e6;

export class ModelLink {
  readonly host: string;
  readonly box: string;
  readonly rttNs: number;
  /** Of the newest session; what each side believes to be in. */
  session = 0;
  hostUp = false;
  boxUp = false;
  isCut = false;
  cuts = 0;
  dialling = false;
  wanted = false;
  /** What the box said while the network was cut. */
  held: (() => void)[] = [];

  constructor(host: string, box: string, rttNs: number) {
    this.host = host;
    this.box = box;
    this.rttNs = rttNs;
  }

  /** Both sides are in one session: what either sends reaches the other. */
  get isUp(): boolean {
    return this.hostUp && this.boxUp;
  }
}

export class ModelLinks {
  readonly all: ModelLink[] = [];
  readonly #clock: VirtualClock;
  readonly #prng: Prng;
  readonly #byName = new Map<string, ModelLink>();
  readonly #hosts = new Map<string, HostSide>();
  readonly #boxes = new Map<string, LinkSide>();

  constructor(clock: VirtualClock, prng: Prng) {
    this.#clock = clock;
    this.#prng = prng;
  }

  add(host: string, box: string, rttNs: number): void {
    const link = new ModelLink(host, box, rttNs);
    this.all.push(link);
    this.#byName.set(`${host} ${box}`, link);
  }

  of(host: string, box: string): ModelLink | undefined {
    return this.#byName.get(`${host} ${box}`);
  }

  hostStarted(host: string, side: HostSide): void {
    this.#hosts.set(host, side);
  }

  boxStarted(box: string, side: LinkSide): void {
    this.#boxes.set(box, side);
    for (const link of this.all) if (link.box === box) this.#dial(link);
  }

  /** The process is gone: its peers notice within the resume window, or when it is back. */
  died(id: string): void {
    const isHost = this.#hosts.delete(id);
    this.#boxes.delete(id);
    for (const link of this.all) {
      if ((isHost ? link.host : link.box) !== id) continue;
      if (isHost) {
        link.hostUp = false;
        link.wanted = false;
      } else {
        link.boxUp = false;
      }
      link.held = [];
      this.#endLater(link, RESUME_WINDOW_NS * this.#prng.float(), 'the other process is gone');
    }
  }

  setPeers(host: string, boxes: ReadonlySet<string>): void {
    for (const link of this.all) {
      if (link.host !== host) continue;
      const wanted = boxes.has(link.box);
      if (wanted === link.wanted) continue;
      link.wanted = wanted;
      if (wanted) this.#dial(link);
      else this.#end(link, 'the host ends it');
    }
  }

  cut(link: ModelLink): void {
    if (link.isCut) return;
    link.isCut = true;
    link.cuts++;
    if (!link.hostUp && !link.boxUp) return;
    const { cuts, session } = link;
    for (const side of ['host', 'box'] as const) {
      this.#after(RESUME_WINDOW_NS + 500e6 * this.#prng.float(), (now) => {
        if (!link.isCut || link.cuts !== cuts || link.session !== session) return;
        this.#down(now, link, side, 'nothing came for the resume window');
      });
    }
  }

  heal(link: ModelLink): void {
    if (!link.isCut) return;
    link.isCut = false;
    if (!link.isUp) {
      this.#end(link, 'the other side has ended it');
      this.#dial(link);
      return;
    }
    const now = this.#clock.now();
    const { held } = link;
    link.held = [];
    for (const say of held) say();
    this.#boxes.get(link.box)?.sessionResumed(now, link.host);
    this.#hosts.get(link.host)?.sessionResumed(now, link.box);
  }

  /** What a box says of a slot, to the host that is in a session with it. */
  say(box: string, host: string, slot: number, generation: number, isReady: boolean): void {
    const link = this.of(host, box);
    if (link?.boxUp !== true) return;
    const { session } = link;
    const say = (): void =>
      this.#after(link.rttNs / 2, (now) => {
        if (link.session !== session || !link.hostUp) return;
        if (link.isCut) link.held.push(say);
        else this.#hosts.get(host)?.boxSaid(now, box, slot, generation, isReady);
      });
    say();
  }

  #dial(link: ModelLink): void {
    if (link.dialling || !link.wanted) return;
    link.dialling = true;
    this.#after(DIAL_NS * this.#prng.float() + link.rttNs, (now) => {
      link.dialling = false;
      const host = this.#hosts.get(link.host);
      const box = this.#boxes.get(link.box);
      if (host === undefined || box === undefined || !link.wanted) return;
      if (link.isCut || link.isUp) return;
      this.#down(now, link, 'host', 'a new session took its place');
      this.#down(now, link, 'box', 'a new session took its place');
      link.session++;
      link.held = [];
      link.hostUp = true;
      link.boxUp = true;
      host.sessionUp(now, link.box);
      box.sessionUp(now, link.host);
    });
  }

  #end(link: ModelLink, why: string): void {
    const now = this.#clock.now();
    this.#down(now, link, 'host', why);
    if (link.boxUp) this.#endLater(link, link.rttNs, why);
  }

  #endLater(link: ModelLink, afterNs: number, why: string): void {
    const { session } = link;
    this.#after(afterNs, (now) => {
      if (link.session !== session || link.isUp) return;
      this.#down(now, link, 'host', why);
      this.#down(now, link, 'box', why);
      this.#dial(link);
    });
  }

  #down(now: Nanos, link: ModelLink, side: 'host' | 'box', why: string): void {
    if (side === 'host') {
      if (!link.hostUp) return;
      link.hostUp = false;
      this.#hosts.get(link.host)?.sessionDown(now, link.box, why);
    } else {
      if (!link.boxUp) return;
      link.boxUp = false;
      this.#boxes.get(link.box)?.sessionDown(now, link.host, why);
    }
    if (!link.isCut) this.#endLater(link, link.rttNs, why);
  }

  #after(afterNs: number, fn: (now: Nanos) => void): void {
    this.#clock.at(nanos(this.#clock.now() + afterNs), fn);
  }
}
