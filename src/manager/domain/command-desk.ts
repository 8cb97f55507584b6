/** Carries out what users ask: decides in one step, makes or amends bindings, remembers the request. */
import { assert } from '#base/assert';
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import type { Pick as Placed } from '#placement/demand';
import { checkDemand } from '#placement/demand-check';
import { holds } from '#placement/holds';
import { plan } from '#placement/plan';
import type {
  BindCommand,
  Caller,
  Command,
  CommandAnswer,
  RetryCommand,
  UnbindCommand,
} from './commands.ts';
import type { FactsKeeper } from './facts-keeper.ts';
import type { Binding, Inventory } from './inventory.ts';
import type { Journal } from './journal.ts';
import type { PoolFaults } from './pool-options.ts';
import type { Reconciler } from './reconciler.ts';
import type { BindingRecord } from './records.ts';
import { fingerprintOf, type RequestBook } from './request-book.ts';
import { FIRST_TRANSITION } from './transitions.ts';

export interface CommandDeskParts {
  readonly inventory: Inventory;
  readonly journal: Journal;
  readonly facts: FactsKeeper;
  readonly reconciler: Reconciler;
  readonly requests: RequestBook;
  readonly faults: PoolFaults;
  readonly onTransition: ((name: string, binding: string) => void) | undefined;
}

export class CommandDesk {
  readonly #parts: CommandDeskParts;

  constructor(parts: CommandDeskParts) {
    this.#parts = parts;
  }

  /** The answer holds for this moment; the reconciler has yet to look at what was touched. */
  run(now: Nanos, caller: Caller, command: Command): CommandAnswer {
    const { requests, faults } = this.#parts;
    const { requestId } = command;
    if (requestId === '') {
      return failed(
        'invalid_argument',
        'request_id is missing: make one up, and repeat it with the call',
      );
    }
    const fingerprint = fingerprintOf(command);
    const known = requests.find(caller.name, requestId);
    if (known !== undefined && faults.forgetsRequests !== true) {
      if (known.fingerprint !== fingerprint) {
        return failed(
          'already_exists',
          `request ${requestId} of ${caller.name} was made before and asked for something else: take a new request id`,
        );
      }
      return { ok: true, bindings: this.#still(known.bindings), repeated: true };
    }
    const answer = this.#act(now, caller, command);
    if (answer.ok) {
      const bindings = answer.bindings.map(({ id }) => id);
      requests.remember(now, { caller: caller.name, requestId, fingerprint, bindings });
    }
    return answer;
  }

  /** The records as they are now, of those that are still there. */
  #still(ids: readonly string[]): BindingRecord[] {
    const records: BindingRecord[] = [];
    for (const id of ids) {
      const binding = this.#parts.inventory.bindings.get(id);
      if (binding !== undefined) records.push(binding.record);
    }
    return records;
  }

