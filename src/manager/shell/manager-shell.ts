/** The signatures of the shell around the core; the bodies follow. */
import type { Clock } from '#base/clock';
import type { DxpuError } from '#base/errors';
import type { Candidate, Demand } from '#placement/demand';
import type { AgentHello, AgentOrder, AgentReport } from '#proto/agent-messages';
import type { Snapshot } from '../domain/batch.ts';
import type { Caller, Command, CommandAnswer, DryRun } from '../domain/commands.ts';
import type { Pool, PoolQueries } from '../domain/pool.ts';
import type { PoolSink } from '../domain/pool-sink.ts';
import type { LogRecord } from '../domain/records.ts';
import type { Store } from '../store/store.ts';

/** What a core is made of: at the start, and again after a commit that failed. */
export interface PoolStart {
  readonly sink: PoolSink;
  readonly snapshot: Snapshot;
  readonly wallMs: () => number;
}

/** What the shell tells whoever runs it. */
export interface ShellLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

export interface ManagerShellOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly makePool: (start: PoolStart) => Pool;
  readonly log: ShellLog;
  /** Wall clock in ms; Date.now by default. */
  readonly wallMs?: () => number;
  /** The store does not even load any more, or the core broke: the process must end. Called once. */
  readonly onFatal: (error: DxpuError) => void;
}

/** The way back to an agent. Called once what is told is durable; neither may throw. */
export interface AgentStream {
  order(order: AgentOrder): void;
  /** The stream is over. Nothing is called after this. */
  end(error: DxpuError): void;
}

/** One stream of an agent, from its hello on. */
export interface AgentSession {
  report(report: AgentReport): void;
  /** The stream is gone. Does nothing the second time, or after `AgentStream.end`. */
  close(): void;
}

export interface WatchOptions {
  /** Position of the last entry seen; 0 for all. */
  readonly after: number;
  /** Goes on with what comes; otherwise ends at the end of the log. */
  readonly follow: boolean;
  /** Only entries of this binding. */
  readonly binding?: string;
  readonly signal: AbortSignal;
}

export interface WatchedEntries {
  readonly entries: readonly LogRecord[];
  /** Every entry up to this one was delivered or is not of the binding asked for. */
  readonly position: number;
  /** The end of the log was reached. */
  readonly caughtUp: boolean;
}

export interface Shell {
  /** Resolves once durable. Rejects with the store's error when the commit failed: nothing was done. */
  command(caller: Caller, command: Command): Promise<CommandAnswer>;
  dryRun(demand: Demand): Promise<DryRun>;
  explain(demand: Demand): Promise<Iterable<Candidate>>;
  /** The answer to a query, never of a state that is not durable. */
  read<T>(query: (pool: PoolQueries) => T): Promise<T>;
  /** The stream of an agent that proved to be `hello.kind` and `hello.id`. */
  openSession(hello: AgentHello, stream: AgentStream): AgentSession;
  /** The log from a position on, each entry once and in order. `out_of_range` beyond its end. */
  watch(options: WatchOptions): AsyncIterable<WatchedEntries>;
  /** Commits what is pending, ends all sessions and watchers. Calls after it fail with `unavailable`. */
  stop(reason: string): void;
}
