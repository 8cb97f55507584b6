/** Who puts the functions of a host's virtual slots to use: this host's own software, or a VM. */
import type { Nanos } from '#base/units';
import { COMMAND, COMMAND_INTX_DISABLE, LOWER_HALF } from '#host/function-registers';
import type { HotPlug } from '#host/hot-plug';
import { configWrite } from '#host/host-operations';
import type { SoftHost } from '#host/root-complex';
import type { FunctionReport, HostSlotReport } from '#proto/agent-messages';

/** A function as its user sees it; the live bits are the proxy's to know. */
export type UsedFunction = Omit<FunctionReport, 'memoryEnable' | 'busMaster'>;

export type SlotProblem = NonNullable<HostSlotReport['problem']>;

export interface SlotSoftware {
  /** The function of a slot, once its BARs have their final addresses. */
  functionAt(slot: number): UsedFunction | undefined;
  /** Why the function that is there is not put to use. `link-down`: the slot's own state says it. */
  problemAt(slot: number): SlotProblem | undefined;
  /** What is worth knowing of a slot that is as it should be, or on its way there. */
  noteAt(slot: number): string | undefined;
  /**
   * Asks whoever uses the function of a slot to let go of it; `done` once that has happened, which may be
   * never. Returns false when nobody uses it.
   */
  leave(now: Nanos, slot: number, done: (now: Nanos) => void): boolean;
}

/** The software of a soft host: functions are set up by `HotPlug`, and switched off to leave. */
export class SoftSlots implements SlotSoftware {
  readonly #soft: SoftHost;
  readonly #hotPlug: HotPlug;

  constructor(soft: SoftHost, hotPlug: HotPlug) {
    this.#soft = soft;
    this.#hotPlug = hotPlug;
  }

  functionAt(slot: number): UsedFunction | undefined {
    return this.#hotPlug.functionAt(slot);
  }

  problemAt(slot: number): SlotProblem | undefined {
    return this.#hotPlug.problemAt(slot);
  }

  noteAt(): undefined {
    return undefined;
  }

  leave(now: Nanos, slot: number, done: (now: Nanos) => void): boolean {
    const fn = this.#hotPlug.functionAt(slot);
    if (fn === undefined) return false;
    const switchOff = configWrite(this.#soft, fn.bdf, COMMAND, COMMAND_INTX_DISABLE, LOWER_HALF);
    this.#soft.tasks.run(now, switchOff, done);
    return true;
  }
}
