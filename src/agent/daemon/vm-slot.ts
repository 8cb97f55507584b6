/**
 * A virtual slot of a host whose functions a VM uses. A function that appears is surveyed, fitted against
 * the windows of the slot's root port, served over vfio-user, and added to QEMU there; one that goes is taken
 * back from QEMU.
 *
 * Two lives run side by side: the function's (from link up to link down) and that of QEMU's device (from
 * `device_add` to DEVICE_DELETED). The device outlives its function for as long as the guest does not let
 * go; all its reads are all ones then, and the slot's next function waits.
 */
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import type { FunctionSurvey, SurveyResult } from '#host/function-survey';
import type { ServedDevice } from '#vfio-user/served-device';
import type { SlotProblem, UsedFunction } from './slot-software.ts';
import { SlotSurvey } from './slot-survey.ts';
import { VmDevice, type VmHotplug } from './vm-device.ts';
import { VmFunction, type VmFunctionOptions } from './vm-function.ts';
import { slotNote } from './vm-slot-note.ts';
import { fitWindows } from './window-fit.ts';

/** Serves a device at a unix socket until it is closed. Throws `DxpuError`. */
export type Serve = (device: ServedDevice, socketPath: string) => { close(): void };

/** `onChanged`: anything of the slot. */
export interface VmSlotOptions extends Omit<VmFunctionOptions, 'survey'> {
  /** As QEMU calls it. */
  readonly rootPort: string;
  readonly socketPath: string;
  readonly vm: VmHotplug;
  readonly serve: Serve;
}

const VM_GONE: SlotProblem = {
  kind: 'vm-gone',
  message: 'the VM has ended, or its QMP socket is gone',
};
const CONNECTION_LOST: SlotProblem = {
  kind: 'connection-lost',
  message: 'QEMU has given up its connection to the function, and goes on: its log says why',
};
/** From a connection that ends to what says that the VM has ended, or the guest has let go. */
const EXPLAINED_NS = 1e9;

export class VmSlot {
  readonly #options: VmSlotOptions;
  readonly #device: VmDevice;
  readonly #surveying: SlotSurvey;
  #survey: FunctionSurvey | undefined;
  #problem: SlotProblem | undefined;
  /** What QEMU's device is served by; `undefined` for one that was there before this process. */
  #served: { readonly fn: VmFunction; readonly server: { close(): void } } | undefined;
  #leaving: ((now: Nanos) => void)[] | undefined;
  /** The guest has let go of the function that is still here, as asked: it does not get it back. */
  #hasLeft = false;
  /** The function as the guest placed it last, as long as it has it. */
  #lastPlaced: UsedFunction | undefined;
  #cancelWait: (() => void) | undefined;
  #cancelLost: (() => void) | undefined;

