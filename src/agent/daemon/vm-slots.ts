/**
 * The slots of a host whose functions a VM uses: QEMU's root ports, by QMP. Buses and windows are read of
 * QEMU, for the guest sets them.
 */
import type { Clock } from '#base/clock';
import { Pause } from '#base/pause';
import { type Nanos, nanos } from '#base/units';
import type { HostListener, SoftHost } from '#host/root-complex';
import type { RootSide } from '#pcie/root-port';
import { QmpConnection, type QmpConnectionUser } from '#vm/qmp-connection';
import type { QmpDone, QmpRefusal } from '#vm/qmp-session';
import type { Logger } from './logger.ts';
import type { SlotProblem, SlotSoftware, UsedFunction } from './slot-software.ts';
import type { VmHotplug } from './vm-device.ts';
import { memoryProblem, namesIn } from './vm-answers.ts';
import { VmPorts } from './vm-ports.ts';
import { type Serve, VmSlot, type VmSlotOptions } from './vm-slot.ts';

export interface VmPlace {
  /** QEMU's QMP socket; it takes one client. */
  readonly qmp: string;
  /** The root ports that are the virtual slots 0, 1 and so on. */
  readonly rootPorts: readonly string[];
  /** Of the unix sockets devices are served at; the slot's number follows. */
  readonly socketPrefix: string;
  readonly serve: Serve;
  /** Default: a connection to `qmp`, again and again. */
  readonly monitor?: (user: QmpConnectionUser) => Pick<QmpConnection, 'execute' | 'stop'>;
}

export interface VmSlotsOptions extends VmPlace {
  readonly soft: SoftHost;
  readonly proxy: VmSlotOptions['proxy'];
  readonly clock: Clock;
  readonly log: Logger;
  readonly onChanged: () => void;
  /** Buses or windows of ports are others now. */
  readonly onRouting: (now: Nanos) => void;
  readonly settle: () => void;
}

const LOOK_AGAIN_NS = 1e9;
/** A guest that restarts programs its buses anew within this. */
const RESTART_NS = 30e9;
/** From a reset, or from when firmware has set up the ports, to the guest's hot-plug driver. */
const QUIET_NS = 20e9;

/**
 * How long QEMU waits for an answer. A read waits behind all writes before it, a picture's worth maybe; by itself QEMU
 * 11.1.3 waits 5 s, and does not find its way back into a connection whose answer comes later. As long a guest stands
 * still whose proxy is killed while it waits.
 */
const ANSWER_TIME = 'x-msg-timeout';
const ANSWER_TIME_MS = 20_000;

/** A process that stops has 0.3 s for last words. What QEMU has asked when its connection ends it waits for in vain. */
const LAST_ANSWERS_NS = 0.15e9;

export class VmSlots implements SlotSoftware, HostListener, VmHotplug {
  readonly #options: VmSlotsOptions;
  readonly #slots: readonly VmSlot[];
  readonly #ports: VmPorts;
  readonly #monitor: Pick<QmpConnection, 'execute' | 'stop'>;
  #isConnected = false;
  /** Counts connections, gained and lost: what belongs to another one is not heeded. */
  #epoch = 0;
  #whyNot = 'it has not been reached yet';
  /** What is wrong with the VM's memory: no function is added then. */
  #memoryProblem: string | undefined;
  /** As it was logged, until QEMU answers. */
  #failure = '';
  readonly #addingPause = new Pause();
  #isLooking = false;
  #cancelLook: (() => void) | undefined;
  #looksUntilNs = 0;
  #quietUntilNs = 0;

