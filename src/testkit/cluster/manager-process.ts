/**
 * One manager in virtual time: the core in a shell of turns as the real one has it, which can die at any
 * point of a turn. The store outlives it; memory, streams and calls under way do not.
 */
import { DxpuError } from '#base/errors';
import type { Prng } from '#base/prng';
import { type Nanos, nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import { type Batch, EMPTY_BATCH } from '#manager/domain/batch';
import type { Caller, Command, CommandAnswer } from '#manager/domain/commands';
import { PoolCore } from '#manager/domain/pool-core';
import type { PoolFaults } from '#manager/domain/pool-options';
import type { AgentSessionId, PoolSink } from '#manager/domain/pool-sink';
import type { LogRecord } from '#manager/domain/records';
import type { AgentOrder } from '#proto/agent-messages';
import type { ClusterOracle } from './cluster-oracle.ts';
import type { Honesty } from './honesty.ts';
import type { ManagerEnd, Stream } from './stream.ts';
import type { WatchedStore } from './watched-store.ts';

/** Where a manager can die within a turn. */
export const CRASH_POINTS = [
  'before takeBatch',
  'before commit',
  'after commit',
  'after committed',
] as const;
export type CrashPoint = (typeof CRASH_POINTS)[number];

/** Dies at `point` of the next turn whose batch is as asked. */
export interface PlannedCrash {
  readonly point: CrashPoint;
  readonly when: (batch: Batch) => boolean;
}

/** `undefined`: the call was lost with the process, or the commit failed. */
export type Reply = (answer: CommandAnswer | undefined) => void;

export interface ManagerOptions {
  readonly clock: VirtualClock;
  readonly prng: Prng;
  readonly oracle: ClusterOracle;
  readonly honesty: Honesty;
  readonly store: WatchedStore;
  readonly turnNs: number;
  readonly wallMs: () => number;
  readonly faults: PoolFaults;
  /** Called as an answer leaves the core, before it is on its way. */
  readonly onAnswer: (caller: string, command: Command, answer: CommandAnswer) => void;
  /** Behind each commit, before anything of it is told. */
  readonly onCommit: (batch: Batch) => void;
  readonly onLogged: (entries: readonly LogRecord[]) => void;
  /** The process is dead: at a planned point, or as its disk is full. */
  readonly onDeath: () => void;
}

interface Waiting {
  readonly caller: string;
  readonly command: Command;
  readonly reply: Reply;
}

export class ManagerProcess implements PoolSink {
  readonly core: PoolCore;
  planned: PlannedCrash | undefined;
  readonly #options: ManagerOptions;
  readonly #streams = new Map<AgentSessionId, Stream>();
  /** Those that have not said hello yet. */
  readonly #accepted = new Map<AgentSessionId, () => Stream>();
  readonly #waiting = new Map<number, Waiting>();
  #commands: { caller: string; command: Command }[] = [];
  /** Proxies whose first whole report was taken in within this turn. */
  #reported: { readonly id: string; readonly session: AgentSessionId }[] = [];
  #nextSession = 1;
  #nextTicket = 1;
  #turnIsDue = false;
  #dead = false;
  #tickAtNs = Infinity;

  constructor(options: ManagerOptions) {
    this.#options = options;
    const { store, wallMs, faults } = options;
    this.core = new PoolCore({ sink: this, snapshot: store.load(), wallMs, faults });
    this.#touch();
  }

  command(caller: Caller, command: Command, reply: Reply): void {
    if (this.#dead) return reply(undefined);
    const ticket = this.#nextTicket++;
    this.#waiting.set(ticket, { caller: caller.name, command, reply });
    this.#commands.push({ caller: caller.name, command });
    this.core.command(this.#options.clock.now(), caller, command, ticket);
    this.#touch();
  }

  /** The manager's end of a new stream of an agent; `stream` is asked for once it is there. */
  accept(id: string, stream: () => Stream): ManagerEnd {
    const session = this.#nextSession++;
    let isOpen = false;
    this.#accepted.set(session, stream);
    return {
      hello: (now, hello) => {
        if (this.#dead) return;
        isOpen = true;
        this.#accepted.delete(session);
        this.#streams.set(session, stream());
        this.core.connected(now, session, hello);
        this.#touch();
      },
      report: (now, report) => {
        if (this.#dead || !this.#streams.has(session)) return;
        this.#options.oracle.counts.up('reports');
        this.core.report(now, session, report);
        if (report.whole) this.#reported.push({ id, session });
        this.#touch();
      },
      closed: (now) => {
        this.#accepted.delete(session);
        if (this.#dead || !isOpen || !this.#streams.delete(session)) return;
        this.core.disconnected(now, session);
        this.#touch();
      },
    };
  }

  /** Everything in memory is gone; the store is at its last commit. */
  crash(): void {
    if (this.#dead) return;
    this.#dead = true;
    const { store, prng, onDeath } = this.#options;
    store.crashed();
    const isNoticed = prng.chance(0.8);
    for (const stream of this.#streams.values()) stream.managerDied(isNoticed);
    for (const stream of this.#accepted.values()) stream().managerDied(isNoticed);
    for (const { reply } of this.#waiting.values()) reply(undefined);
    this.#waiting.clear();
    onDeath();
  }

  answer(ticket: number, answer: CommandAnswer): void {
    const waiting = this.#waiting.get(ticket);
    if (this.#dead || waiting === undefined) return;
    this.#waiting.delete(ticket);
    this.#options.onAnswer(waiting.caller, waiting.command, answer);
    waiting.reply(answer);
  }

  order(session: AgentSessionId, order: AgentOrder): void {
    if (this.#dead) return;
    this.#options.oracle.counts.up('orders');
    this.#streams.get(session)?.order(order);
  }

  endSession(session: AgentSessionId, { message }: DxpuError): void {
    const stream = this.#streams.get(session);
    if (this.#dead || stream === undefined) return;
    this.#options.oracle.counts.up('sessions ended');
    this.#options.oracle.event(`manager ends session ${session}: ${message}`);
    this.#streams.delete(session);
    stream.closeByManager(message);
    this.#later(() => {
      this.core.disconnected(this.#options.clock.now(), session);
      this.#touch();
    });
  }

  logged(entries: readonly LogRecord[]): void {
    if (!this.#dead) this.#options.onLogged(entries);
  }

  /** A turn ends a little later, so that it takes more calls; then the core's own timer is armed. */
  #touch(): void {
    if (this.#dead || this.#turnIsDue) return;
    this.#turnIsDue = true;
    const { clock, turnNs, prng } = this.#options;
    clock.at(nanos(clock.now() + turnNs * prng.float()), (now) => {
      this.#turnIsDue = false;
      if (!this.#dead) this.#endTurn(now);
    });
  }

  #endTurn(now: Nanos): void {
    const { store, wallMs, honesty, oracle } = this.#options;
    if (this.#diesAt('before takeBatch', EMPTY_BATCH)) return;
    const batch = this.core.takeBatch();
    if (batch !== undefined) {
      if (this.#diesAt('before commit', batch)) return;
      store.turn = { commands: this.#commands, wallMs: wallMs() };
      try {
        store.commit(batch);
      } catch (error) {
        if (!(error instanceof DxpuError) || error.code !== 'resource_exhausted') throw error;
        oracle.event('the disk is full');
        // The core is thrown away with what it had in mind; a new one is built from the store.
        this.crash();
        return;
      }
      this.#options.onCommit(batch);
      if (this.#dead) return;
      if (this.#diesAt('after commit', batch)) return;
    }
    this.#commands = [];
    this.core.committed(now);
    // One that was refused was not believed.
    for (const { id, session } of this.#reported) {
      if (this.#streams.has(session)) honesty.reported(id);
    }
    this.#reported = [];
    if (batch !== undefined && this.#diesAt('after committed', batch)) return;
    this.#arm();
  }

  #diesAt(point: CrashPoint, batch: Batch): boolean {
    const { planned } = this;
    if (planned?.point !== point) return false;
    if (point !== 'before takeBatch' && !planned.when(batch)) return false;
    this.#options.oracle.event(`manager dies ${point}`);
    this.#options.oracle.counts.up(`crash ${point}`);
    this.crash();
    return true;
  }

  #arm(): void {
    const deadlineNs = this.core.nextDeadlineNs();
    if (deadlineNs >= this.#tickAtNs) return;
    this.#tickAtNs = deadlineNs;
    this.#options.clock.at(nanos(deadlineNs), (now) => {
      if (this.#dead || this.#tickAtNs !== deadlineNs) return;
      this.#tickAtNs = Infinity;
      this.core.tick(now);
      this.#touch();
    });
  }

  #later(fn: () => void): void {
    const { clock } = this.#options;
    clock.at(clock.now(), () => {
      if (!this.#dead) fn();
    });
  }
}
