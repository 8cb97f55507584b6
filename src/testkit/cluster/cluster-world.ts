/**
 * A whole pool in virtual time, from one seed: a manager with its store, ten hosts and ten boxes with the
 * agents' real cores, users, and everything that can go wrong between them. Things go wrong for a while;
 * then all are honest, alive and connected, and everything asked for must come to its end.
 *
 * Who owns what: `ClusterWorld` owns the processes and the loop. `ClusterTrouble` breaks things, `Users`
 * ask. `GroundTruth` sees what can pass, `StoreChecks` every batch, `AnswerBook` every answer, `Watcher`
 * every entry of the log. All draw from generators forked from the one seed, and nothing else may decide
 * what happens.
 */
import type { AgentFaults } from '#agent/core/agent-faults';
import { Prng } from '#base/prng';
import { nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import type { PoolFaults } from '#manager/domain/pool-options';
import type { World, WorldKind } from '../campaign/campaign.ts';
import type { WorldResult } from '../campaign/oracle.ts';
import { AgentProcess, type Plane } from './agent-process.ts';
import { AnswerBook } from './answer-book.ts';
import { ClusterChecks } from './cluster-checks.ts';
import { ClusterCounts, ClusterInvariant, ClusterOracle } from './cluster-oracle.ts';
import { ClusterTrouble, type TroubledCluster } from './cluster-trouble.ts';
import { GroundTruth } from './ground-truth.ts';
import { Honesty } from './honesty.ts';
import type { LiarsKnowledge } from './liar.ts';
import { ManagerProcess } from './manager-process.ts';
import { ModelBox, type ModelBoxFaults } from './model-box.ts';
import { BoxHardware } from './model-box-slot.ts';
import { ModelHost, type ModelHostFaults } from './model-host.ts';
import { ModelLinks } from './model-links.ts';
import { BOXES, type ClusterPlan, drawClusterPlan, HOSTS, MODELS } from './plan.ts';
import { StoreChecks } from './store-checks.ts';
import { StoreMirror } from './store-mirror.ts';
import { Users } from './users.ts';
import { Watcher } from './watcher.ts';
import { type StoreFaults, WatchedStore } from './watched-store.ts';

/** Checks left out on purpose, to see that this cluster notices. */
export interface PlantedClusterFaults {
  readonly pool?: PoolFaults;
  /** Of every agent that is said to be honest. */
  readonly agent?: AgentFaults;
  readonly box?: ModelBoxFaults;
  readonly host?: ModelHostFaults;
  readonly store?: StoreFaults;
  /** A user draws from `Math.random`. */
  readonly unseeded?: boolean;
}

export type ClusterResult = WorldResult<ClusterInvariant, ClusterCounts>;

const MAX_STEPS = 300_000;
const LOOK_EVERY = 8;
const WALL_START_MS = Date.UTC(2026, 0, 1);

export class ClusterWorld implements TroubledCluster, World<ClusterInvariant, ClusterCounts> {
  readonly seed: number;
  readonly clock = new VirtualClock();
  readonly oracle = new ClusterOracle(this.clock);
  readonly honesty = new Honesty();
  readonly mirror = new StoreMirror();
  readonly plan: ClusterPlan;
  readonly links: ModelLinks;
  readonly truth: GroundTruth;
  readonly store: WatchedStore;
  readonly book: AnswerBook;
  readonly users: Users;
  readonly watcher: Watcher;
  readonly hardware: readonly BoxHardware[];
  readonly knowledge: LiarsKnowledge;
  readonly slowNs = new Map<string, number>();
  readonly cutOff = new Set<string>();
  manager: ManagerProcess | undefined;
  managerPauseNs = 0;
  restoreTo: number | undefined;
  wallOffsetMs = 0;
  readonly #planted: PlantedClusterFaults;
  readonly #prng: Prng;
  readonly #trouble: ClusterTrouble;
  readonly #agents = new Map<string, AgentProcess>();
  #instances = 0;
  #steps = 0;

  constructor(seed: number, planted: PlantedClusterFaults = {}) {
    this.seed = seed;
    this.#planted = planted;
    const prng = new Prng(seed);
    this.#prng = prng;
    this.plan = drawClusterPlan(prng.fork());
    const { oracle, honesty, mirror, clock, plan } = this;
    this.links = new ModelLinks(clock, prng.fork());
    for (let h = 0; h < HOSTS; h++) {
      for (let b = 0; b < BOXES; b++) this.links.add(`h${h}`, `b${b}`, plan.rttNs(h, b));
    }
    this.truth = new GroundTruth({ oracle, honesty, links: this.links, store: mirror });
    const checks = new StoreChecks(oracle, honesty, mirror, this.truth);
    this.store = new WatchedStore(oracle, mirror, checks, planted.store ?? {});
    this.book = new AnswerBook(oracle, mirror, plan.boxes);
    this.watcher = new Watcher(oracle);
    this.users = new Users({
      clock,
      oracle,
      book: this.book,
      prng: prng.fork(),
      manager: () => this.manager,
      bindings: () => mirror.bindings,
      hosts: plan.hosts.map(({ id }) => id),
      models: MODELS.map(({ name }) => name),
    });
    this.hardware = plan.boxes.map((box) => new BoxHardware(box));
    this.knowledge = {
      hosts: plan.hosts.map(({ id }) => id),
      boxes: plan.boxes.map(({ id }) => id),
      highestGeneration: () => mirror.counters.generation,
    };
    this.#trouble = new ClusterTrouble(this, prng.fork());
    this.#startManager();
    for (const { id } of [...plan.boxes, ...plan.hosts]) this.restartAgent(id);
  }

  run(): ClusterResult {
    try {
      this.#breakThings();
      if (this.oracle.violation === undefined) {
        this.#trouble.heal();
        this.users.isLossy = false;
        new ClusterChecks(this).run();
      }
    } catch (error) {
      this.oracle.threw(error);
    }
    return this.oracle.result(this.seed);
  }

  agents(): AgentProcess[] {
    return [...this.#agents.values()];
  }

  killAgent(id: string): void {
    this.#agents.get(id)?.kill();
  }

  restartAgent(id: string): void {
    const before = this.#agents.get(id);
    if (before !== undefined && !before.isDead) before.kill();
    this.honesty.restarted(id);
    const { clock, oracle, plan } = this;
    this.oracle.event(`start ${id}`);
    const agent: AgentProcess = new AgentProcess(
      this.#plane(id, () => agent.changed()),
      {
        clock,
        oracle,
        prng: this.#prng.fork(),
        instance: `${id}-${++this.#instances}`,
        delayNs: () => plan.streamDelayNs + (this.slowNs.get(id) ?? 0),
        keepAliveNs: plan.keepAliveNs,
        onWire: plan.onWire,
        pathIntervalNs: 20e9,
        manager: () => this.manager,
        isCutOff: () => this.cutOff.has(id),
        faults: this.#planted.agent ?? {},
      },
    );
    this.#agents.set(id, agent);
  }

  /** Lets the world go on until `done` says so; false when it took longer than `limitNs`. */
  runUntil(done: () => boolean, limitNs: number): boolean {
    const untilNs = this.clock.now() + limitNs;
    // What is asked is seldom the next step's doing, and costs more than a step.
    while (this.#steps % LOOK_EVERY !== 0 || !done()) {
      if (this.oracle.violation !== undefined) return false;
      if (this.clock.now() > untilNs || !this.clock.step()) return done();
      if (++this.#steps <= MAX_STEPS) continue;
      const message = `the cluster does not come to rest in ${MAX_STEPS} steps`;
      this.oracle.fail(ClusterInvariant.PROGRESS, message);
    }
    return true;
  }

  #breakThings(): void {
    const prng = this.#prng;
    const { operations, troubles, durationNs } = this.plan;
    // Everybody gets there first, mostly.
    if (prng.chance(0.8)) this.#pass(3e9);
    const pauseNs = durationNs / (operations + troubles);
    let left = { operations, troubles };
    while (left.operations + left.troubles > 0 && this.oracle.violation === undefined) {
      const isOperation = prng.below(left.operations + left.troubles) < left.operations;
      if (isOperation) {
        left = { ...left, operations: left.operations - 1 };
        if (this.#planted.unseeded === true && Math.random() < 0.5) this.users.act();
        this.users.act();
      } else {
        left = { ...left, troubles: left.troubles - 1 };
        this.#trouble.make();
      }
      // At any step: at once, a few messages on, or after a time in which things come to rest.
      const draw = prng.float();
      if (draw < 0.3) this.#pass(0);
      else if (draw < 0.6) this.#pass(pauseNs * 0.1 * prng.float());
      else this.#pass(pauseNs * 3.5 * prng.float());
    }
  }

  #pass(durationNs: number): void {
    this.runUntil(() => false, durationNs);
  }

  #startManager(): void {
    const { clock, oracle, honesty, store, plan, mirror } = this;
    if (this.restoreTo !== undefined) {
      store.restore(this.restoreTo);
      this.restoreTo = undefined;
      this.book.forget();
    }
    this.book.checkKept();
    this.manager = new ManagerProcess({
      clock,
      oracle,
      honesty,
      store,
      prng: this.#prng.fork(),
      turnNs: plan.turnNs,
      wallMs: () => WALL_START_MS + this.wallOffsetMs + Math.floor(clock.now() / 1e6),
      faults: this.#planted.pool ?? {},
      onAnswer: (caller, command, answer) => this.book.answered(caller, command, answer),
      onCommit: (batch) => {
        if (batch.forgetRequestsBeforeMs !== undefined) this.book.forget();
        this.#trouble.committed(batch);
      },
      onLogged: (entries) => this.watcher.logged(entries),
      onDeath: () => this.#managerDied(),
    });
    oracle.event('the manager starts');
    this.watcher.resume(store, mirror.counters.position);
  }

  #managerDied(): void {
    this.manager = undefined;
    const { clock } = this;
    clock.at(nanos(clock.now() + this.managerPauseNs), () => {
      if (this.manager === undefined) this.#startManager();
    });
  }

  #plane(id: string, onChange: () => void): Plane {
    const { clock, links, plan, truth } = this;
    const shared = { clock, links, plan, watch: truth, onChange, prng: this.#prng.fork() };
    const hardware = this.hardware.find((one) => one.plan.id === id);
    if (hardware !== undefined) {
      const box = new ModelBox({ ...shared, hardware, faults: this.#planted.box ?? {} });
      truth.boxes.set(id, box);
      links.boxStarted(id, box);
      return { kind: 'box', box, plan: hardware.plan };
    }
    const host = plan.hosts.find((one) => one.id === id);
    if (host === undefined) throw new RangeError(`there is no ${id}`);
    const nodeAt = (box: string, slot: number) =>
      this.hardware.find((one) => one.plan.id === box)?.nodes[slot]?.node;
    const faults = this.#planted.host ?? {};
    const model = new ModelHost({ ...shared, host, faults, nodeAt });
    truth.hosts.set(id, model);
    links.hostStarted(id, model);
    return { kind: 'host', host: model, plan: host };
  }
}

export const CLUSTERS: WorldKind<PlantedClusterFaults, ClusterInvariant, ClusterCounts> = {
  name: 'cluster',
  worlds: 'virtual clusters',
  newWorld: (seed, planted) => new ClusterWorld(seed, planted),
  newCounts: () => new ClusterCounts(),
  repeatEvery: 50,
};
