/**
 * The system of a model host: it takes its time to find functions and to set them up, and has programs
 * that hold them for a while.
 */
import type { Prng } from '#base/prng';
import { nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import type { GpuNodeReport } from '#proto/agent-messages';
import { type ModelHostSlot, placeBars } from './model-host-slot.ts';
import type { ClusterPlan } from './plan.ts';

/** Config reads that nobody answers are tried again. */
const RETRY_NS = 200e6;

export interface ModelSystemOptions {
  readonly clock: VirtualClock;
  readonly prng: Prng;
  readonly plan: ClusterPlan;
  /** The GPU node in the box slot of the row, as config reads show it. */
  readonly nodeBehind: (slot: ModelHostSlot) => GpuNodeReport | undefined;
  /** The box of the row answers. */
  readonly isReached: (slot: ModelHostSlot) => boolean;
  /** What the slot shows has changed: as it was ordered, or by itself. */
  readonly onChange: (slot: ModelHostSlot, ordered: boolean) => void;
}

export class ModelSystem {
  readonly #options: ModelSystemOptions;
  #dead = false;

  constructor(options: ModelSystemOptions) {
    this.#options = options;
  }

  kill(): void {
    this.#dead = true;
  }

  /** Finds the function behind a slot that is ready and plugged. */
  enumerate(slot: ModelHostSlot): void {
    const { prng, plan, onChange, nodeBehind } = this.#options;
    if (!slot.plugged || slot.state !== 'ready' || slot.fn !== undefined) return;
    slot.problem = undefined;
    slot.epoch++;
    const takesNs = prng.chance(0.02) ? 70e9 : plan.enumerationNs * (0.2 + prng.float());
    this.#whenReached(slot, takesNs, () => {
      const node = nodeBehind(slot);
      if (node === undefined) return;
      const bdf = slot.plan.secondaryBus << 8;
      const ids = { bdf, vendorId: 0xddb0, deviceId: 1 };
      slot.fn = { ...ids, bars: [], memoryEnable: false, busMaster: false };
      onChange(slot, false);
      this.#whenReached(slot, takesNs / 4, () => this.#setUp(slot, node));
    });
  }

  /** A function that nobody uses leaves, as it was asked to. */
  leave(slot: ModelHostSlot): void {
    const { prng, onChange } = this.#options;
    const { epoch } = slot;
    this.#after(100e6 * prng.float(), () => {
      if (slot.epoch !== epoch || !slot.leaving || slot.inUse) return;
      slot.dropFunction();
      onChange(slot, true);
    });
  }

  /** Behind so much work on the function, all of which needs its box to answer. */
  #whenReached(slot: ModelHostSlot, takesNs: number, fn: () => void): void {
    const { epoch } = slot;
    this.#after(takesNs, () => {
      if (slot.epoch !== epoch || slot.row === undefined) return;
      if (this.#options.isReached(slot)) fn();
      else this.#whenReached(slot, RETRY_NS, fn);
    });
  }

  #setUp(slot: ModelHostSlot, node: GpuNodeReport): void {
    const { prng, plan, onChange } = this.#options;
    const { fn } = slot;
    if (fn === undefined) return;
    const bars = placeBars(slot, node.bars);
    if (bars === undefined) {
      slot.problem = { kind: 'no-space', message: 'the BARs do not fit into the windows' };
    } else if (prng.chance(plan.unusable)) {
      slot.problem = { kind: 'not-ready', message: 'the function kept answering: retry' };
    } else {
      slot.fn = { ...fn, bars, memoryEnable: true, busMaster: true };
      this.#startProgram(slot);
    }
    onChange(slot, false);
  }

  /** Some functions are used for a while, some for longer than anybody waits. */
  #startProgram(slot: ModelHostSlot): void {
    const { prng, plan, onChange } = this.#options;
    const { epoch } = slot;
    if (prng.chance(plan.unusable)) {
      this.#after(10e9 * prng.float(), () => {
        if (slot.epoch !== epoch) return;
        const kind = prng.pick(['no-space', 'gone-bad']);
        slot.problem = { kind, message: 'the function cannot be used any more' };
        onChange(slot, false);
      });
    }
    if (!prng.chance(0.5)) return;
    const usedNs = prng.chance(0.15) ? 60e9 : 5e9 * prng.float();
    this.#after(3e9 * prng.float(), () => {
      if (slot.epoch !== epoch || slot.leaving) return;
      slot.inUse = true;
      onChange(slot, false);
      this.#after(usedNs, () => {
        if (slot.epoch !== epoch) return;
        slot.inUse = false;
        onChange(slot, false);
        if (slot.leaving) this.leave(slot);
      });
    });
  }

  #after(afterNs: number, fn: () => void): void {
    const { clock } = this.#options;
    clock.at(nanos(clock.now() + afterNs), () => {
      if (!this.#dead) fn();
    });
  }
}
