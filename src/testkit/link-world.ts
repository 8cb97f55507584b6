/** A host's link and a box's links over virtual paths, with users that record what they are told. */
import { TimerDriver } from '#base/clock';
import { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import { BoxLinks } from '#fabric/box-links';
import { silentUser } from '#emulator/silent-user';
import { HostLink } from '#fabric/host-link';
import type { LinkOptions } from '#fabric/link-options';
import type { ArrivedTlp, LinkPort, LinkUser, SlotState } from '#fabric/link-user';
import { settleAfter } from '#fabric/settle-after';
import type { PeerIdentity, Transport } from '#fabric/transport';
import { VirtualNetwork, type VirtualPath, type VirtualPathOptions } from '#fabric/virtual-network';

export const HOST: PeerIdentity = { kind: 'host', id: 'h1' };
export const BOX: PeerIdentity = { kind: 'box', id: 'b1' };

export interface ReceivedTlp {
  readonly session: number;
  readonly slot: number;
  readonly generation: number;
  readonly bytes: Uint8Array;
  readonly atNs: number;
}

/** Records everything; `onTlp` decides what `linkTlp` returns (default: done with it). */
export class RecordingUser implements LinkUser {
  link: LinkPort | undefined;
  /** Counts `linkUp`. */
  session = 0;
  readonly tlps: ReceivedTlp[] = [];
  readonly states: { slot: number; generation: number; state: SlotState; afterTlps: number }[] = [];
  readonly downs: string[] = [];
  resumes = 0;
  onTlp: ((now: Nanos, link: LinkPort, tlp: ReceivedTlp) => boolean) | undefined;
  onUp: ((now: Nanos, link: LinkPort) => void) | undefined;
  onDown: ((now: Nanos) => void) | undefined;
  onResume: ((now: Nanos, link: LinkPort) => void) | undefined;

  linkUp(now: Nanos, link: LinkPort): void {
    this.link = link;
    this.session++;
    this.onUp?.(now, link);
  }

  linkTlp(now: Nanos, link: LinkPort, arrived: ArrivedTlp): boolean {
    const { slot, generation, bytes, offset, length } = arrived;
    const copy = bytes.slice(offset, offset + length);
    const tlp = { session: this.session, slot, generation, bytes: copy, atNs: now };
    this.tlps.push(tlp);
    return this.onTlp?.(now, link, tlp) ?? true;
  }

  /** Each by itself. */
  linkRun(): boolean {
    return false;
  }

  linkSlotState(_n: Nanos, _l: LinkPort, slot: number, generation: number, state: SlotState): void {
    this.states.push({ slot, generation, state, afterTlps: this.tlps.length });
  }

  linkResume(now: Nanos, link: LinkPort): void {
    this.resumes++;
    this.onResume?.(now, link);
  }

  linkDown(now: Nanos, _link: LinkPort, reason: string): void {
    this.link = undefined;
    this.downs.push(reason);
    this.onDown?.(now);
  }
}

export interface LinkWorldOptions {
  readonly seed?: number;
  readonly paths?: readonly VirtualPathOptions[];
  readonly host?: Partial<LinkOptions>;
  readonly box?: Partial<LinkOptions>;
}

export class LinkWorld {
  readonly clock = new VirtualClock();
  readonly prng: Prng;
  readonly network: VirtualNetwork;
  readonly paths: VirtualPath[];
  readonly hostUser = new RecordingUser();
  readonly boxUser = new RecordingUser();
  readonly reports: string[] = [];
  host: HostLink;
  readonly box: BoxLinks;
  /** What crosses the wire, with the end that sends it; set to look. */
  onFrame: ((from: 'host' | 'box', frame: Uint8Array) => void) | undefined;
  readonly #boxDriver: TimerDriver;
  #hostDriver: TimerDriver;
  readonly #dead = new Set<HostLink>();
  #sessionIds = 0;

  constructor(options: LinkWorldOptions = {}) {
    this.prng = new Prng(options.seed ?? 1);
    this.network = new VirtualNetwork(this.clock, this.prng.fork());
    const paths = options.paths ?? [{ rttNs: 10_000 }];
    this.paths = paths.map((path) => this.network.addPath(path));
    this.box = new BoxLinks({
      local: BOX,
      user: this.boxUser,
      report: (_now, peer, message) => this.reports.push(`${peer.id}: ${message}`),
      ...(options.box === undefined ? {} : { options: options.box }),
    });
    this.host = this.newHost(this.hostUser, options.host);
    this.#boxDriver = new TimerDriver(this.clock, this.box);
    this.#hostDriver = new TimerDriver(this.clock, this.host);
  }

  get now(): Nanos {
    return this.clock.now();
  }

  /** Another link of the same host identity; not driven by timers unless put in `replaceHost`. */
  newHost(user: LinkUser, options?: Partial<LinkOptions>, local = HOST): HostLink {
    const host: HostLink = new HostLink({
      local,
      peer: BOX,
      paths: this.paths.length,
      user,
      newSessionId: () => ++this.#sessionIds,
      sink: {
        connect: (_now, pathIndex) => this.#connect(host, pathIndex),
        report: (_now, peer, message) => this.reports.push(`${peer.id}: ${message}`),
      },
      ...(options === undefined ? {} : { options }),
    });
    return host;
  }

  /** The host process dies and another takes its place. */
  replaceHost(options?: Partial<LinkOptions>): void {
    this.network.kill(HOST);
    this.#hostDriver.stop();
    this.#dead.add(this.host);
    this.host = this.newHost(this.hostUser, options);
    this.#hostDriver = new TimerDriver(this.clock, this.host);
    this.host.start(this.now);
    this.settle();
  }

  /** Starts the link and runs until both ends are up. */
  up(): this {
    this.host.start(this.now);
    this.settle();
    this.clock.runWhile(
      () => this.hostUser.link === undefined || this.boxUser.link === undefined,
      60e9,
    );
    return this;
  }

  /** To be called after anything done to a link from outside. */
  settle(): void {
    this.#boxDriver.update();
    this.#hostDriver.update();
  }

  run(durationNs: number): void {
    this.clock.runUntil(this.now + durationNs);
  }

  #connect(host: HostLink, pathIndex: number): void {
    const path = this.paths[pathIndex] as VirtualPath;
    path.connect(
      {
        local: host.local,
        connected: (now, transport) => {
          if (this.#dead.has(host)) return silentUser(transport);
          const user = host.connected(now, this.#watched('host', transport));
          this.settle();
          return settleAfter(user, () => this.settle());
        },
        connectFailed: (now, reason) => {
          if (this.#dead.has(host)) return;
          host.connectFailed(now, reason);
          this.settle();
        },
      },
      {
        local: BOX,
        accept: (now, transport) => {
          const user = this.box.accept(now, this.#watched('box', transport));
          this.settle();
          return settleAfter(user, () => this.settle());
        },
      },
    );
  }

  #watched(from: 'host' | 'box', transport: Transport): Transport {
    return {
      peer: transport.peer,
      send: (now, bytes, offset, length) => {
        this.onFrame?.(from, bytes.subarray(offset, offset + length));
        return transport.send(now, bytes, offset, length);
      },
      close: () => transport.close(),
    };
  }
}
