/**
 * The pool's owner as everybody else sees it: a synchronous machine without disk, network or clock of
 * its own. `PoolCore` implements it; the shell around it commits, answers and keeps the streams.
 *
 * A turn of the shell: any number of calls, then `takeBatch`, a durable commit of it, `committed`. All
 * effects of the calls wait for that. When a commit fails the core is thrown away with everything it
 * had in mind, and a new one begins from `Store.load`; sessions are then ended by the shell.
 */
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import type { Candidate, Demand } from '#placement/demand';
import type { AgentHello, AgentReport, FunctionReport, PathReport } from '#proto/agent-messages';
import type { Batch } from './batch.ts';
import type { Caller, Command, DryRun } from './commands.ts';
import type { AgentSessionId } from './pool-sink.ts';
import type {
  BindingRecord,
  BindingState,
  BoxRecord,
  BoxSlotRecord,
  HostRecord,
  HostSlotRecord,
  PathRecord,
} from './records.ts';

export interface Pool extends Timed, PoolQueries {
  /** Answered through `PoolSink.answer` under `ticket`, once what it decided is durable. */
  command(now: Nanos, caller: Caller, command: Command, ticket: number): void;
  dryRun(demand: Demand): DryRun;
  /** Every GPU node of the pool, with the reason that rules it out, if any. */
  explain(demand: Demand): Iterable<Candidate>;

  /**
   * A new stream of an authenticated agent. `hello.id` and kind are those of its certificate: the
   * shell has checked. Ended at once when another stream of this identity lives.
   */
  connected(now: Nanos, session: AgentSessionId, hello: AgentHello): void;
  /** A report that claims what cannot be ends the session, is logged, and changes nothing. */
  report(now: Nanos, session: AgentSessionId, report: AgentReport): void;
  disconnected(now: Nanos, session: AgentSessionId): void;

  /**
   * What has changed since the last batch; `undefined` when nothing of the store has. Ends the turn:
   * what the turn wants told to others is settled here too.
   */
  takeBatch(): Batch | undefined;
  /**
   * The batch taken last is durable: its effects go out. Called once after every `takeBatch`, also
   * when there was no batch: a refusal and an order may need nothing of the store.
   */
  committed(now: Nanos): void;
}

/** Lists are in the order of their keys and go on behind `after`; '' begins. */
export interface PageOf<T> {
  readonly items: readonly T[];
  /** To go on with; `undefined` at the end. */
  readonly next: string | undefined;
}

export interface PoolQueries {
  status(): PoolStatus;
  binding(id: string): BindingView | undefined;
  bindings(filter: BindingFilter, after: string, limit: number): PageOf<BindingView>;
  boxes(filter: { readonly id?: string }, after: string, limit: number): PageOf<BoxView>;
  hosts(filter: { readonly id?: string }, after: string, limit: number): PageOf<HostView>;
  gpus(filter: GpuFilter, after: string, limit: number): PageOf<GpuView>;
  paths(
    filter: { readonly host?: string; readonly box?: string },
    after: string,
    limit: number,
  ): PageOf<PathView>;
}

export interface PoolStatus {
  readonly position: number;
  readonly boxes: number;
  readonly boxesConnected: number;
  readonly hosts: number;
  readonly hostsConnected: number;
  readonly gpus: number;
  readonly gpusFree: number;
  readonly bindings: number;
  readonly bindingsAttached: number;
  readonly bindingsFailed: number;
}

export interface BindingFilter {
  readonly host?: string;
  readonly box?: string;
  readonly state?: BindingState;
  readonly requestId?: string;
}

export interface BindingView {
  readonly record: BindingRecord;
  /** Whether the manager tries it again by itself, while it is failed. */
  readonly willRetry: boolean;
  /** As the host reports it now; `undefined` while it does not. */
  readonly live:
    | (Pick<FunctionReport, 'memoryEnable' | 'busMaster'> & {
        readonly inUse: boolean;
        readonly rttNs: number;
      })
    | undefined;
}

export interface BoxView {
  readonly record: BoxRecord;
  readonly connected: boolean;
  readonly gpus: number;
  readonly gpusFree: number;
  /** What is wrong with its reports; '' when nothing is. */
  readonly problem: string;
}

export interface HostView {
  readonly record: HostRecord;
  readonly connected: boolean;
  readonly slots: readonly (HostSlotRecord & {
    readonly binding: string;
    /** As reported last; '' while it is not connected. */
    readonly state: string;
  })[];
  readonly problem: string;
}

export interface GpuFilter {
  readonly uuid?: string;
  readonly box?: string;
  readonly freeOnly?: boolean;
}

export const GPU_STATES = [
  'free',
  'bound',
  'scrubbing',
  'quarantined',
  'unreachable',
  'gone',
] as const;

export interface GpuView {
  readonly record: BoxSlotRecord;
  readonly state: (typeof GPU_STATES)[number];
  readonly binding: string;
  readonly host: string;
  readonly reason: string;
}

export interface PathView extends PathRecord, Pick<PathReport, 'up' | 'problem'> {}