  #act(now: Nanos, caller: Caller, command: Command): CommandAnswer {
    switch (command.kind) {
      case 'bind':
        return this.#bind(now, caller, command);
      case 'unbind':
        return this.#unbind(caller, command);
      case 'retry':
        return this.#retry(caller, command);
    }
  }

  #bind(now: Nanos, caller: Caller, command: BindCommand): CommandAnswer {
    const { facts } = this.#parts;
    const error = checkDemand(command.demand);
    if (error !== undefined) return { ok: false, error };
    const planned = plan(facts.index, command.demand);
    if (!planned.ok) return { ok: false, refusal: planned };
    assert(holds(facts.index, planned), 'a plan made in this very turn does not hold');
    const bindings = planned.picks.map((pick) => this.#reserve(now, caller, command, pick));
    return { ok: true, bindings, repeated: false };
  }

  #reserve(now: Nanos, caller: Caller, command: BindCommand, placed: Placed): BindingRecord {
    const { inventory, journal, facts, reconciler, onTransition } = this.#parts;
    const boxSlot = inventory.boxes.get(placed.box)?.slots.get(placed.slot);
    const hostSlot = inventory.hosts.get(command.demand.host)?.slots.get(placed.hostSlot);
    assert(boxSlot !== undefined && hostSlot !== undefined, 'the plan names slots nobody reported');
    assert(
      boxSlot.binding === undefined && hostSlot.binding === undefined,
      `slot ${placed.slot} of box ${placed.box} has an owner already`,
    );
    const atMs = journal.nowMs;
    const record: BindingRecord = {
      id: journal.nextBinding(),
      state: 'reserved',
      goal: 'attached',
      force: false,
      retries: command.retries,
      host: command.demand.host,
      hostSlot: placed.hostSlot,
      box: placed.box,
      boxSlot: placed.slot,
      uuid: placed.uuid,
      model: placed.model,
      path: placed.path,
      generation: journal.nextGeneration(),
      failure: undefined,
      attempts: 0,
      attachment: undefined,
      requestedBy: caller.name,
      requestId: command.requestId,
      createdMs: atMs,
      changedMs: atMs,
    };
    const binding = inventory.addBinding(record, boxSlot, hostSlot);
    journal.createBinding(record);
    onTransition?.(FIRST_TRANSITION, record.id);
    this.#log(caller, command.requestId, binding, 'reserved', `for host ${record.host}`);
    facts.boxSlot(boxSlot, false);
    facts.hostSlot(hostSlot);
    reconciler.reserve(now, binding);
    return record;
  }

  #unbind(caller: Caller, command: UnbindCommand): CommandAnswer {
    const found = this.#named(command.bindings);
    if (found instanceof DxpuError) return { ok: false, error: found };
    for (const binding of found) {
      const force = binding.record.force || command.force;
      // No failure since it was asked for: that is how the record says that somebody has asked again.
      const asked = binding.record.state === 'failed' ? { attempts: 0 } : {};
      this.#parts.reconciler.amend(binding, { goal: 'free', force, ...asked });
      this.#log(caller, command.requestId, binding, 'unbind', command.force ? 'with force' : '');
    }
    return { ok: true, bindings: found.map(({ record }) => record), repeated: false };
  }

  #retry(caller: Caller, command: RetryCommand): CommandAnswer {
    const found = this.#named(command.bindings);
    if (found instanceof DxpuError) return { ok: false, error: found };
    for (const { record } of found) {
      if (record.goal === 'attached') continue;
      return failed(
        'failed_precondition',
        `binding ${record.id} is being given back and cannot be tried again: bind anew once it is free`,
      );
    }
    for (const binding of found) {
      const hasFailed = binding.record.state === 'failed';
      // No attempt since it was asked for: that is how the record says that it need not wait.
      if (hasFailed) this.#parts.reconciler.amend(binding, { attempts: 0 });
      const message = hasFailed ? '' : 'nothing to do: it has not failed';
      this.#log(caller, command.requestId, binding, 'retry', message);
    }
    return { ok: true, bindings: found.map(({ record }) => record), repeated: false };
  }

  #named(ids: readonly string[]): Binding[] | DxpuError {
    if (ids.length === 0) {
      return new DxpuError('invalid_argument', 'bindings is empty: name at least one');
    }
    const found = new Map<string, Binding>();
    for (const id of ids) {
      const binding = this.#parts.inventory.bindings.get(id);
      if (binding === undefined) {
        return new DxpuError(
          'not_found',
          `there is no binding ${id}: 'dxpu get bindings' lists those there are; nothing was changed`,
          { details: { binding: id } },
        );
      }
      found.set(id, binding);
    }
    return [...found.values()];
  }

  #log(caller: Caller, requestId: string, binding: Binding, action: string, message: string): void {
    const { record } = binding;
    this.#parts.journal.log({
      actor: caller.name,
      requestId,
      subjectKind: 'binding',
      subject: record.id,
      action,
      message,
      binding: record,
    });
  }
}

function failed(
  code: 'invalid_argument' | 'already_exists' | 'failed_precondition',
  message: string,
): CommandAnswer {
  return { ok: false, error: new DxpuError(code, message) };
}
