/**
 * The thin shell around the pool's core: commits what it decides, carries its effects, and keeps time.
 *
 * `ManagerShell` owns the core, the turn under way and the open sessions; `LogFeed` owns who watches.
 * A turn is everything that happens in one turn of the event loop: calls go into the core as they come;
 * at its end there is one commit for all of them, then the core lets its effects go, then reads that
 * waited are answered. Nobody hears of anything that is not durable, and a disk that takes 5 ms a commit
 * still takes a thousand binds a second.
 *
 * A commit that fails takes the core with it, for it believes what the store does not know. A new one
 * begins from the store; sessions end, so that agents report to it anew. An exception of the core itself
 * is a bug: the process must end, and what is durable is there at its next start.
 */
import { type Clock, TimerDriver } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import type { AgentHello, AgentReport } from '#proto/agent-messages';
import type { Caller, Command, CommandAnswer } from '../domain/commands.ts';
import type { Pool } from '../domain/pool.ts';
import type { AgentSessionId, PoolSink } from '../domain/pool-sink.ts';
import type { Store } from '../store/store.ts';
import { LogFeed } from './log-feed.ts';
import type {
  AgentSession,
  AgentStream,
  ManagerLog,
  PoolReads,
  PoolStart,
  Shell,
  WatchedEntries,
  WatchOptions,
} from './shell.ts';

export interface ManagerShellOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** `(start) => new PoolCore(start)`. */
  readonly makePool: (start: PoolStart) => Pool;
  readonly log: ManagerLog;
  /** Wall clock in ms; `Date.now` by default. */
  readonly wallMs?: () => number;
  /** The store does not even load any more, or the core broke: the process must end. Called once. */
  readonly onFatal: (error: DxpuError) => void;
}

/** A failed commit costs a load of the whole store: of the time, at most a third goes there. */
const HOLD_OFF_FACTOR = 2;

interface Waiting {
  readonly resolve: (answer: CommandAnswer) => void;
  readonly reject: (error: DxpuError) => void;
}

export class ManagerShell implements Shell {
  readonly #options: ManagerShellOptions;
  readonly #feed: LogFeed;
  readonly #commands = new Map<number, Waiting>();
  readonly #streams = new Map<AgentSessionId, AgentStream>();
  #pool: Pool;
  #timer: TimerDriver;
  #nextTicket = 1;
  #nextSession: AgentSessionId = 1;
  /** Reads that wait for the end of the turn; `undefined` between turns. */
  #turn: (() => void)[] | undefined;
  /** Sessions the core has ended: it is told that they are gone when it is through. */
  #endedSessions: AgentSessionId[] = [];
  /** Stopped, or broken. */
  #over: DxpuError | undefined;
  #hold: { readonly untilNs: number; readonly error: DxpuError } | undefined;

  /** Loads the store. Fails with its error. */
  constructor(options: ManagerShellOptions) {
    this.#options = options;
    const snapshot = options.store.load();
    this.#feed = new LogFeed(options.store, snapshot.counters.position);
    this.#pool = this.#makePool(snapshot);
    this.#timer = this.#makeTimer();
    // What it found in the store may want to go on at once.
    this.#begin();
  }

  command(caller: Caller, command: Command): Promise<CommandAnswer> {
    return new Promise((resolve, reject) => {
      this.#refuseWhenHeld();
      const ticket = this.#nextTicket++;
      this.#commands.set(ticket, { resolve, reject });
      this.#change((now) => this.#pool.command(now, caller, command, ticket));
    });
  }

