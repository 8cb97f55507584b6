/** What must hold once nothing goes wrong any more: everything comes to its end, and nothing leaks. */
import { FAILURE_REASONS } from '#manager/domain/records';
import type { BindingRecord } from '#manager/domain/records';
import type { AgentProcess } from './agent-process.ts';
import type { AnswerBook } from './answer-book.ts';
import { ClusterInvariant, type ClusterOracle } from './cluster-oracle.ts';
import type { GroundTruth } from './ground-truth.ts';
import type { ManagerProcess } from './manager-process.ts';
import type { StoreMirror } from './store-mirror.ts';
import type { Users } from './users.ts';
import type { Watcher } from './watcher.ts';
import type { WatchedStore } from './watched-store.ts';

/** Longer than any chain of deadlines: scrubs that hang, backoff, attempts that fail again. */
const DEADLINE_NS = 900e9;
const REST_NS = 5e9;

export interface RestingCluster {
  readonly oracle: ClusterOracle;
  readonly mirror: StoreMirror;
  readonly truth: GroundTruth;
  readonly store: WatchedStore;
  readonly book: AnswerBook;
  readonly users: Users;
  readonly watcher: Watcher;
  readonly manager: ManagerProcess | undefined;
  agents(): AgentProcess[];
  restartAgent(id: string): void;
  runUntil(done: () => boolean, limitNs: number): boolean;
}

export class ClusterChecks {
  readonly #world: RestingCluster;

  constructor(world: RestingCluster) {
    this.#world = world;
  }

  run(): void {
    const { mirror, users, oracle } = this.#world;
    this.#reach('everything asked for', () => [...mirror.bindings.values()].every(isSettled));
    this.#judgeRest();
    for (const { failure } of mirror.bindings.values()) {
      if (failure !== undefined) oracle.counts.up(`rests as failed(${failure.reason})`);
    }
    this.#world.store.probe();
    this.#freeAll();
    this.#world.watcher.check(mirror);
    this.#world.book.checkKept();
    if (users.open > 0) oracle.fail(ClusterInvariant.PROGRESS, `${users.open} calls are open`);
  }

  /** Everything back, by force: not one slot may be missing. */
  #freeAll(): void {
    const { mirror, users, truth, oracle } = this.#world;
    if (oracle.violation !== undefined) return;
    // A box whose slot is quarantined is repaired and started again.
    const broken = new Set<string>();
    for (const [id, box] of truth.boxes) {
      if (box.box.some(({ state }) => state === 'quarantined')) broken.add(id);
    }
    for (const id of broken) this.#world.restartAgent(id);
    this.#pass(REST_NS);
    users.freeAll();
    this.#reach('the end of all bindings', () => mirror.bindings.size === 0);
    this.#judgeRest();
  }

  #judgeRest(): void {
    const { oracle } = this.#world;
    if (oracle.violation !== undefined) return;
    this.#reach(
      'free slots',
      () => this.#leak() === '',
      () => this.#leak(),
    );
    this.#judgeTables();
  }

  #reach(what: string, done: () => boolean, why: () => string = () => this.#open()): void {
    const { oracle, users } = this.#world;
    if (oracle.violation !== undefined) return;
    const isDone = (): boolean => users.open === 0 && done();
    for (;;) {
      const isReached = this.#world.runUntil(isDone, DEADLINE_NS);
      if (oracle.violation !== undefined) return;
      if (!isReached) {
        const message = `${what}: not within ${DEADLINE_NS / 1e9} s: ${why()}`;
        oracle.fail(ClusterInvariant.PROGRESS, message);
        return;
      }
      // And it must stay so: nothing is under way any more.
      this.#pass(REST_NS);
      if (isDone()) return;
    }
  }

  #pass(durationNs: number): void {
    const { oracle } = this.#world;
    const untilNs = oracle.nowNs + durationNs;
    this.#world.runUntil(() => oracle.nowNs >= untilNs, 2 * durationNs);
  }

  /** Slots nobody owns and nobody can have; '' when there are none. */
  #leak(): string {
    const { mirror, truth, manager } = this.#world;
    if (manager === undefined) return 'there is no manager';
    const owned = new Set<string>();
    for (const { box, boxSlot } of mirror.bindings.values()) owned.add(`${box}/${boxSlot}`);
    let free = 0;
    for (const [id, box] of truth.boxes) {
      for (const [number, slot] of box.box.entries()) {
        if (slot.hardware.node === undefined || slot.state === 'quarantined') continue;
        if (!owned.has(`${id}/${number}`)) free++;
      }
    }
    const { gpusFree } = manager.core.status();
    return gpusFree === free ? '' : `${gpusFree} free slots in place of ${free}`;
  }

  /** The tables of the proxies are what the bindings say, and what is attached works. */
  #judgeTables(): void {
    const { mirror, truth, oracle } = this.#world;
    if (oracle.violation !== undefined) return;
    const fail = (message: string): void => oracle.fail(ClusterInvariant.PROGRESS, message);
    const rows = new Set<string>();
    for (const record of mirror.bindings.values()) {
      if (record.state === 'attached' && !truth.works(record)) {
        fail(`${record.id} is attached and does not work`);
      }
      const { box, boxSlot, host, hostSlot, generation } = record;
      if (hasRows(record)) rows.add(`${box}/${boxSlot} ${host}/${hostSlot} ${generation}`);
    }
    const seen = new Set<string>();
    for (const [id, host] of truth.hosts) {
      for (const { number, row } of host.host) {
        if (row === undefined) continue;
        seen.add(`${row.box}/${row.boxSlot} ${id}/${number} ${row.generation}`);
      }
    }
    for (const row of seen) if (!rows.has(row)) fail(`a host has the row ${row}, no binding has`);
    for (const row of rows) if (!seen.has(row)) fail(`no host has the row ${row} of a binding`);
    let boxRows = 0;
    for (const [id, box] of truth.boxes) {
      for (const [number, { row }] of box.box.entries()) {
        if (row === undefined) continue;
        boxRows++;
        const record = mirror.bindingOf(row.generation);
        const isOwn = record?.box === id && record.boxSlot === number && record.host === row.host;
        if (!isOwn) fail(`${id}/${number} has a row of ${row.host}, which no binding has`);
      }
    }
    if (boxRows !== rows.size) fail(`boxes have ${boxRows} rows, bindings ${rows.size}`);
  }

  #open(): string {
    const { mirror, users } = this.#world;
    const open = [...mirror.bindings.values()].filter((record) => !isSettled(record));
    const texts = open.map(
      ({ id, state, goal, failure }) =>
        `${id} is ${state}${failure === undefined ? '' : `(${failure.reason})`}, shall be ${goal}`,
    );
    return [...texts, `${users.open} calls open`].join('; ');
  }
}

/** At its goal, or failed in a way that waits for somebody. */
function isSettled({ state, goal, failure, retries }: BindingRecord): boolean {
  if (state === 'attached') return goal === 'attached';
  if (state !== 'failed' || failure === undefined) return false;
  if (goal === 'attached') return !retries || !FAILURE_REASONS[failure.reason].retries;
  return failure.reason === 'drain-timeout' || failure.reason === 'quarantined';
}

function hasRows({ state, failure }: BindingRecord): boolean {
  return state === 'attached' || failure?.reason === 'drain-timeout';
}
