/**
 * The hot-plug service of a soft host: enumerates what appears in a virtual slot, forgets what
 * leaves it and ends everything that was running on it.
 *
 * Each time a slot's link comes up gets a scope of its own. Enumeration runs in it, and so does
 * whatever is run on the function later; when the link goes down the scope ends, and with it every
 * wait in it. A link that comes up again starts afresh: nothing of the earlier function is believed.
 */
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import { SLOT_CONTROL } from '#pcie/pcie-slot';
import { type EnumerationResult, enumerateFunction } from './enumeration.ts';
import type { EnumerationProblem, PciFunction } from './pci-function.ts';
import type { HostListener, SoftHost } from './root-complex.ts';
import { type Outcome, Signal, type Task, TaskScope, waitUntil } from './task.ts';
import type { VirtualPort } from './virtual-port.ts';

export interface HotPlugEvents {
  added?(now: Nanos, fn: PciFunction): void;
  removed?(now: Nanos, fn: PciFunction, surprise: boolean): void;
  problem?(now: Nanos, virtualSlot: number, problem: EnumerationProblem): void;
}

export interface HotPlugOptions {
  /** How long a function may answer "retry". Default 60 s. */
  readonly readyTimeoutNs?: number;
}

class Slot {
  readonly port: VirtualPort;
  readonly changed = new Signal();
  /** Of the link-up in progress. */
  scope: TaskScope | undefined;
  fn: PciFunction | undefined;
  problem: EnumerationProblem | undefined;

  constructor(port: VirtualPort) {
    this.port = port;
  }
}

export class HotPlug implements HostListener {
  readonly #host: SoftHost;
  readonly #events: HotPlugEvents;
  readonly #options: HotPlugOptions;
  readonly #slots: readonly Slot[];

  /** Construct before the host is attached to its fabric, so that no event is missed. */
  constructor(host: SoftHost, events: HotPlugEvents = {}, options: HotPlugOptions = {}) {
    this.#host = host;
    this.#events = events;
    this.#options = options;
    this.#slots = host.ports.map((port) => new Slot(port));
    host.addListener(this);
  }

  /** The function in a slot, once it is set up. */
  functionAt(virtualSlot: number): PciFunction | undefined {
    return this.#slots[virtualSlot]?.fn;
  }

  /** All functions set up, by slot. */
  functions(): PciFunction[] {
    return this.#slots.flatMap((slot) => slot.fn ?? []);
  }

  /** Why the slot's function is not set up, if it was tried. */
  problemAt(virtualSlot: number): EnumerationProblem | undefined {
    return this.#slots[virtualSlot]?.problem;
  }

  /** Enumerates a slot again whose function could not be set up. Else it does nothing. */
  rescan(now: Nanos, virtualSlot: number): void {
    const slot = this.#slots[virtualSlot];
    if (slot === undefined || slot.problem === undefined || !slot.port.linkActive) return;
    this.#enumerate(now, slot);
  }

  /**
   * Waits until the slot's function is set up. Fails with `failed_precondition` when it cannot be
   * (naming the problem), with `deadline_exceeded` after `withinNs`.
   */
  *waitForFunction(virtualSlot: number, withinNs: number): Task<PciFunction> {
    const slot = this.#slots[virtualSlot];
    if (slot === undefined) {
      throw new DxpuError('not_found', `this host has no virtual slot ${virtualSlot}`);
    }
    yield* waitUntil(
      // A link that went down may come up again: the one problem that waiting can cure.
      () =>
        slot.fn !== undefined || (slot.problem !== undefined && slot.problem.kind !== 'link-down'),
      { signal: slot.changed, withinNs },
    );
    if (slot.fn !== undefined) return slot.fn;
    const { problem } = slot;
    if (problem !== undefined && problem.kind !== 'link-down') {
      throw new DxpuError('failed_precondition', problem.message, { details: { ...problem } });
    }
    throw new DxpuError(
      'deadline_exceeded',
      `no function appeared in slot ${virtualSlot} within ${withinNs / 1e9} s` +
        (problem === undefined ? '' : ` (${problem.message})`),
      { details: { virtualSlot, withinNs } },
    );
  }

  slotChanged(now: Nanos, virtualSlot: number, active: boolean, surprise: boolean): void {
    const slot = this.#slots[virtualSlot];
    if (slot === undefined) return;
    // As an interrupt handler does: take note of the changes by clearing what says so.
    const register = slot.port.pcieOffset + SLOT_CONTROL;
    slot.port.writeConfig(register, slot.port.config.read32(register), 12);
    if (active) this.#enumerate(now, slot);
    else this.#remove(now, slot, surprise);
  }

  #enumerate(now: Nanos, slot: Slot): void {
    if (slot.scope !== undefined && slot.problem === undefined) return;
    const { virtualSlot } = slot.port;
    const scope = new TaskScope(`slot ${virtualSlot}`);
    slot.scope = scope;
    slot.problem = undefined;
    const options = {
      maxPayloadBytes: this.#host.maxPayloadBytes,
      maxReadRequestBytes: this.#host.maxReadRequestBytes,
      ...this.#options,
    };
    const task = enumerateFunction(this.#host, slot.port, scope, options);
    this.#host.tasks.run(now, task, (at, outcome) => this.#enumerated(at, slot, outcome), scope);
  }

  #enumerated(now: Nanos, slot: Slot, outcome: Outcome<EnumerationResult>): void {
    if (!outcome.ok) {
      // Ended by removal, which says so itself; anything else is a bug.
      if (outcome.error instanceof DxpuError) return;
      throw outcome.error;
    }
    if (outcome.value.ok) {
      slot.fn = outcome.value.fn;
      this.#events.added?.(now, slot.fn);
      slot.changed.notify(now);
    } else {
      this.#fail(now, slot, outcome.value.problem);
    }
  }

  #remove(now: Nanos, slot: Slot, surprise: boolean): void {
    const { fn, scope } = slot;
    const { virtualSlot } = slot.port;
    if (scope === undefined) return;
    const wasEnumerating = fn === undefined && slot.problem === undefined;
    slot.fn = undefined;
    slot.scope = undefined;
    slot.problem = undefined;
    this.#host.resetSlotPayload(virtualSlot);
    const how = surprise ? 'without notice' : 'as asked';
    const message = `the function in virtual slot ${virtualSlot} was removed (${how})`;
    scope.end(now, new DxpuError('unavailable', message, { details: { virtualSlot, surprise } }));
    if (fn !== undefined) this.#events.removed?.(now, fn, surprise);
    if (wasEnumerating) {
      const text = `the link of slot ${virtualSlot} went down while its function was being set up`;
      this.#fail(now, slot, { kind: 'link-down', message: text });
    }
  }

  #fail(now: Nanos, slot: Slot, problem: EnumerationProblem): void {
    slot.problem = problem;
    this.#events.problem?.(now, slot.port.virtualSlot, problem);
    slot.changed.notify(now);
  }
}
