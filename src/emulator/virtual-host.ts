/** One host in virtual time: soft host, host proxy and its links, driven by one timer. */
import { assert } from '#base/assert';
import type { Timed } from '#base/clock';
import { TimerDriver } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import { HostLink, type HostLinkConfig } from '#fabric/host-link';
import { HostProxy, type HostProxyOptions } from '#fabric/host-proxy';
import type { LinkOptions } from '#fabric/link-options';
import type { LinkUser } from '#fabric/link-user';
import type { HostRow } from '#fabric/mapping-table';
import { settleAfter } from '#fabric/settle-after';
import type { PeerIdentity, Transport, TransportUser } from '#fabric/transport';
import type { VirtualDialer, VirtualListener, VirtualPath } from '#fabric/virtual-network';
import { HotPlug, type HotPlugEvents } from '#host/hot-plug';
import { SoftHost, type SoftHostOptions } from '#host/root-complex';
import type { Outcome, Task, TaskScope } from '#host/task';
import type { DownstreamFabric, RootSide } from '#pcie/root-port';
import { silentUser } from './silent-user.ts';

/** Puts observers between the parts of a host; each returns what the other side shall talk to. */
export interface HostWatch {
  /** Between links and proxy. */
  user(proxy: HostProxy): LinkUser;
  /** Between proxy and root complex. */
  rootSide(soft: SoftHost): RootSide;
  /** Between root complex and proxy. */
  fabric(proxy: HostProxy): DownstreamFabric;
}

export interface VirtualHostOptions {
  readonly id: string;
  readonly soft: SoftHostOptions;
  readonly proxy?: Omit<HostProxyOptions, 'hostId' | 'rootSide'>;
  readonly link?: Partial<LinkOptions>;
  readonly hotPlug?: HotPlugEvents;
  readonly watch?: HostWatch;
  readonly report?: (now: Nanos, peer: PeerIdentity, message: string) => void;
  readonly newSessionId: () => number;
}

export class VirtualHost {
  readonly id: string;
  readonly soft: SoftHost;
  readonly hotPlug: HotPlug;
  readonly proxy: HostProxy;
  readonly links = new Map<string, HostLink>();
  /** The same, gone through at each turn. */
  #linkList: readonly HostLink[] = [];
  readonly #options: VirtualHostOptions;
  /** All that happens to the host is an event of it. It may lag behind the world's. */
  readonly clock: VirtualClock;
  readonly #driver: TimerDriver;
  readonly #user: LinkUser;
  #dead = false;

  constructor(clock: VirtualClock, options: VirtualHostOptions) {
    this.id = options.id;
    this.#options = options;
    this.clock = clock;
    this.soft = new SoftHost(options.soft);
    this.hotPlug = new HotPlug(this.soft, options.hotPlug);
    const { watch } = options;
    const rootSide = watch?.rootSide(this.soft) ?? this.soft;
    this.proxy = new HostProxy({ ...options.proxy, hostId: options.id, rootSide });
    this.#user = watch?.user(this.proxy) ?? this.proxy;
    this.soft.attach(watch?.fabric(this.proxy) ?? this.proxy);
    const machine: Timed = {
      nextDeadlineNs: () => this.#nextDeadlineNs(),
      tick: (now) => this.#tick(now),
    };
    this.#driver = new TimerDriver(clock, machine);
  }

  /** Starts the link to a box over `paths`, tried in turn. `listener` is asked at each attempt. */
  connect(
    boxId: string,
    listener: () => VirtualListener | undefined,
    paths: readonly VirtualPath[],
  ): HostLink {
    assert(
      paths.every(({ dialerClock }) => dialerClock === this.clock),
      'a host that may lag has paths of its own',
    );
    this.clock.catchUp();
    const config: HostLinkConfig = {
      local: { kind: 'host', id: this.id },
      peer: { kind: 'box', id: boxId },
      paths: paths.length,
      user: this.#user,
      sink: {
        connect: (_now, pathIndex) => {
          const path = paths[pathIndex];
          if (path !== undefined) path.connect(this.#dialer(link), listener());
        },
        ...(this.#options.report === undefined ? {} : { report: this.#options.report }),
      },
      newSessionId: this.#options.newSessionId,
      ...(this.#options.link === undefined ? {} : { options: this.#options.link }),
    };
    const link = new HostLink(config);
    this.links.set(boxId, link);
    this.#linkList = [...this.links.values()];
    const now = this.clock.now();
    link.start(now);
    this.#settle(now);
    return link;
  }

  /** Puts a table in force; a refusal is thrown. */
  setTable(rows: readonly HostRow[]): void {
    this.clock.catchUp();
    const now = this.clock.now();
    const [error] = this.proxy.setTable(now, rows);
    if (error !== undefined) throw new DxpuError('invalid_argument', error.message);
    this.#settle(now);
  }

  /** Starts a task of the soft host; `done` is called within virtual time. */
  run<T>(task: Task<T>, done: (now: Nanos, outcome: Outcome<T>) => void, scope?: TaskScope): void {
    this.clock.catchUp();
    const now = this.clock.now();
    this.soft.tasks.run(now, task, done, scope);
    this.#settle(now);
  }

  /**
   * To be called after anything was done to the parts from outside: sends and arms the timer. A host that
   * may lag catches up before (`clock.catchUp`).
   */
  settle(): void {
    this.clock.catchUp();
    this.#settle(this.clock.now());
  }

  /** The process dies: its memory is gone, nothing is called any more. */
  kill(): void {
    this.clock.catchUp();
    this.#dead = true;
    this.#driver.stop();
  }

  #dialer(link: HostLink): VirtualDialer {
    return {
      local: link.local,
      connected: (now: Nanos, transport: Transport): TransportUser => {
        if (this.#dead) return silentUser(transport);
        const user = link.connected(now, transport);
        this.#settle(now);
        return settleAfter(user, (at) => this.#settle(at));
      },
      connectFailed: (now, reason) => {
        if (this.#dead) return;
        link.connectFailed(now, reason);
        this.#settle(now);
      },
    };
  }

  #settle(now: Nanos): void {
    if (this.#dead) return;
    this.proxy.flush(now);
    this.#driver.update();
  }

  #nextDeadlineNs(): number {
    let earliest = this.soft.nextDeadlineNs();
    for (const link of this.#linkList) {
      const linkNs = link.nextDeadlineNs();
      if (linkNs < earliest) earliest = linkNs;
    }
    return earliest;
  }

  #tick(now: Nanos): void {
    this.soft.tick(now);
    for (const link of this.#linkList) link.tick(now);
    this.proxy.flush(now);
  }
}
