/**
 * A whole pool in virtual time, from one seed: hosts, boxes, tenants, an operator, and everything that
 * can go wrong between them. It runs until all has gone wrong that is to, and then until all is well
 * again; observers at every boundary judge the invariants throughout.
 *
 * Who owns what: `FaultWorld` owns the processes and the loop; `Trouble` breaks things, `Mischief`
 * plays liars and attackers, `Operator` mends the tables. All draw from generators forked from the
 * one seed, and nothing else may decide what happens.
 */
import { Prng } from '#base/prng';
import { nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import { VirtualPool } from '#emulator/virtual-pool';
import type { BoxProxyFaults } from '#fabric/box-proxy';
import type { HostProxyFaults } from '#fabric/host-proxy';
import type { LinkFaults } from '#fabric/link-options';
import type { World, WorldKind } from '../campaign/campaign.ts';
import type { WorldResult } from '../campaign/oracle.ts';
import type { Binding } from './binding.ts';
import { FaultBox } from './fault-box.ts';
import { FaultHost } from './fault-host.ts';
import { FinalChecks } from './final-checks.ts';
import { Mischief } from './mischief.ts';
import { Operator, portsOf } from './operator.ts';
import { FaultOracle, Invariant, WorldCounts } from './oracle.ts';
import { drawBindings, drawPlan, type WorldPlan } from './plan.ts';
import { SessionBook } from './session-book.ts';
import { Trouble, TroubledPath, type TroubledWorld } from './trouble.ts';
import { WorldChecks } from './world-checks.ts';

/** Checks left out on purpose, to see that this world notices. */
export interface PlantedFaults {
  readonly link?: LinkFaults;
  readonly host?: HostProxyFaults;
  readonly box?: BoxProxyFaults;
  /** The probe draws from `Math.random`. */
  readonly unseeded?: boolean;
}

const TICK_NS = 100e6;
/** Once nothing is wrong any more, all must be well within this. */
const RECOVERY_NS = 60e9;
const MAX_STEPS = 400_000;

export class FaultWorld implements TroubledWorld, World<Invariant, WorldCounts> {
  readonly seed: number;
  readonly clock: VirtualClock;
  readonly oracle: FaultOracle;
  readonly operator: Operator;
  readonly paths: readonly TroubledPath[];
  readonly plan: WorldPlan;
  readonly #planted: PlantedFaults;
  readonly #pool: VirtualPool;
  readonly #prng: Prng;
  readonly #book: SessionBook;
  readonly #trouble: Trouble;
  readonly #mischief: Mischief;
  readonly #checks: WorldChecks;
  readonly #hosts = new Map<string, FaultHost>();
  readonly #boxes = new Map<string, FaultBox>();
  #troubleIsOver = false;
  #nextMischief = 0;

  constructor(seed: number, planted: PlantedFaults = {}) {
    this.seed = seed;
    this.#planted = planted;
    this.#pool = new VirtualPool(seed);
    this.clock = this.#pool.clock;
    this.#prng = new Prng(seed);
    this.plan = drawPlan(this.#prng.fork());
    this.oracle = new FaultOracle(this.clock);
    this.#book = new SessionBook(this.oracle);
    this.paths = this.#layPaths();
    const boxes = [...this.plan.boxes.keys()];
    this.operator = new Operator({
      clock: this.clock,
      oracle: this.oracle,
      prng: this.#prng.fork(),
      processes: { host: (id) => this.#hosts.get(id), box: (id) => this.#boxes.get(id) },
      ports: portsOf(this.plan.virtualSlots),
      bindings: drawBindings(this.#prng.fork(), this.plan),
      hosts: this.plan.hosts,
      boxes,
      firstGeneration: this.plan.firstGeneration,
      lagNs: this.plan.lagNs,
    });
    this.#checks = new WorldChecks(this);
    this.#trouble = new Trouble(this, this.#prng.fork());
    this.#mischief = new Mischief(this.#prng.fork(), this.operator);
    for (const id of [...boxes, ...this.plan.hosts]) this.restart(id);
  }

  run(): WorldResult<Invariant, WorldCounts> {
    try {
      this.clock.at(nanos(TICK_NS), () => this.#tick());
      this.#breakThings();
      this.#recover();
      if (this.oracle.violation === undefined) new FinalChecks(this).run();
    } catch (error) {
      this.oracle.threw(error);
    }
    for (const host of this.hosts()) this.#countResumes(host);
    return this.oracle.result(this.seed);
  }

  hosts(): FaultHost[] {
    return [...this.#hosts.values()];
  }

  boxes(): FaultBox[] {
    return [...this.#boxes.values()];
  }

  hostOf(binding: Binding): FaultHost | undefined {
    return this.#hosts.get(binding.host);
  }

  killHost(host: FaultHost, isOrderly: boolean): void {
    this.#countResumes(host);
    this.#checks.died(host.name);
    const { links } = host.virtual;
    if (isOrderly) for (const link of links.values()) link.stop(this.clock.now(), 'stopping');
    host.kill();
    this.#hosts.delete(host.name);
  }

  killBox(box: FaultBox, isOrderly: boolean): void {
    this.#checks.died(box.name);
    if (isOrderly) box.virtual.links.stop(this.clock.now(), 'stopping');
    box.kill();
    this.#boxes.delete(box.name);
  }

  restart(id: string): void {
    const { plan, oracle } = this;
    const shared = { id, pool: this.#pool, oracle, book: this.#book, prng: this.#prng.fork() };
    const link = { ...plan.link, faults: this.#planted.link ?? {} };
    const slots = plan.boxes.get(id);
    if (slots === undefined) {
      const host = new FaultHost({
        ...shared,
        ports: portsOf(plan.virtualSlots),
        maxPayloadBytes: plan.maxPayloadBytes,
        maxReadRequestBytes: plan.maxReadRequestBytes,
        link,
        proxyFaults: this.#planted.host ?? {},
        bindingAt: (virtualSlot) => this.operator.bindingAt(id, virtualSlot),
        isWanted: () => !this.#troubleIsOver,
        sessionEnding: (peer) => this.#checks.sessionEnding(id, peer),
      });
      this.#hosts.set(id, host);
      this.operator.hostStarted(host);
      for (const box of plan.boxes.keys()) {
        const paths = this.paths.filter((path) => path.host === id && path.box === box);
        this.#pool.link(
          id,
          box,
          paths.map(({ path }) => path),
        );
      }
      return;
    }
    const box = new FaultBox({
      ...shared,
      slots,
      accelTags: plan.accelTags,
      outstandingReads: plan.outstandingReads,
      fairShareBytes: plan.fairShareBytes,
      link,
      proxyFaults: this.#planted.box ?? {},
      unseeded: this.#planted.unseeded ?? false,
    });
    this.#boxes.set(id, box);
    this.operator.boxStarted(box);
  }

  /** Lets the world go on until `done` says so; false when it took longer than `limitNs`. */
  runUntil(done: () => boolean, limitNs: number): boolean {
    const untilNs = this.clock.now() + limitNs;
    const { oracle } = this;
    while (!done()) {
      if (oracle.violation !== undefined || this.clock.now() > untilNs) return false;
      this.#step();
    }
    return true;
  }

  #step(): void {
    const { oracle } = this;
    oracle.counts.steps++;
    if (oracle.counts.steps > MAX_STEPS) {
      oracle.fail(Invariant.PROGRESS, `the world does not come to rest in ${MAX_STEPS} steps`);
    }
    this.clock.step();
  }

  #breakThings(): void {
    const prng = this.#prng;
    for (let left = this.plan.faults; left > 0; left--) {
      // At any step: a few steps on, or many; or after a time, in which windows and timeouts pass.
      if (prng.chance(0.7)) this.#goOn(Math.floor(5 * 150 ** prng.float()), 1e9);
      else this.#goOn(400, 6e9 * prng.float());
      if (this.oracle.violation !== undefined) return;
      this.#trouble.make();
    }
    if (prng.chance(0.5)) this.#goOn(400, 6e9 * prng.float());
  }

  /** Lets so many steps happen, or so much time pass, with mischief in between. */
  #goOn(steps: number, durationNs: number): void {
    const { counts } = this.oracle;
    const untilStep = counts.steps + steps;
    const untilNs = this.clock.now() + durationNs;
    while (counts.steps < untilStep && this.clock.now() < untilNs) {
      if (this.oracle.violation !== undefined) return;
      this.#step();
      if (counts.steps < this.#nextMischief) continue;
      this.#nextMischief = counts.steps + this.#prng.between(5, 60);
      this.#makeMischief();
    }
  }

  #recover(): void {
    const { oracle, operator } = this;
    if (oracle.violation !== undefined) return;
    this.#troubleIsOver = true;
    this.#trouble.heal();
    for (const one of [...this.hosts(), ...this.boxes()]) one.settle();
    const isWell = (): boolean =>
      operator.isDone &&
      operator.bindings.every((b) => isDone(b) && operator.works(b)) &&
      this.hosts().every((host) => host.virtual.soft.tasks.size === 0);
    if (this.runUntil(isWell, RECOVERY_NS) || oracle.violation !== undefined) return;
    const ill = operator.bindings
      .filter((b) => !isDone(b) || !operator.works(b))
      .map(
        (b) => `${b.kind} ${b.box}/${b.slot} on ${b.host}/${b.virtualSlot}: ${b.work.left} left`,
      );
    const tasks = this.hosts().map((host) => `${host.name} ${host.virtual.soft.tasks.size} tasks`);
    const what = [...ill, ...tasks].join('; ');
    oracle.fail(
      Invariant.PROGRESS,
      `not well ${RECOVERY_NS / 1e9} s after the last fault: ${what}`,
    );
  }

  #makeMischief(): void {
    const now = this.clock.now();
    const prng = this.#prng;
    const boxes = this.boxes();
    const hosts = this.hosts();
    const draw = prng.below(4);
    if (draw < 2 && boxes.length > 0) {
      this.#mischief.attack(now, prng.pick(boxes), (binding) => this.hostOf(binding));
    } else if (draw === 2 && hosts.length > 0) {
      this.#mischief.forgeUp(now, prng.pick(hosts));
    } else if (boxes.length > 0) {
      this.#mischief.forgeDown(now, prng.pick(boxes));
    }
  }

  #tick(): void {
    if (this.oracle.violation !== undefined) return;
    this.operator.lookAround();
    this.#checks.look();
    this.clock.at(nanos(this.clock.now() + TICK_NS), () => this.#tick());
  }

  #countResumes(host: FaultHost): void {
    for (const link of host.virtual.links.values()) {
      this.oracle.counts.resumes += link.counters.resumes;
    }
  }

  #layPaths(): TroubledPath[] {
    const { hosts, boxes, pathsPerLink, path } = this.plan;
    return hosts.flatMap((host) =>
      [...boxes.keys()].flatMap((box) =>
        Array.from(
          { length: pathsPerLink },
          () => new TroubledPath(host, box, this.#pool.addPath(path), path),
        ),
      ),
    );
  }
}

/** A hostile function may have spoilt its own set-up. */
function isDone(binding: Binding): boolean {
  return binding.work.left <= 0 || binding.kind === 'hostile';
}

export const FAULT_WORLDS: WorldKind<PlantedFaults, Invariant, WorldCounts> = {
  name: 'faults',
  worlds: 'fault worlds',
  newWorld: (seed, planted) => new FaultWorld(seed, planted),
  newCounts: () => new WorldCounts(),
  repeatEvery: 20,
};
