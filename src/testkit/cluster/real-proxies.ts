/**
 * The nodes of the daemons, with their proxies, links, devices and soft hosts, in virtual time: what an
 * agent's core is over in a real process, without the process.
 *
 * `RealBox` and `RealHost` own a node each and settle it after each call of the agent. Connections come
 * from a `VirtualNetwork`; a node asks for one with a promise, so whoever drives the clock lets promises
 * settle between two steps (`VirtualRoads.hasNews`).
 */
import type {
  BoxDataPlane,
  BoxRowOrder,
  HostDataPlane,
  HostPeer,
  HostRowOrder,
} from '#agent/core/data-plane';
import { BoxNode } from '#agent/daemon/box-node';
import { HostNode } from '#agent/daemon/host-node';
import type { Logger } from '#agent/daemon/logger';
import { DxpuError } from '#base/errors';
import type { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import type { StartableTransport } from '#fabric/fault-transport';
import type { PeerIdentity, Transport, TransportUser } from '#fabric/transport';
import { VirtualNetwork, type VirtualPath } from '#fabric/virtual-network';
import type { BoxSlotReport, HostSlotReport, PathReport } from '#proto/agent-messages';
import { PATH } from './model-host.ts';

export const HOSTS: readonly string[] = ['h0', 'h1'];
export const BOXES: readonly string[] = ['b0', 'b1'];

const REAL_MEMORY_BYTES = 2 ** 20;

const quiet = (): void => {};
const LOG: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };

/** A connection whose user comes a little later than the connection. */
class StartedTransport implements StartableTransport, TransportUser {
  readonly #inner: Transport;
  #user: TransportUser | undefined;
  #end: { now: Nanos; reason: string } | undefined;

  constructor(inner: Transport) {
    this.#inner = inner;
  }

  get peer(): PeerIdentity {
    return this.#inner.peer;
  }

  send(now: Nanos, bytes: Uint8Array, offset: number, length: number): boolean {
    return this.#inner.send(now, bytes, offset, length);
  }

  close(): void {
    this.#inner.close();
  }

  start(user: TransportUser): void {
    this.#user = user;
    if (this.#end !== undefined) user.closed(this.#end.now, this.#end.reason);
  }

  frame(now: Nanos, bytes: Uint8Array, offset: number, length: number): void {
    this.#user?.frame(now, bytes, offset, length);
  }

  turnEnd(now: Nanos): void {
    this.#user?.turnEnd(now);
  }

  writable(now: Nanos): void {
    this.#user?.writable(now);
  }

  closed(now: Nanos, reason: string): void {
    if (this.#user === undefined) this.#end = { now, reason };
    else this.#user.closed(now, reason);
  }
}

/** The ways between hosts and boxes. */
export class VirtualRoads {
  readonly network: VirtualNetwork;
  /** A promise was settled: what waits for it has yet to run. */
  hasNews = false;
  readonly #boxes = new Map<string, RealBox>();
  readonly #paths = new Map<string, VirtualPath>();

  constructor(clock: VirtualClock, prng: Prng) {
    this.network = new VirtualNetwork(clock, prng);
  }

  add(host: string, box: string, rttNs: number): void {
    this.#paths.set(`${host} ${box}`, this.network.addPath({ rttNs }));
  }

  path(host: string, box: string): VirtualPath | undefined {
    return this.#paths.get(`${host} ${box}`);
  }

  opened(box: RealBox): void {
    this.#boxes.set(box.id, box);
  }

  closed(id: string): void {
    this.#boxes.delete(id);
  }

  connect(host: string, boxId: string): Promise<StartableTransport> {
    return new Promise((resolve, reject) => {
      const box = this.#boxes.get(boxId);
      const listener =
        box === undefined
          ? undefined
          : {
              local: { kind: 'box', id: boxId } as const,
              accept: (_now: Nanos, transport: Transport): TransportUser => {
                const started = new StartedTransport(transport);
                box.node.accept(started);
                return started;
              },
            };
      const dialer = {
        local: { kind: 'host', id: host } as const,
        connected: (_now: Nanos, transport: Transport): TransportUser => {
          const started = new StartedTransport(transport);
          this.hasNews = true;
          resolve(started);
          return started;
        },
        connectFailed: (_now: Nanos, reason: string): void => {
          this.hasNews = true;
          reject(new DxpuError('unavailable', reason));
        },
      };
      this.path(host, boxId)?.connect(dialer, listener);
    });
  }
}

export interface RealBoxOptions {
  readonly id: string;
  readonly uuids: readonly string[];
  readonly clock: VirtualClock;
  readonly roads: VirtualRoads;
  readonly onChange: () => void;
}

export class RealBox implements BoxDataPlane {
  readonly id: string;
  readonly node: BoxNode;
  isBehind = false;
  isDead = false;
  readonly #options: RealBoxOptions;

  constructor(options: RealBoxOptions) {
    const { id, uuids, clock, roads, onChange } = options;
    this.id = id;
    this.#options = options;
    this.node = new BoxNode({
      id,
      devices: uuids.map((uuid, slot) => ({
        slot,
        kind: 'accel',
        options: { uuid, memoryBytes: REAL_MEMORY_BYTES },
        nvlinkGroup: 'all',
      })),
      clock,
      log: LOG,
      isManaged: true,
      onChanged: onChange,
    });
    roads.opened(this);
  }

  slots(): readonly BoxSlotReport[] {
    return this.node.plane.slots();
  }

  setRows(now: Nanos, rows: readonly BoxRowOrder[]): string {
    const refused = this.node.plane.setRows(now, rows);
    this.isBehind = refused !== '';
    this.#settle();
    return refused;
  }

  kill(): void {
    this.isDead = true;
    const { roads } = this.#options;
    roads.closed(this.id);
    roads.network.kill({ kind: 'box', id: this.id });
    this.node.stop('the process is gone');
  }

  #settle(): void {
    const { clock } = this.#options;
    clock.at(clock.now(), () => {
      if (!this.isDead) this.node.settle();
    });
  }
}

export interface RealHostOptions {
  readonly id: string;
  readonly virtualSlots: number;
  readonly clock: VirtualClock;
  readonly roads: VirtualRoads;
  readonly newSessionId: () => number;
  readonly onChange: () => void;
}

export class RealHost implements HostDataPlane {
  readonly id: string;
  readonly node: HostNode;
  isBehind = false;
  isDead = false;
  readonly #options: RealHostOptions;

