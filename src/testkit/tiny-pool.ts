/**
 * The smallest core with effects, for tests of what stands around one: each command adds a log entry and
 * is answered once that is durable, each session is ordered a revision, and one that is there second is
 * ended. A repeated request is a new one to it.
 */
import { DxpuError, type DxpuErrorCode } from '#base/errors';
import type { Nanos } from '#base/units';
import { type Batch, EMPTY_BATCH } from '#manager/domain/batch';
import type { Caller, Command, CommandAnswer } from '#manager/domain/commands';
import type { PageOf, Pool, PoolStatus } from '#manager/domain/pool';
import type { LogRecord } from '#manager/domain/records';
import type { PoolStart } from '#manager/shell/shell';
import type { Candidate, Demand, Plan, Refusal } from '#placement/demand';
import type { AgentHello, AgentReport } from '#proto/agent-messages';

const NONE: PageOf<never> = { items: [], next: undefined };

export class TinyPool implements Pool {
  readonly start: PoolStart;
  position: number;
  deadlineNs = Infinity;
  /** What was called, in order. */
  readonly calls: string[] = [];
  /** What was asked, in order. */
  readonly commands: { readonly caller: Caller; readonly command: Command }[] = [];
  readonly reports: AgentReport[] = [];
  answer: CommandAnswer = { ok: true, bindings: [], repeated: false };
  #log: LogRecord[] = [];
  #effects: (() => void)[] = [];
  readonly #names = new Map<number, string>();

  constructor(start: PoolStart) {
    this.start = start;
    this.position = start.snapshot.counters.position;
  }

  command(_now: Nanos, caller: Caller, command: Command, ticket: number): void {
    this.commands.push({ caller, command });
    this.entry(caller.name, command.requestId);
    const { answer } = this;
    this.#effects.push(() => this.start.sink.answer(ticket, answer));
  }

  dryRun(demand: Demand): Plan | Refusal {
    return { ok: false, demand, summary: 'there is nothing here', reasons: [] };
  }

  explain(_demand: Demand): Iterable<Candidate> {
    return [];
  }

  connected(_now: Nanos, session: number, hello: AgentHello): void {
    this.calls.push(`connected ${session}`);
    const name = `${hello.kind}/${hello.id}`;
    const isThere = [...this.#names.values()].includes(name);
    this.#effects.push(() => {
      if (isThere) this.#end(session, 'already_exists');
      else this.order(session, hello.kind, 1);
    });
    if (!isThere) this.#names.set(session, name);
  }

  order(session: number, kind: AgentHello['kind'], revision: number): void {
    const common = { revision, whole: revision === 1, slots: [] };
    this.start.sink.order(
      session,
      kind === 'box' ? { kind, ...common } : { kind, ...common, peers: undefined },
    );
  }

  /** `refused` says what is to come of it: `bug`, `lie`, or nothing. */
  report(_now: Nanos, session: number, report: AgentReport): void {
    this.calls.push(`report ${session}`);
    this.reports.push(report);
    if (report.refused === 'bug') throw new Error('an assertion');
    if (report.refused === 'lie') {
      this.#effects.push(() => this.#end(session, 'failed_precondition'));
    }
  }

  #end(session: number, code: DxpuErrorCode): void {
    this.start.sink.endSession(session, new DxpuError(code, 'that cannot be'));
  }

  disconnected(_now: Nanos, session: number): void {
    this.calls.push(`disconnected ${session}`);
    this.#names.delete(session);
  }

  takeBatch(): Batch | undefined {
    if (this.#log.length === 0) return undefined;
    const log = this.#log.splice(0);
    this.#effects.push(() => this.start.sink.logged(log));
    return {
      ...EMPTY_BATCH,
      log,
      counters: { generation: 0, binding: 0, position: this.position },
    };
  }

  committed(_now: Nanos): void {
    for (const effect of this.#effects.splice(0)) effect();
  }

  nextDeadlineNs(): number {
    return this.deadlineNs;
  }

  tick(now: Nanos): void {
    if (now < this.deadlineNs) return;
    this.deadlineNs = Infinity;
    this.entry('manager', 'tick');
  }

  /** Adds a log entry to the turn under way, or to the next. */
  entry(actor: string, requestId: string): void {
    this.position += 1;
    this.#log.push({
      position: this.position,
      atMs: this.start.wallMs(),
      actor,
      requestId,
      subjectKind: 'pool',
      subject: 'pool',
      action: 'asked',
      message: '',
      binding: undefined,
    });
  }

  status(): PoolStatus {
    return {
      position: this.position,
      boxes: 1,
      boxesConnected: 2,
      hosts: 3,
      hostsConnected: 4,
      gpus: 5,
      gpusFree: 6,
      bindings: 7,
      bindingsAttached: 8,
      bindingsFailed: 9,
    };
  }

  binding(_id: string): ReturnType<Pool['binding']> {
    return undefined;
  }

  bindings: Pool['bindings'] = () => NONE;
  boxes: Pool['boxes'] = () => NONE;
  hosts: Pool['hosts'] = () => NONE;
  gpus: Pool['gpus'] = () => NONE;
  paths: Pool['paths'] = () => NONE;
}