  /** Ports of `soft` are of `unknownPorts`. */
  constructor(options: VmSlotsOptions) {
    this.#options = options;
    const { soft, proxy, rootPorts, socketPrefix, serve, log, settle } = options;
    this.#slots = soft.ports.map(
      (port, index) =>
        new VmSlot({
          soft,
          port,
          proxy,
          rootPort: rootPorts[index] ?? '',
          socketPath: `${socketPrefix}${index}`,
          vm: this,
          serve,
          log,
          settle,
          onChanged: (now) => {
            options.onChanged();
            this.#lookIfUnsettled(now);
            if (!this.#isAdding) this.#addingPause.end();
          },
        }),
    );
    this.#ports = new VmPorts(soft.ports, rootPorts, log);
    soft.addListener(this);
    const { qmp: path, clock } = options;
    const monitor = options.monitor ?? ((user) => new QmpConnection({ path, clock, user }));
    this.#monitor = monitor({
      connected: () => {
        log.info({ qmp: path }, 'connected to QEMU');
        this.#monitor.execute('query-memdev', {}, (_now, answer) => {
          this.#memoryProblem = memoryProblem(answer);
          if (this.#memoryProblem !== undefined) log.error({}, this.#memoryProblem);
        });
        this.#learn(++this.#epoch);
      },
      disconnected: (now, reason) => this.#disconnected(now, reason),
      event: (now, name, data) => this.#event(now, name, data),
      turnEnd: settle,
    });
  }

  /** What the fabric tells goes to the root complex, and interrupts to the VM. */
  static rootSide(soft: SoftHost, slots: () => VmSlots): RootSide {
    return {
      completion: (now, tlp) => soft.completion(now, tlp),
      interrupt: (_now, slot, _address, data) => slots().#slots[slot]?.interrupt(data),
      interruptPin: (_now, slot, asserted) => slots().#slots[slot]?.setPin(asserted),
      linkActive: (now, slot, active, surprise) => soft.linkActive(now, slot, active, surprise),
      resume: (now) => soft.resume(now),
    };
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  get quietUntilNs(): number {
    return this.#quietUntilNs;
  }

  addDevice(id: string, rootPort: string, socketPath: string, done: QmpDone): void {
    if (this.#memoryProblem !== undefined) {
      const message = this.#memoryProblem;
      done(this.#options.clock.now(), { ok: false, kind: 'memory-not-shared', message });
      return;
    }
    const socket = { type: 'unix', path: socketPath };
    const device = { driver: 'vfio-user-pci', id, bus: rootPort, socket };
    const patient = { ...device, [ANSWER_TIME]: ANSWER_TIME_MS };
    this.#monitor.execute('device_add', patient, (now, answer) => {
      // A QEMU without that property: its name begins as those do that may change.
      const isUnknown = !answer.ok && answer.message.includes(ANSWER_TIME);
      if (isUnknown) this.#monitor.execute('device_add', device, done);
      else done(now, answer);
    });
  }

  removeDevice(id: string, done: QmpDone): void {
    this.#monitor.execute('device_del', { id }, done);
  }

  functionAt(slot: number): UsedFunction | undefined {
    return this.#slots[slot]?.used;
  }

  problemAt(slot: number): SlotProblem | undefined {
    return this.#slots[slot]?.problem;
  }

  noteAt(slot: number): string | undefined {
    if (!this.#isConnected) return `QEMU is not connected: ${this.#whyNot}`;
    return this.#ports.problemOf(slot) ?? this.#memoryProblem ?? this.#slots[slot]?.note;
  }

  leave(now: Nanos, slot: number, done: (now: Nanos) => void): boolean {
    return this.#slots[slot]?.leave(now, done) ?? false;
  }

  slotChanged(now: Nanos, virtualSlot: number, active: boolean, surprise: boolean): void {
    this.#slots[virtualSlot]?.linkChanged(now, active, surprise);
  }

  /**
   * Returns once QEMU has answered to every `device_add`, or after `withinNs`: it would not survive the end of what it
   * is taking in.
   */
  allAdded(withinNs: number): Promise<void> {
    if (!this.#isAdding) return Promise.resolve();
    return this.#addingPause.for(this.#options.clock, withinNs);
  }

  get #isAdding(): boolean {
    return this.#slots.some(({ isAdding }) => isAdding);
  }

  stop(): void {
    this.#cancelLook?.();
    this.#monitor.stop();
    for (const slot of this.#slots) slot.stop();
    const { clock } = this.#options;
    clock.at(nanos(clock.now() + LAST_ANSWERS_NS), () => {
      for (const slot of this.#slots) slot.close();
    });
  }

  /** What QEMU has of ours, and where: again until it says so. */
  #learn(epoch: number): void {
    this.#monitor.execute('qom-list', { path: '/machine/peripheral' }, (now, answer) => {
      if (!answer.ok) {
        this.#failed(now, answer, () => this.#learn(epoch), epoch);
        return;
      }
      const names = new Set(namesIn(answer.value));
      this.#look((then) => {
        if (epoch !== this.#epoch) return;
        this.#isConnected = true;
        for (const slot of this.#slots) slot.connected(then, names.has(slot.id));
        this.#options.onChanged();
        this.#lookIfUnsettled(then);
      });
    });
  }

  #disconnected(now: Nanos, reason: string): void {
    this.#options.log.warn({ qmp: this.#options.qmp }, reason);
    this.#isConnected = false;
    this.#epoch++;
    this.#whyNot = reason;
    for (const slot of this.#slots) slot.disconnected(now);
    this.#options.onChanged();
  }

  #event(now: Nanos, name: string, data: Readonly<Record<string, unknown>>): void {
    const slot = this.#slots.find(({ id }) => id === data['device']);
    switch (name) {
      case 'DEVICE_DELETED':
        slot?.removed(now);
        break;
      case 'DEVICE_UNPLUG_GUEST_ERROR':
      case 'MEM_UNPLUG_ERROR':
        slot?.unplugRefused(now, 'the guest has refused to let the function go');
        break;
      case 'RESET':
        this.#options.log.info({}, 'the guest restarts');
        this.#quietUntilNs = now + QUIET_NS;
        this.#looksUntilNs = now + RESTART_NS;
        this.#look();
        break;
      default:
        break;
    }
  }

  /** Reads buses and windows, once at a time; `then` once they are read. */
  #look(then?: (now: Nanos) => void): void {
    const epoch = this.#epoch;
    if (this.#isLooking) {
      // What is being read may be older than the question.
      if (then !== undefined) this.#again(this.#options.clock.now(), () => this.#look(then), epoch);
      return;
    }
    this.#isLooking = true;
    this.#monitor.execute('query-pci', {}, (now, answer) => {
      this.#isLooking = false;
      if (answer.ok) {
        this.#failure = '';
        this.#apply(now, answer.value);
        then?.(now);
        this.#lookIfUnsettled(now);
      } else {
        this.#failed(now, answer, () => this.#look(then), epoch);
      }
      this.#options.settle();
    });
  }

  #failed(now: Nanos, answer: QmpRefusal, again: () => void, epoch: number): void {
    if (answer.kind === 'gone') return;
    if (!this.#isConnected) this.#whyNot = answer.message;
    if (this.#failure !== answer.message) this.#options.log.warn({}, answer.message);
    this.#failure = answer.message;
    this.#again(now, again, epoch);
  }

  #again(now: Nanos, fn: () => void, epoch: number): void {
    this.#options.soft.tasks.at(now + LOOK_AGAIN_NS / 10, () => {
      if (epoch === this.#epoch) fn();
    });
  }

  #lookIfUnsettled(now: Nanos): void {
    const isUnsettled =
      now < this.#looksUntilNs || this.#slots.some((slot) => slot.isUnsettled || !slot.hasWindows);
    if (!this.#isConnected || !isUnsettled || this.#cancelLook !== undefined) return;
    this.#cancelLook = this.#options.soft.tasks.at(now + LOOK_AGAIN_NS, () => {
      this.#cancelLook = undefined;
      this.#look();
    });
  }

  #apply(now: Nanos, answer: unknown): void {
    const had = this.#slots.map(({ hasWindows }) => hasWindows);
    const changed = this.#ports.take(answer);
    if (changed.length === 0) return;
    const isNew = changed.some((slot) => had[slot] === false && this.#slots[slot]?.hasWindows);
    // Those there are when QEMU is connected to may be from long ago.
    if (this.#isConnected && isNew) this.#quietUntilNs = now + QUIET_NS;
    this.#options.onRouting(now);
    for (const slot of changed) this.#slots[slot]?.routingChanged(now);
  }
}