  constructor(options: RealHostOptions) {
    const { id, virtualSlots, clock, roads, newSessionId, onChange } = options;
    this.id = id;
    this.#options = options;
    this.node = new HostNode({
      id,
      softHost: {
        ports: Array.from({ length: virtualSlots }, (_, slot) => ({
          secondaryBus: slot + 1,
          nonPrefetchableBase: 0xe000_0000 + slot * REAL_MEMORY_BYTES,
          nonPrefetchableBytes: REAL_MEMORY_BYTES,
          prefetchableBase: 2 ** 38 + slot * REAL_MEMORY_BYTES,
          prefetchableBytes: REAL_MEMORY_BYTES,
        })),
        memory: [{ base: 0, sizeBytes: REAL_MEMORY_BYTES }],
      },
      clock,
      log: LOG,
      isManaged: true,
      connect: ({ box }) => roads.connect(id, box),
      newSessionId,
      onChanged: onChange,
    });
  }

  slots(): readonly HostSlotReport[] {
    return this.node.plane.slots();
  }

  paths(): readonly PathReport[] {
    return this.node.plane.paths();
  }

  setRows(now: Nanos, rows: readonly HostRowOrder[]): string {
    const refused = this.node.plane.setRows(now, rows);
    this.isBehind = refused !== '';
    this.#settle();
    return refused;
  }

  setPeers(now: Nanos, peers: readonly HostPeer[]): void {
    // Names take the place of addresses here; a node asks for what can be one.
    const endpoints = [{ path: PATH, address: '127.0.0.1:7000' }];
    this.node.plane.setPeers(
      now,
      peers.map(({ box }) => ({ box, endpoints })),
    );
    this.#settle();
  }

  plug(now: Nanos, slot: number): void {
    this.node.plane.plug(now, slot);
    this.#settle();
  }

  unplug(now: Nanos, slot: number, surprise: boolean): void {
    this.node.plane.unplug(now, slot, surprise);
    this.#settle();
  }

  kill(): void {
    this.isDead = true;
    this.#options.roads.network.kill({ kind: 'host', id: this.id });
    this.node.stop('the process is gone');
  }

  #settle(): void {
    const { clock } = this.#options;
    clock.at(clock.now(), () => {
      if (!this.isDead) this.node.settle();
    });
  }
}
