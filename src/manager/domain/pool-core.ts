import { AssertionError } from '#base/assert';
import type { Nanos } from '#base/units';
import type { Candidate, Demand } from '#placement/demand';
import type { AgentHello, AgentReport } from '#proto/agent-messages';
import type { Batch } from './batch.ts';
import type { Caller, Command, DryRun } from './commands.ts';
import type {
  BindingFilter,
  BindingView,
  BoxView,
  GpuFilter,
  GpuView,
  HostView,
  PageOf,
  PathView,
  Pool,
  PoolStatus,
} from './pool.ts';
import type { PoolCoreOptions } from './pool-options.ts';
import type { AgentSessionId } from './pool-sink.ts';

/**
 * The owner of the pool: who has which GPU node, and what every proxy should hold. It begins with what
 * the store remembers and with no agent connected; what proxies hold it learns from their reports
 * alone. See `Pool` for the turns it is driven in.
 */
export class PoolCore implements Pool {
  constructor(options: PoolCoreOptions) {
    void options;
  }

  command(_now: Nanos, _caller: Caller, _command: Command, _ticket: number): void {
    throw new AssertionError('not built yet');
  }
  dryRun(_demand: Demand): DryRun {
    throw new AssertionError('not built yet');
  }
  explain(_demand: Demand): Iterable<Candidate> {
    throw new AssertionError('not built yet');
  }
  connected(_now: Nanos, _session: AgentSessionId, _hello: AgentHello): void {
    throw new AssertionError('not built yet');
  }
  report(_now: Nanos, _session: AgentSessionId, _report: AgentReport): void {
    throw new AssertionError('not built yet');
  }
  disconnected(_now: Nanos, _session: AgentSessionId): void {
    throw new AssertionError('not built yet');
  }
  takeBatch(): Batch | undefined {
    throw new AssertionError('not built yet');
  }
  committed(_now: Nanos): void {
    throw new AssertionError('not built yet');
  }
  nextDeadlineNs(): number {
    throw new AssertionError('not built yet');
  }
  tick(_now: Nanos): void {
    throw new AssertionError('not built yet');
  }
  status(): PoolStatus {
    throw new AssertionError('not built yet');
  }
  binding(_id: string): BindingView | undefined {
    throw new AssertionError('not built yet');
  }
  bindings(_filter: BindingFilter, _after: string, _limit: number): PageOf<BindingView> {
    throw new AssertionError('not built yet');
  }
  boxes(_filter: { readonly id?: string }, _after: string, _limit: number): PageOf<BoxView> {
    throw new AssertionError('not built yet');
  }
  hosts(_filter: { readonly id?: string }, _after: string, _limit: number): PageOf<HostView> {
    throw new AssertionError('not built yet');
  }
  gpus(_filter: GpuFilter, _after: string, _limit: number): PageOf<GpuView> {
    throw new AssertionError('not built yet');
  }
  paths(
    _filter: { readonly host?: string; readonly box?: string },
    _after: string,
    _limit: number,
  ): PageOf<PathView> {
    throw new AssertionError('not built yet');
  }
}
