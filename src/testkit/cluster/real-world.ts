/**
 * A smaller pool in virtual time, from one seed, with nothing modelled but the network: the manager's core,
 * the agents' cores, and under them the daemons' own nodes with proxies, links, devices and soft hosts.
 * Programs on the hosts write into what they are given and look whether it is theirs.
 *
 * It owns its processes and the loop; judges and users are those of `ClusterWorld`. No proxy lies here and
 * no store is set back: that is the models' part.
 */
import { Prng } from '#base/prng';
import { nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import type { PoolFaults } from '#manager/domain/pool-options';
import { AgentProcess, type Plane } from './agent-process.ts';
import { AnswerBook } from './answer-book.ts';
import { isSettled } from './cluster-checks.ts';
import { ClusterInvariant, ClusterOracle } from './cluster-oracle.ts';
import type { ClusterResult } from './cluster-world.ts';
import { Honesty } from './honesty.ts';
import { ManagerProcess } from './manager-process.ts';
import type { BoxPlan, HostPlan } from './plan.ts';
import { BOXES, HOSTS, RealBox, RealHost, VirtualRoads } from './real-proxies.ts';
import { RealTenants } from './real-tenants.ts';
import { type RealAgent, RealTrouble, type TroubledNodes } from './real-trouble.ts';
import { RealTruth } from './real-truth.ts';
import { StoreChecks } from './store-checks.ts';
import { StoreMirror } from './store-mirror.ts';
import { Users } from './users.ts';
import { WatchedStore } from './watched-store.ts';
import { Watcher } from './watcher.ts';

const SLOTS_PER_BOX = 2;
const VIRTUAL_SLOTS = 3;
const MAX_STEPS = 400_000;
const DEADLINE_NS = 300e9;
const REST_NS = 5e9;
const TENANT_NS = 400e6;
const WALL_START_MS = Date.UTC(2026, 0, 1);

type RealPlane = Plane<RealBox, RealHost>;

export class RealWorld implements TroubledNodes {
  readonly seed: number;
  readonly clock = new VirtualClock();
  readonly oracle = new ClusterOracle(this.clock);
  readonly mirror = new StoreMirror();
  readonly #faults: PoolFaults;
  readonly #prng: Prng;
  readonly roads: VirtualRoads;
  readonly store: WatchedStore;
  readonly #book: AnswerBook;
  readonly #users: Users;
  readonly #watcher = new Watcher(this.oracle);
  readonly #tenants: RealTenants;
  readonly #honesty = new Honesty();
  readonly agents = new Map<string, RealAgent>();
  readonly #truth = new RealTruth();
  readonly #trouble: RealTrouble;
  manager: ManagerProcess | undefined;
  managerPauseNs = 0;
  #sessions = 1;
  #instances = 0;
  #steps = 0;

  /** `faults` are planted, to see that this world notices. */
  constructor(seed: number, faults: PoolFaults = {}) {
    this.seed = seed;
    this.#faults = faults;
    const prng = new Prng(seed);
    this.#prng = prng;
    const { oracle, mirror, clock } = this;
    this.roads = new VirtualRoads(clock, prng.fork());
    for (const host of HOSTS) {
      for (const box of BOXES) this.roads.add(host, box, prng.pick([20e3, 200e3, 2e6]));
    }
    const checks = new StoreChecks(oracle, this.#honesty, mirror, this.#truth);
    this.store = new WatchedStore(oracle, mirror, checks, {});
    this.#book = new AnswerBook(oracle, mirror, BOXES.map(boxPlan));
    this.#users = new Users({
      clock,
      oracle,
      book: this.#book,
      prng: prng.fork(),
      manager: () => this.manager,
      hosts: HOSTS,
      models: ['dxpu-accel'],
      bindings: () => mirror.bindings,
    });
    this.#tenants = new RealTenants({
      oracle,
      mirror,
      prng: prng.fork(),
      hosts: () => this.#truth.hosts.values(),
      isCalm: (host, box) => this.#trouble.isCalm(host, box),
    });
    this.#trouble = new RealTrouble(this, prng.fork());
    this.#startManager();
    for (const id of [...BOXES, ...HOSTS]) this.start(id);
    this.#work();
  }

  async run(): Promise<ClusterResult> {
    try {
      await this.#pass(2e9);
      const prng = this.#prng;
      for (let left = 24; left > 0 && this.oracle.violation === undefined; left--) {
        if (prng.chance(0.55)) this.#users.act();
        else this.#trouble.make();
        await this.#pass(prng.chance(0.4) ? 50e6 * prng.float() : 6e9 * prng.float());
      }
      this.#trouble.heal();
      this.#users.isLossy = false;
      this.store.fullFor = 0;
      await this.#rest();
    } catch (error) {
      this.oracle.threw(error);
    }
    return this.oracle.result(this.seed);
  }

  /** Everything comes to its end, works, and can be given back. */
  async #rest(): Promise<void> {
    const { mirror } = this;
    await this.#reach('everything asked for', () => [...mirror.bindings.values()].every(isSettled));
    const sinceNs = this.clock.now();
    await this.#reach('programs on what is attached', () =>
      [...mirror.bindings.values()].every(
        (record) =>
          isSettled(record) &&
          (record.state !== 'attached' || this.#tenants.foundNs(record.generation) > sinceNs),
      ),
    );
    this.store.probe();
    this.#users.freeAll();
    await this.#reach('the end of all bindings', () => mirror.bindings.size === 0);
    await this.#reach('free slots', () => {
      const free = this.manager?.core.status().gpusFree;
      return free === BOXES.length * SLOTS_PER_BOX;
    });
    const proxies = [...this.#truth.boxes.values(), ...this.#truth.hosts.values()];
    await this.#reach('proxies without rows', () =>
      proxies.every((proxy) => proxy.slots().every(({ row }) => row === undefined)),
    );
    this.#watcher.check(mirror);
    this.#book.checkKept();
  }

  async #reach(what: string, done: () => boolean): Promise<void> {
    const { oracle, mirror } = this;
    const isDone = (): boolean => this.#users.open === 0 && done();
    while (oracle.violation === undefined && (await this.#runUntil(isDone, DEADLINE_NS))) {
      // And it must stay so: nothing is under way any more.
      await this.#pass(REST_NS);
      if (isDone()) return;
    }
    if (oracle.violation !== undefined) return;
    const texts = [...mirror.bindings.values()].map(
      ({ id, state, goal, failure }) => `${id} ${state} ${failure?.message ?? ''} for ${goal}`,
    );
    oracle.fail(ClusterInvariant.PROGRESS, `${what}: not within 300 s: ${texts.join('; ')}`);
  }

  async #pass(durationNs: number): Promise<void> {
    await this.#runUntil(() => false, durationNs);
  }

  async #runUntil(done: () => boolean, limitNs: number): Promise<boolean> {
    const untilNs = this.clock.now() + limitNs;
    while (!done()) {
      if (this.oracle.violation !== undefined) return false;
      if (this.clock.now() > untilNs || !this.clock.step()) return done();
      if (this.roads.hasNews) {
        this.roads.hasNews = false;
        await settled();
      }
      if (++this.#steps <= MAX_STEPS) continue;
      this.oracle.fail(ClusterInvariant.PROGRESS, `no rest in ${MAX_STEPS} steps`);
    }
    return true;
  }

  #work(): void {
    this.#tenants.look(this.clock.now());
    this.clock.at(nanos(this.clock.now() + TENANT_NS), () => this.#work());
  }

  #startManager(): void {
    const { clock, oracle, mirror } = this;
    this.#book.checkKept();
    this.manager = new ManagerProcess({
      clock,
      oracle,
      honesty: this.#honesty,
      store: this.store,
      prng: this.#prng.fork(),
      turnNs: 2e6,
      wallMs: () => WALL_START_MS + Math.floor(clock.now() / 1e6),
      faults: this.#faults,
      onAnswer: (caller, command, answer) => this.#book.answered(caller, command, answer),
      onCommit: () => {},
      onLogged: (entries) => this.#watcher.logged(entries),
      onDeath: () => {
        this.manager = undefined;
        clock.at(nanos(clock.now() + this.managerPauseNs), () => {
          if (this.manager === undefined) this.#startManager();
        });
      },
    });
    oracle.event('the manager starts');
    this.#watcher.resume(this.store, mirror.counters.position);
  }

  /** Starts the process of this host or box. */
  start(id: string): void {
    const { clock, oracle } = this;
    oracle.event(`start ${id}`);
    const plane = this.#plane(id, () => agent.changed());
    const agent: RealAgent = new AgentProcess(plane, {
      clock,
      oracle,
      prng: this.#prng.fork(),
      instance: `${id}-${++this.#instances}`,
      delayNs: () => 5e6,
      keepAliveNs: 3e9,
      onWire: false,
      pathIntervalNs: 1e9,
      manager: () => this.manager,
      isCutOff: () => false,
      faults: {},
    });
    this.agents.set(id, agent);
  }

  #plane(id: string, onChange: () => void): RealPlane {
    const { clock } = this;
    const roads = this.roads;
    if (BOXES.includes(id)) {
      const number = BOXES.indexOf(id);
      const uuids = Array.from({ length: SLOTS_PER_BOX }, (_, slot) => uuidOf(number, slot));
      const box = new RealBox({ id, uuids, clock, roads, onChange });
      this.#truth.boxes.set(id, box);
      return { kind: 'box', box, plan: boxPlan(id) };
    }
    const host: RealHost = new RealHost({
      id,
      virtualSlots: VIRTUAL_SLOTS,
      clock,
      roads,
      newSessionId: () => this.#sessions++,
      onChange: () => {
        this.#truth.note(host);
        onChange();
      },
    });
    this.#truth.hosts.set(id, host);
    const plan: HostPlan = { id, reach: [], windows: [] };
    return { kind: 'host', host, plan };
  }
}

function boxPlan(id: string): BoxPlan {
  return { id, kind: 'pcie', zone: '', nodes: [] };
}

function uuidOf(box: number, slot: number): string {
  return `00000000-0000-4000-8000-0000000000${box}${slot}`;
}

/** All promises that were settled have had their say. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await Promise.resolve();
}