  constructor(options: VmSlotOptions) {
    this.#options = options;
    const { soft, port, rootPort, vm, log, settle, onChanged } = options;
    this.#surveying = new SlotSurvey(soft, port, (now, result) => this.#surveyed(now, result));
    this.#device = new VmDevice({
      virtualSlot: port.virtualSlot,
      rootPort,
      vm,
      tasks: soft.tasks,
      log,
      settle,
      onGone: (now) => this.removed(now),
      onRefused: onChanged,
    });
  }

  /** Of its device in QEMU. */
  get id(): string {
    return this.#device.id;
  }

  get problem(): SlotProblem | undefined {
    return this.#problem;
  }

  /**
   * The function as the guest has placed it; one that is to leave as it was placed last, until the guest has
   * let go.
   */
  get used(): UsedFunction | undefined {
    const fn = this.#served?.fn;
    if (this.#survey === undefined || fn?.survey !== this.#survey) return undefined;
    return this.#placed() ?? (this.#leaving === undefined ? undefined : this.#lastPlaced);
  }

  /** As `slotNote`. */
  get note(): string | undefined {
    const { vm, rootPort } = this.#options;
    const { state, refusal } = this.#device;
    return slotNote({
      rootPort,
      state,
      refusal,
      survey: this.#survey,
      isForeign: state !== 'none' && this.#served?.fn.survey !== this.#survey,
      isConnected: vm.isConnected,
      hasWindows: this.hasWindows,
      isWaiting: this.#cancelWait !== undefined,
      isUsed: this.used !== undefined,
    });
  }

  /** QEMU has yet to answer to `device_add`. */
  get isAdding(): boolean {
    return this.#device.state === 'adding';
  }

  /** Whether the guest has given the root port any window. */
  get hasWindows(): boolean {
    const { nonPrefetchable, prefetchable } = this.#options.port.routing;
    return nonPrefetchable.limit > nonPrefetchable.base || prefetchable.limit > prefetchable.base;
  }

  /** Something is under way that shows in what QEMU says of its buses. */
  get isUnsettled(): boolean {
    return this.#survey !== undefined && this.used === undefined;
  }

  /** The link of the slot came up or went down. */
  linkChanged(now: Nanos, active: boolean, surprise: boolean): void {
    if (active) {
      this.#surveying.start(now);
      return;
    }
    const how = surprise ? 'without notice' : 'as asked';
    this.#survey = undefined;
    this.#problem = undefined;
    this.#hasLeft = false;
    this.#served?.fn.end();
    const { virtualSlot } = this.#options.port;
    const message = `the function in virtual slot ${virtualSlot} was removed (${how})`;
    this.#surveying.stop(now, message);
    this.#advance(now);
  }

  #surveyed(now: Nanos, result: SurveyResult): void {
    const { port, log } = this.#options;
    if (result.ok) this.#survey = result.survey;
    else this.#setProblem(result.problem);
    if (this.#survey?.hasMsix === true) {
      log.info({ slot: port.virtualSlot }, 'MSI-X of the function is hidden from the guest');
    }
    this.#advance(now);
  }

  interrupt(data: number): void {
    this.#served?.fn.interrupt(data);
  }

  setPin(asserted: boolean): void {
    this.#served?.fn.setPin(asserted);
  }

  /** As `SlotSoftware.leave`. */
  leave(now: Nanos, done: (now: Nanos) => void): boolean {
    if (this.#device.state === 'none') return false;
    this.#leaving ??= [];
    this.#leaving.push(done);
    this.#advance(now);
    return true;
  }

  /** QEMU is there; whether it has a device of this slot. */
  connected(now: Nanos, hasDevice: boolean): void {
    if (this.#problem?.kind === 'vm-gone') this.#problem = undefined;
    if (hasDevice) this.#device.found();
    else if (this.#device.state !== 'none') this.removed(now);
    this.#advance(now);
  }

  /** QEMU is not there any more, as far as its monitor goes. */
  disconnected(now: Nanos): void {
    if (this.#served?.fn.isUsed === true) return;
    this.#vmGone(now);
  }

  /** QEMU has the device no more: the guest has let go, or QEMU has ended. */
  removed(now: Nanos): void {
    const served = this.#served;
    const leaving = this.#leaving ?? [];
    this.#device.gone();
    this.#served = undefined;
    this.#lastPlaced = undefined;
    this.#hasLeft ||= this.#leaving !== undefined && this.#survey !== undefined;
    this.#leaving = undefined;
    served?.server.close();
    for (const done of leaving) done(now);
    this.#advance(now);
    this.#options.onChanged(now);
  }

  /** The guest would not let go. */
  unplugRefused(now: Nanos, reason: string): void {
    this.#device.refused(now, reason);
  }

  /** Windows or bus of the port have changed. */
  routingChanged(now: Nanos): void {
    if (this.#problem?.kind === 'no-space') this.#problem = undefined;
    if (this.#survey === undefined && this.#surveying.isElsewhere) {
      this.#problem = undefined;
      const { secondaryBus } = this.#options.port.routing;
      this.#surveying.stop(now, `the bus has become ${secondaryBus}`);
      this.#surveying.start(now);
    }
    this.#advance(now);
  }

  /** The function is gone for the guest, which has all its reads answered until `close`. */
  stop(): void {
    this.#device.stop();
    this.#cancelWait?.();
    this.#cancelLost?.();
    this.#served?.fn.end();
  }

  /** Ends what QEMU is connected to. */
  close(): void {
    this.#served?.server.close();
  }

  /** QEMU has ended: its devices are gone with it. */
  #vmGone(now: Nanos): void {
    if (this.#device.state !== 'none') this.removed(now);
    if (this.#survey === undefined) return;
    this.#setProblem(VM_GONE);
    this.#options.onChanged(now);
  }

  #placed(): UsedFunction | undefined {
    const fn = this.#served?.fn;
    const { state } = this.#device;
    if (fn === undefined || state === 'none' || state === 'adding') return undefined;
    const { survey, placedBars: bars } = fn;
    if (survey !== this.#survey || bars === undefined) return undefined;
    const { vendorId, deviceId } = survey;
    return { bdf: this.#options.port.routing.secondaryBus << 8, vendorId, deviceId, bars };
  }

  /** Called whenever the guest may have placed the function: once it takes that back nobody can tell. */
  #keepPlace(): void {
    const placed = this.#placed();
    if (placed === undefined) return;
    this.#lastPlaced = placed;
    // Of this QEMU may not have told in time.
    this.#served?.fn.added();
  }

  #advance(now: Nanos): void {
    this.#keepPlace();
    const { vm } = this.#options;
    if (!vm.isConnected) return;
    const isLeaving = this.#leaving !== undefined || this.#hasLeft;
    const isWanted = this.#survey !== undefined && !isLeaving;
    const { state } = this.#device;
    if (state === 'none') {
      if (isWanted && this.#problem === undefined && this.hasWindows) this.#addOnceQuiet(now);
    } else if (state === 'there') {
      const isForeign = this.#served?.fn.survey !== this.#survey;
      if (!isWanted || isForeign || this.#problem !== undefined) this.#device.remove(now);
    }
    this.#options.onChanged(now);
  }

  #addOnceQuiet(now: Nanos): void {
    const { soft, vm } = this.#options;
    if (now >= vm.quietUntilNs) {
      this.#add();
      return;
    }
    this.#cancelWait ??= soft.tasks.at(vm.quietUntilNs, (then) => {
      this.#cancelWait = undefined;
      this.#advance(then);
      this.#options.settle();
    });
  }

  #add(): void {
    const { port, rootPort, socketPath, vm, serve, onChanged } = this.#options;
    const survey = this.#survey;
    if (survey === undefined) return;
    const noSpace = fitWindows(survey, port, rootPort);
    if (noSpace !== undefined) {
      this.#setProblem(noSpace);
      return;
    }
    const fn = new VmFunction({
      ...this.#options,
      survey,
      onChanged: (then) => {
        this.#keepPlace();
        if (!fn.isUsed && this.#served?.fn === fn) {
          if (vm.isConnected) this.#explainLoss(then, fn);
          else this.#vmGone(then);
        }
        onChanged(then);
      },
    });
    try {
      this.#served = { fn, server: serve(fn, socketPath) };
    } catch (error) {
      this.#setProblem({ kind: 'not-served', message: DxpuError.from(error).message });
      return;
    }
    this.#device.add(socketPath, (then, answer) => {
      // It is at it still: without the function QEMU 11.1.3 would not survive the end of that.
      const isUnderWay = !answer.ok && answer.kind === 'timeout' && fn.isUsed;
      if (!isUnderWay) fn.added();
      if (!answer.ok && this.#survey === survey) {
        // Before the device counts as removed: that would be the time to add it again.
        const { kind, message } = answer;
        this.#setProblem(kind === 'gone' ? VM_GONE : { kind: 'not-added', message });
      }
      if (this.#device.state === 'none') {
        this.removed(then);
        return;
      }
      if (!answer.ok && !isUnderWay) {
        // QEMU may have it, or come to have it: not with what was served for it.
        this.#served?.server.close();
        this.#served = undefined;
      }
      this.#advance(then);
    });
  }

  /** QEMU connects once: a device that has lost its connection is of no use to the guest any more. */
  #explainLoss(now: Nanos, fn: VmFunction): void {
    const { soft, settle } = this.#options;
    this.#cancelLost?.();
    this.#cancelLost = soft.tasks.at(now + EXPLAINED_NS, (then) => {
      const isUnexplained = this.#served?.fn === fn && fn.survey === this.#survey;
      if (!isUnexplained || fn.isUsed || this.#device.state !== 'there') return;
      this.#setProblem(CONNECTION_LOST);
      this.#advance(then);
      settle();
    });
  }

  #setProblem({ kind, message }: SlotProblem): void {
    const { port, log } = this.#options;
    this.#problem = { kind, message };
    log.error({ slot: port.virtualSlot, problem: kind }, message);
  }
}