  read<T>(query: (pool: PoolReads) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const answer = (): void => {
        if (this.#over !== undefined) {
          reject(this.#over);
          return;
        }
        try {
          resolve(query(this.#pool));
        } catch (error) {
          // A query changes nothing: whatever it is, it is the caller's alone.
          reject(error);
        }
      };
      if (this.#turn === undefined) answer();
      else this.#turn.push(answer);
    });
  }

  openSession(hello: AgentHello, stream: AgentStream): AgentSession {
    this.#refuseWhenHeld();
    const id = this.#nextSession++;
    this.#streams.set(id, stream);
    this.#change((now) => this.#pool.connected(now, id, hello));
    return {
      report: (report: AgentReport): void => {
        if (!this.#streams.has(id)) return;
        this.#change((now) => this.#pool.report(now, id, report));
      },
      close: (): void => {
        if (!this.#streams.delete(id)) return;
        this.#change((now) => this.#pool.disconnected(now, id));
      },
    };
  }

  watch(options: WatchOptions): AsyncIterable<WatchedEntries> {
    return this.#feed.watch(options);
  }

  stop(reason: string): void {
    if (this.#over !== undefined) return;
    if (this.#turn !== undefined) this.#commit();
    this.#end(new DxpuError('unavailable', `the manager is stopping: ${reason}`));
  }

  /** A call on the core that may change it: part of the turn under way, or the begin of one. */
  #change(call: (now: Nanos) => void): void {
    if (this.#over !== undefined) return;
    try {
      call(this.#options.clock.now());
    } catch (error) {
      this.#broke(error);
      return;
    }
    this.#begin();
  }

  #begin(): void {
    if (this.#turn !== undefined) return;
    this.#turn = [];
    const { clock } = this.#options;
    clock.at(clock.now(), () => this.#commit());
  }

  #commit(): void {
    const reads = this.#turn;
    // Ended early, by `stop`.
    if (reads === undefined || this.#over !== undefined) return;
    const { store, clock } = this.#options;
    try {
      const batch = this.#pool.takeBatch();
      if (batch !== undefined) {
        const failure = commitFailure(() => store.commit(batch));
        if (failure !== undefined) {
          this.#turn = undefined;
          this.#startAgain(failure);
          for (const read of reads) read();
          return;
        }
        this.#hold = undefined;
      }
      this.#pool.committed(clock.now());
    } catch (error) {
      this.#broke(error);
      return;
    }
    this.#turn = undefined;
    for (const read of reads) read();
    for (const id of this.#endedSessions.splice(0)) {
      this.#change((now) => this.#pool.disconnected(now, id));
    }
    this.#timer.update();
  }

  /** The core believes what is not in the store: everybody is told, and a new one takes over. */
  #startAgain(failure: DxpuError): void {
    const { store, clock, log } = this.#options;
    log.error({ code: failure.code }, `nothing of this turn was committed: ${failure.message}`);
    const began = clock.now();
    this.#timer.stop();
    this.#dropEverybody(failure, `the manager could not write to its store: ${failure.message}`);
    try {
      const snapshot = store.load();
      this.#pool = this.#makePool(snapshot);
    } catch (error) {
      this.#broke(error, 'the store cannot be read any more');
      return;
    }
    this.#timer = this.#makeTimer();
    const now = clock.now();
    this.#hold = { untilNs: now + HOLD_OFF_FACTOR * (now - began), error: failure };
    this.#begin();
  }

  /** Calls fail with `error`; sessions end with `reason`, the manager's own fault. */
  #dropEverybody(error: DxpuError, reason: string): void {
    const commands = [...this.#commands.values()];
    const streams = [...this.#streams.values()];
    this.#commands.clear();
    this.#streams.clear();
    this.#endedSessions = [];
    for (const { reject } of commands) reject(error);
    const end = new DxpuError('unavailable', reason, { cause: error });
    for (const stream of streams) stream.end(end);
  }

  #broke(thrown: unknown, what = 'a fault of the program'): void {
    const cause = DxpuError.from(thrown);
    const error = new DxpuError(
      cause.code === 'unknown' ? 'internal' : cause.code,
      `${what}: ${cause.message}`,
      { cause: thrown },
    );
    this.#end(error);
    this.#options.onFatal(error);
  }

  #end(error: DxpuError): void {
    this.#over = error;
    const reads = this.#turn ?? [];
    this.#turn = undefined;
    this.#timer.stop();
    this.#dropEverybody(error, error.message);
    for (const read of reads) read();
    this.#feed.stop(error);
  }

  #refuseWhenHeld(): void {
    if (this.#over !== undefined) throw this.#over;
    const hold = this.#hold;
    if (hold !== undefined && this.#options.clock.now() < hold.untilNs) throw hold.error;
  }

  #makePool(snapshot: PoolStart['snapshot']): Pool {
    const { makePool, wallMs } = this.#options;
    return makePool({ sink: this.#sink(), snapshot, wallMs: wallMs ?? Date.now });
  }

  #makeTimer(): TimerDriver {
    const pool = this.#pool;
    return new TimerDriver(this.#options.clock, {
      nextDeadlineNs: () => pool.nextDeadlineNs(),
      tick: () => this.#change((now) => pool.tick(now)),
    });
  }

  /** Called by the core within `committed` alone; none of it calls the core. */
  #sink(): PoolSink {
    return {
      answer: (ticket, answer) => {
        this.#commands.get(ticket)?.resolve(answer);
        this.#commands.delete(ticket);
      },
      order: (id, order) => this.#streams.get(id)?.order(order),
      endSession: (id, error) => {
        const stream = this.#streams.get(id);
        if (stream === undefined) return;
        this.#streams.delete(id);
        this.#endedSessions.push(id);
        stream.end(error);
      },
      logged: (entries) => this.#feed.append(entries),
    };
  }
}

/** The store's refusal. Anything else is a bug and passes. */
function commitFailure(commit: () => void): DxpuError | undefined {
  try {
    commit();
    return undefined;
  } catch (error) {
    if (error instanceof DxpuError) return error;
    throw error;
  }
}
