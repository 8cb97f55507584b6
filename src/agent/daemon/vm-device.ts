/** QEMU's device at a root port, from `device_add` to DEVICE_DELETED. */
import type { Nanos } from '#base/units';
import type { TaskRunner } from '#host/task';
import type { QmpAnswer, QmpDone } from '#vm/qmp-session';
import type { Logger } from './logger.ts';

/** What a slot asks of QEMU. */
export interface VmHotplug {
  readonly isConnected: boolean;
  /**
   * The guest starts, and its hot-plug driver may not be there yet. What is pressed before is taken for
   * something else when the driver comes: Linux leaves the slot's indicator blinking, and QEMU refuses all
   * removals from then on.
   */
  readonly quietUntilNs: number;
  addDevice(id: string, rootPort: string, socketPath: string, done: QmpDone): void;
  removeDevice(id: string, done: QmpDone): void;
}

export interface VmDeviceOptions {
  readonly virtualSlot: number;
  /** As QEMU calls it. */
  readonly rootPort: string;
  readonly vm: VmHotplug;
  readonly tasks: TaskRunner;
  readonly log: Logger;
  /** QEMU says that it has no such device. */
  readonly onGone: (now: Nanos) => void;
  readonly onRefused: (now: Nanos) => void;
  readonly settle: () => void;
}

/** QEMU takes a request while another is under way for an error, and a guest may miss one. */
const ASK_AGAIN_NS = 7e9;

export class VmDevice {
  readonly id: string;
  readonly #options: VmDeviceOptions;
  #state: 'none' | 'adding' | 'there' | 'removing' = 'none';
  #refusal = '';
  #cancelAsking: (() => void) | undefined;

  constructor(options: VmDeviceOptions) {
    this.#options = options;
    this.id = `dxpu-slot${options.virtualSlot}`;
  }

  get state(): 'none' | 'adding' | 'there' | 'removing' {
    return this.#state;
  }

  /** Why it has not been let go of, when somebody has said so. */
  get refusal(): string {
    return this.#refusal;
  }

  /** QEMU has it. A request to remove it may have been lost with a connection. */
  found(): void {
    this.#state = 'there';
  }

  /** `done` unless it is gone before. Without an answer in time it may be there or not. */
  add(socketPath: string, done: QmpDone): void {
    const { rootPort, vm, log, virtualSlot, settle } = this.#options;
    this.#state = 'adding';
    log.info({ slot: virtualSlot, rootPort }, 'adding the function to the VM');
    vm.addDevice(this.id, rootPort, socketPath, (now, answer) => {
      if (this.#state !== 'adding') return;
      this.#state = answer.ok || answer.kind === 'timeout' ? 'there' : 'none';
      done(now, withWayOut(answer));
      settle();
    });
  }

  /** Asks, again and again, until QEMU says that it is gone. */
  remove(now: Nanos): void {
    const { vm, tasks, onGone, settle } = this.#options;
    this.#state = 'removing';
    const isQuiet = now >= vm.quietUntilNs;
    if (isQuiet) {
      vm.removeDevice(this.id, (then, answer) => {
        if (this.#state !== 'removing' || answer.ok) return;
        if (answer.kind === 'DeviceNotFound') onGone(then);
        else this.refused(then, answer.message);
        settle();
      });
    }
    this.#cancelAsking?.();
    this.#cancelAsking = tasks.at(isQuiet ? now + ASK_AGAIN_NS : vm.quietUntilNs, (then) => {
      if (this.#state === 'removing') this.remove(then);
    });
  }

  /** Whoever has it would not let go. */
  refused(now: Nanos, reason: string): void {
    if (this.#refusal === reason) return;
    const { log, virtualSlot, onRefused } = this.#options;
    this.#refusal = reason;
    log.warn({ slot: virtualSlot }, reason);
    onRefused(now);
  }

  /** QEMU has it no more, or there is no QEMU any more. */
  gone(): void {
    this.#state = 'none';
    this.#refusal = '';
    this.stop();
  }

  stop(): void {
    this.#cancelAsking?.();
    this.#cancelAsking = undefined;
  }
}

/** QEMU, of another user or held by a security module, does not get to the socket served for it. */
function withWayOut(answer: QmpAnswer): QmpAnswer {
  if (answer.ok || !answer.message.endsWith('Permission denied')) return answer;
  const wayOut =
    'run this process as the user of QEMU, and let AppArmor or SELinux pass the socket';
  return { ...answer, message: `${answer.message}: ${wayOut}` };
}
