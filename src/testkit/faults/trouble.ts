/**
 * What is done to a fault world on purpose: connections cut and made lossy, processes killed,
 * receivers filled up, tables changed. Each thing ends by itself after a while, or in `heal`.
 */
import type { Prng } from '#base/prng';
import { nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import type { VirtualPath, VirtualPathOptions } from '#fabric/virtual-network';
import type { FaultBox } from './fault-box.ts';
import type { FaultHost } from './fault-host.ts';
import type { WatchedPort } from './watched-port.ts';
import type { Operator } from './operator.ts';
import type { FaultOracle } from './oracle.ts';

/** One path between a host and a box, and what is wrong with it. */
export class TroubledPath {
  readonly host: string;
  readonly box: string;
  readonly path: VirtualPath;
  readonly options: VirtualPathOptions;
  /** Ends what is wrong, while something is. */
  end: (() => void) | undefined;
  /** When it was out of order: begin and end of each time. */
  readonly outages: { fromNs: number; toNs: number }[] = [];

  constructor(host: string, box: string, path: VirtualPath, options: VirtualPathOptions) {
    this.host = host;
    this.box = box;
    this.path = path;
    this.options = options;
  }

  /** For how long it was out of order since `sinceNs`. */
  outageNs(sinceNs: number): number {
    let sum = 0;
    for (const { fromNs, toNs } of this.outages)
      sum += Math.max(0, toNs - Math.max(fromNs, sinceNs));
    return sum;
  }
}

export interface TroubledWorld {
  readonly clock: VirtualClock;
  readonly oracle: FaultOracle;
  readonly operator: Operator;
  readonly paths: readonly TroubledPath[];
  hosts(): FaultHost[];
  boxes(): FaultBox[];
  /** `isOrderly`: it ends its links first, as a process does that is asked to stop. */
  killHost(host: FaultHost, isOrderly: boolean): void;
  killBox(box: FaultBox, isOrderly: boolean): void;
  /** Starts what is dead. */
  restart(id: string): void;
}

/** From the shortest to a few times the resume window of 3 s. */
const SHORTEST_NS = 1e6;
const LONGEST_NS = 8e9;
/** Shorter than the completion timeout: a full receiver is no error. */
const LONGEST_STALL_NS = 3.4e9;

export class Trouble {
  readonly #world: TroubledWorld;
  readonly #prng: Prng;
  readonly #stalls = new Set<() => void>();
  readonly #dead = new Map<string, () => void>();

  constructor(world: TroubledWorld, prng: Prng) {
    this.#world = world;
    this.#prng = prng;
  }

  /** Does one thing, drawn at random. */
  make(): void {
    const world = this.#world;
    const { operator } = world;
    const prng = this.#prng;
    const draw = prng.below(30);
    if (draw < 7) this.#cut(prng.pick(this.#world.paths));
    else if (draw < 11) this.#impair(prng.pick(this.#world.paths));
    else if (draw < 15) this.#kill();
    else if (draw < 23) this.#stall();
    else if (draw < 24) operator.raise(prng.pick(operator.bindings));
    else if (draw < 28) operator.move(prng.pick(operator.bindings));
    else if (draw < 29) this.#dropConnection();
    else for (const host of world.hosts()) host.canaries.takeBack();
    for (const one of [...world.hosts(), ...world.boxes()]) one.settle();
  }

  /** Ends everything. */
  heal(): void {
    for (const path of this.#world.paths) path.end?.();
    for (const end of this.#stalls) end();
    for (const end of this.#dead.values()) end();
  }

  #tell(text: string): void {
    this.#world.oracle.event(text);
  }

  #later(afterNs: number, fn: () => void): void {
    const { clock } = this.#world;
    clock.at(nanos(clock.now() + afterNs), fn);
  }

  /** Short ones as well as long ones. */
  #duration(longestNs: number): number {
    const prng = this.#prng;
    if (prng.chance(0.5)) return longestNs * prng.float();
    return SHORTEST_NS * (longestNs / SHORTEST_NS) ** prng.float();
  }

  #cut(troubled: TroubledPath): void {
    if (troubled.end !== undefined) return;
    const mode = this.#prng.chance(0.5) ? 'reset' : 'silent';
    this.#tell(`cut ${troubled.host} ${troubled.box} ${mode}`);
    this.#world.oracle.counts.cuts++;
    this.#breakPath(troubled, () => troubled.path.heal());
    troubled.path.cut(mode);
  }

  #impair(troubled: TroubledPath): void {
    if (troubled.end !== undefined) return;
    const prng = this.#prng;
    const wrong = (): number => (prng.chance(0.5) ? prng.pick([0.02, 0.1, 0.3]) : 0);
    this.#breakPath(troubled, () =>
      troubled.path.setOptions({ loss: 0, duplication: 0, reordering: 0 }),
    );
    const which = prng.below(3);
    this.#tell(`impair ${troubled.host} ${troubled.box}`);
    troubled.path.setOptions({
      loss: which === 0 ? 0.1 : wrong(),
      duplication: which === 1 ? 0.3 : wrong(),
      reordering: which === 2 ? 0.3 : wrong(),
      reorderDelayNs: prng.pick([10e3, 1e6]),
    });
  }

  #breakPath(troubled: TroubledPath, mend: () => void): void {
    const { oracle, clock } = this.#world;
    oracle.beginTrouble();
    const outage = { fromNs: clock.now(), toNs: Infinity };
    troubled.outages.push(outage);
    const end = (): void => {
      if (troubled.end !== end) return;
      troubled.end = undefined;
      outage.toNs = clock.now();
      this.#tell(`mend ${troubled.host} ${troubled.box}`);
      mend();
      oracle.endTrouble();
    };
    troubled.end = end;
    this.#later(this.#duration(LONGEST_NS), end);
  }

  #kill(): void {
    const { oracle, operator } = this.#world;
    const hosts = this.#world.hosts();
    const boxes = this.#world.boxes();
    const victim = this.#prng.below(hosts.length + boxes.length);
    const host = hosts[victim];
    const box = boxes[victim - hosts.length];
    const id = (host ?? box)?.name;
    if (id === undefined) return;
    this.#tell(`kill ${id}`);
    oracle.counts.kills++;
    oracle.beginTrouble();
    // Some say goodbye before they go.
    const isOrderly = this.#prng.chance(0.3);
    if (host !== undefined) this.#world.killHost(host, isOrderly);
    else if (box !== undefined) this.#world.killBox(box, isOrderly);
    // An operator who is quick: the other end still waits for the session to be resumed.
    const theirs = operator.bindings.filter((binding) => binding.host === id || binding.box === id);
    if (theirs.length > 0 && this.#prng.chance(0.3)) operator.raise(this.#prng.pick(theirs));
    const end = (): void => {
      if (this.#dead.get(id) !== end) return;
      this.#dead.delete(id);
      this.#tell(`restart ${id}`);
      this.#world.restart(id);
      oracle.endTrouble();
    };
    this.#dead.set(id, end);
    if (this.#prng.chance(0.3)) end();
    else this.#later(this.#duration(5e9), end);
  }

  #stall(): void {
    const { oracle } = this.#world;
    const processes = [...this.#world.hosts(), ...this.#world.boxes()];
    if (processes.length === 0) return;
    const process = this.#prng.pick(processes);
    const ports: WatchedPort[] = [...process.watch.ports].filter((port) => port.held.size === 0);
    const port = ports[this.#prng.below(Math.max(1, ports.length))];
    if (port === undefined || port.held.mode !== 'nothing') return;
    oracle.counts.stalls++;
    oracle.beginStall();
    const mode = this.#prng.chance(0.6) ? 'non-posted' : 'posted';
    this.#tell(`${process.name} has no room for ${mode} of ${port.peer.id}`);
    process.watch.hold(port, mode);
    const end = (): void => {
      if (!this.#stalls.delete(end)) return;
      this.#tell(`${process.name} has room for ${port.peer.id}`);
      if (process.alive) process.watch.letGo(this.#world.clock.now(), port);
      oracle.endStall();
    };
    this.#stalls.add(end);
    this.#later(this.#duration(LONGEST_STALL_NS), end);
  }

  #dropConnection(): void {
    const { clock, oracle } = this.#world;
    for (const host of this.#world.hosts()) {
      for (const link of host.virtual.links.values()) {
        link.dropConnection(clock.now(), 'dropped by the test');
      }
    }
    oracle.disturb();
  }
}
