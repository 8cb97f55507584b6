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
const REPAIRS = 8;

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
    const { mirror, users, oracle } = this.#world;
    const isDone = (): boolean => [...mirror.bindings.values()].every(isQuarantined);
    for (let round = 1; round <= REPAIRS && oracle.violation === undefined; round++) {
      this.#repair();
      this.#pass(REST_NS);
      users.freeAll();
      this.#reach('the end of all bindings', isDone, () => this.#tell(() => true));
      // The scrub of what was given back may fail too.
      if (mirror.bindings.size === 0) break;
    }
    if (mirror.bindings.size > 0) {
      oracle.fail(ClusterInvariant.PROGRESS, `there is no end of ${this.#tell(() => true)}`);
    }
    this.#judgeRest();
  }

  /** A box with a quarantined slot is seen to and started again. */
  #repair(): void {
    for (const [id, box] of this.#world.truth.boxes) {
      if (box.box.some(({ state }) => state === 'quarantined')) this.#world.restartAgent(id);
    }
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

  #reach(
    what: string,
    done: () => boolean,
    why: () => string = () => this.#tell((record) => !isSettled(record)),
  ): void {
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
    this.#world.runUntil(() => false, durationNs);
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

  /** What is open, for people. */
  #tell(which: (record: BindingRecord) => boolean): string {
    const { mirror, users } = this.#world;
    const texts = [...mirror.bindings.values()].filter(which).map((record) => {
      const { id, state, goal, failure, host, hostSlot, box, boxSlot } = record;
      const why = failure === undefined ? '' : `(${failure.reason})`;
      const place = `${box}/${boxSlot} for ${host}/${hostSlot}`;
      return `${id} of ${place} is ${state}${why}, shall be ${goal}`;
    });
    return [...texts, `${users.open} calls open`].join('; ');
  }
}

/** At its goal, or failed in a way that waits for somebody. */
export function isSettled({ state, goal, failure, retries }: BindingRecord): boolean {
  if (state === 'attached') return goal === 'attached';
  if (state !== 'failed' || failure === undefined) return false;
  if (goal === 'attached') return !retries || !FAILURE_REASONS[failure.reason].retries;
  return failure.reason === 'drain-timeout' || failure.reason === 'quarantined';
}

function isQuarantined({ state, failure }: BindingRecord): boolean {
  return state === 'failed' && failure?.reason === 'quarantined';
}

function hasRows({ state, failure }: BindingRecord): boolean {
  return state === 'attached' || failure?.reason === 'drain-timeout';
}
