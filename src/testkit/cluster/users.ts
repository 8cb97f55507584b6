/**
 * People and schedulers: they ask for GPU nodes and give them back, lose answers, ask again under the same
 * request id, and remember what they were promised.
 */
import type { Prng } from '#base/prng';
import { nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import type { Command, CommandAnswer } from '#manager/domain/commands';
import type { BindingRecord } from '#manager/domain/records';
import type { Demand } from '#placement/demand';
import type { AnswerBook } from './answer-book.ts';
import type { ClusterOracle } from './cluster-oracle.ts';
import type { ManagerProcess } from './manager-process.ts';

const NAMES = ['user/alice', 'user/bob', 'user/carol'];

export interface UsersOptions {
  readonly clock: VirtualClock;
  readonly prng: Prng;
  readonly oracle: ClusterOracle;
  readonly book: AnswerBook;
  readonly manager: () => ManagerProcess | undefined;
  readonly hosts: readonly string[];
  readonly models: readonly string[];
  /** Bindings there are, as far as anybody can see. */
  readonly bindings: () => ReadonlyMap<string, BindingRecord>;
}

export class Users {
  readonly #options: UsersOptions;
  #nextRequest = 1;
  #open = 0;
  /** Whether calls and answers get lost on their way. */
  isLossy = true;

  constructor(options: UsersOptions) {
    this.#options = options;
  }

  /** Calls that nobody has answered yet. */
  get open(): number {
    return this.#open;
  }

  /** One of them does something. */
  act(): void {
    const { prng, oracle } = this.#options;
    const draw = prng.float();
    const caller = prng.pick(NAMES);
    if (draw < 0.5) {
      this.ask(caller, this.#bind());
    } else if (draw < 0.8) {
      this.ask(caller, { ...this.#named('unbind'), force: prng.chance(0.3) });
    } else if (draw < 0.88) {
      this.ask(caller, this.#named('retry'));
    } else if (draw < 0.94) {
      // Somebody asks once more for what was answered long ago, or asks something else so.
      const earlier = this.#options.book.pick(prng);
      if (earlier === undefined) return;
      oracle.counts.up('asked again');
      const isSame = prng.chance(0.8);
      const command = isSame ? earlier.command : otherwise(earlier.command);
      this.ask(earlier.caller, command);
    } else {
      const core = this.#options.manager()?.core;
      const { demand } = this.#bind();
      if (core === undefined || demand.gpus > 100) return;
      core.dryRun(demand);
      for (const _candidate of core.explain(demand)) break;
    }
  }

  /** Gives everything back by surprise. */
  freeAll(): void {
    for (const id of this.#options.bindings().keys()) {
      this.ask(NAMES[0] as string, this.#command('unbind', [id], true));
    }
  }

  /** Asks until there is an answer. */
  ask(caller: string, command: Command): void {
    const { oracle } = this.#options;
    this.#open++;
    oracle.counts.up(`asked to ${command.kind}`);
    oracle.event(`${caller} asks ${describe(command)}`);
    this.#try(caller, command);
  }

  #try(caller: string, command: Command, tries = 0): void {
    const { clock, prng, manager, oracle } = this.#options;
    let settled = false;
    const settle = (): boolean => {
      const first = !settled;
      settled = true;
      return first;
    };
    const again = (): void => {
      if (!settle()) return;
      oracle.counts.up('retried calls');
      const pauseNs = Math.min(20e9, 1e9 * 2 ** tries);
      this.#later(pauseNs * prng.float(), () => this.#try(caller, command, tries + 1));
    };
    const isLost = this.isLossy && prng.chance(0.1);
    const isAnswerLost = this.isLossy && prng.chance(0.1);
    this.#later(5e6 * prng.float(), () => {
      const process = manager();
      if (process === undefined) return again();
      if (isLost) return;
      process.command({ name: caller }, command, (answer) => {
        if (answer === undefined) return again();
        if (isAnswerLost) return;
        this.#later(5e6 * prng.float(), () => {
          if (settle()) this.#answered(caller, command, answer);
        });
      });
    });
    clock.at(nanos(clock.now() + 5e9), again);
  }

  #answered(caller: string, command: Command, answer: CommandAnswer): void {
    const { oracle } = this.#options;
    this.#open--;
    const what = answer.ok ? 'done' : 'refused';
    oracle.counts.up(`${command.kind} ${what}`);
    oracle.event(`${caller} is answered ${command.requestId}: ${what}`);
  }

  #bind(): Extract<Command, { kind: 'bind' }> {
    const { prng } = this.#options;
    const gpus = prng.chance(0.05) ? prng.pick([41, 4096]) : prng.pick([1, 1, 1, 2, 2, 3, 4]);
    const demand: Demand = {
      gpus,
      host: prng.chance(0.02) ? 'h-nobody' : prng.pick(this.#options.hosts),
      model: prng.chance(0.3) ? prng.pick(this.#options.models) : undefined,
      memoryBytes: prng.chance(0.2) ? prng.pick([2 ** 34, 2 ** 36, 2 ** 40]) : undefined,
      sameBox: prng.chance(0.2),
      nvlink: prng.chance(0.15),
      boxKind: prng.chance(0.15) ? prng.pick(['pcie', 'nvswitch'] as const) : undefined,
      maxRttNs: prng.chance(0.2) ? prng.pick([10e3, 50e3, 200e3]) : undefined,
    };
    return { kind: 'bind', requestId: this.#id(), demand, retries: !prng.chance(0.15) };
  }

  #named(kind: 'retry'): Extract<Command, { kind: 'retry' }>;
  #named(kind: 'unbind'): Extract<Command, { kind: 'unbind' }>;
  #named(kind: 'retry' | 'unbind'): Command {
    const { prng } = this.#options;
    const records = [...this.#options.bindings().values()];
    const failed = records.filter(({ state }) => state === 'failed');
    const isOfFailed = failed.length > 0 && (kind === 'retry' || prng.chance(0.4));
    const among = isOfFailed ? failed : records;
    const ids = new Set<string>();
    for (let n = prng.between(1, 2); n > 0 && among.length > 0; n--) ids.add(prng.pick(among).id);
    if (ids.size === 0 || prng.chance(0.03)) ids.add('b99999');
    return this.#command(kind, [...ids], false);
  }

  #command(kind: 'retry' | 'unbind', bindings: readonly string[], force: boolean): Command {
    const requestId = this.#id();
    if (kind === 'retry') return { kind, requestId, bindings };
    return { kind, requestId, bindings, force };
  }

  #id(): string {
    return `r${this.#nextRequest++}`;
  }

  #later(afterNs: number, fn: () => void): void {
    const { clock } = this.#options;
    clock.at(nanos(clock.now() + afterNs), fn);
  }
}

/** The same request id for something else. */
function otherwise(command: Command): Command {
  if (command.kind === 'bind') {
    return { ...command, demand: { ...command.demand, gpus: command.demand.gpus + 1 } };
  }
  return { ...command, bindings: [...command.bindings, 'b77777'] };
}

function describe(command: Command): string {
  if (command.kind !== 'bind') {
    return `${command.kind} ${command.bindings.join(' ')} (${command.requestId})`;
  }
  const { demand, requestId } = command;
  return `bind ${demand.gpus} to ${demand.host} (${requestId})`;
}
