/** What the RPC server, and whoever runs a manager, sees of the shell around the pool's core. */
import type { DxpuError } from '#base/errors';
import type { AgentHello, AgentOrder, AgentReport } from '#proto/agent-messages';
import type { Snapshot } from '../domain/batch.ts';
import type { Caller, Command, CommandAnswer } from '../domain/commands.ts';
import type { Pool, PoolQueries } from '../domain/pool.ts';
import type { PoolSink } from '../domain/pool-sink.ts';
import type { LogRecord } from '../domain/records.ts';

/** What a core is made of: at the start, and again after a commit that failed. */
export interface PoolStart {
  readonly sink: PoolSink;
  readonly snapshot: Snapshot;
  /** Wall clock in ms. */
  readonly wallMs: () => number;
}

/** Where the manager says what happens to it; a pino logger is one. */
export interface ManagerLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

/** What asks of the pool and changes nothing. */
export type PoolReads = PoolQueries & Pick<Pool, 'dryRun' | 'explain'>;

/** The way back to an agent. Called once what is told is durable; neither may throw. */
export interface AgentStream {
  order(order: AgentOrder): void;
  /**
   * The stream is over; nothing is called after this. `already_exists`: another stream of this identity
   * lives. `failed_precondition`: the agent broke the contract. `unavailable`: the manager's own fault.
   */
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
  /** Ends the watch without an error. */
  readonly signal: AbortSignal;
}

export interface WatchedEntries {
  readonly entries: readonly LogRecord[];
  /** Every entry up to this one was delivered, or is not of the binding asked for. */
  readonly position: number;
  /** There was nothing behind `position`. */
  readonly caughtUp: boolean;
}

export interface Shell {
  /** Resolves once durable. Rejects with the store's error when the commit failed: nothing was done. */
  command(caller: Caller, command: Command): Promise<CommandAnswer>;
  /** Calls `query` at once or after the commit under way, so that it sees nothing that is not durable. */
  read<T>(query: (pool: PoolReads) => T): Promise<T>;
  /** Begins the stream of an agent that proved to be `hello.kind` and `hello.id`. */
  openSession(hello: AgentHello, stream: AgentStream): AgentSession;
  /** The log from a position on, each entry once and in order. `out_of_range` beyond its end. */
  watch(options: WatchOptions): AsyncIterable<WatchedEntries>;
  /** Commits what is pending, ends all sessions and watches. What is called after it fails. */
  stop(reason: string): void;
}
