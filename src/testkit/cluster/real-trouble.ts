/** What is done on purpose to a cluster of real nodes: processes killed, streams and roads cut, full disks. */
import type { Prng } from '#base/prng';
import type { VirtualClock } from '#base/virtual-clock';
import type { AgentProcess } from './agent-process.ts';
import type { ClusterOracle } from './cluster-oracle.ts';
import { Lasting } from './lasting.ts';
import { CRASH_POINTS, type ManagerProcess } from './manager-process.ts';
import { BOXES, HOSTS, type RealBox, type RealHost, type VirtualRoads } from './real-proxies.ts';
import type { WatchedStore } from './watched-store.ts';

/** A session that lost something has ended within this, and both sides know. */
const CALM_NS = 8e9;

export type RealAgent = AgentProcess<RealBox, RealHost>;

export interface TroubledNodes {
  readonly clock: VirtualClock;
  readonly oracle: ClusterOracle;
  readonly roads: VirtualRoads;
  readonly store: WatchedStore;
  readonly agents: ReadonlyMap<string, RealAgent>;
  readonly manager: ManagerProcess | undefined;
  /** The manager comes back after so long, however it died. */
  managerPauseNs: number;
  start(id: string): void;
}

export class RealTrouble {
  readonly #world: TroubledNodes;
  readonly #prng: Prng;
  readonly #lasting: Lasting;
  /** When something was last wrong with a process or a road. */
  readonly #troubledNs = new Map<string, number>();

  constructor(world: TroubledNodes, prng: Prng) {
    this.#world = world;
    this.#prng = prng;
    this.#lasting = new Lasting(world.clock, world.oracle);
  }

  /** Does one thing, drawn at random. */
  make(): void {
    const prng = this.#prng;
    const draw = prng.float();
    const id = prng.pick([...HOSTS, ...BOXES]);
    if (draw < 0.25) {
      this.#crashManager();
    } else if (draw < 0.5) {
      this.#cutRoad(prng.pick(HOSTS), prng.pick(BOXES));
    } else if (draw < 0.7) {
      this.#killAgent(id);
    } else if (draw < 0.9) {
      const told = prng.pick(['both', 'agent', 'manager'] as const);
      this.#world.oracle.tell(`cut the stream of ${id}, told: ${told}`, 'streams cut');
      this.#world.agents.get(id)?.stream?.cut(told);
    } else {
      this.#world.oracle.tell('the disk is full', 'disks full');
      this.#world.store.fullFor = prng.between(1, 3);
    }
  }

  heal(): void {
    const { store, manager } = this.#world;
    this.#lasting.endAll();
    store.fullFor = 0;
    if (manager !== undefined) manager.planned = undefined;
  }

  /** Whether nothing was wrong with these and what is between them for a while. */
  isCalm(host: string, box: string): boolean {
    const { clock } = this.#world;
    return [host, box, `${host} ${box}`].every(
      (what) => clock.now() - (this.#troubledNs.get(what) ?? -Infinity) > CALM_NS,
    );
  }

  #crashManager(): void {
    const { manager } = this.#world;
    this.#world.managerPauseNs = this.#duration(10e9);
    if (manager === undefined) return;
    this.#world.oracle.tell('the manager will die', 'managers killed');
    if (this.#prng.chance(0.5)) manager.crash();
    else manager.planned = { point: this.#prng.pick(CRASH_POINTS), when: () => true };
  }

  #cutRoad(host: string, box: string): void {
    const path = this.#world.roads.path(host, box);
    if (path?.isUp !== true) return;
    const mode = this.#prng.pick(['reset', 'silent'] as const);
    this.#world.oracle.tell(`cut ${host} ${box}, ${mode}`, 'roads cut');
    path.cut(mode);
    this.#last(`${host} ${box}`, this.#duration(8e9), () => path.heal());
  }

  #killAgent(id: string): void {
    const agent = this.#world.agents.get(id);
    if (agent === undefined || agent.isDead) return;
    this.#world.oracle.tell(`kill ${id}`, 'agents killed');
    agent.kill();
    this.#last(id, this.#duration(10e9), () => this.#world.start(id));
  }

  #last(what: string, forNs: number, undo: () => void): void {
    this.#troubledNs.set(what, Infinity);
    this.#lasting.begin(what, forNs, () => {
      this.#troubledNs.set(what, this.#world.clock.now());
      undo();
    });
  }

  /** Shorter than the resume window of a link as well as longer. */
  #duration(longestNs: number): number {
    return longestNs * this.#prng.float() ** 2;
  }
}
