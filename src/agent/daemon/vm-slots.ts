/**
 * The slots of a host whose functions a VM uses: QEMU's root ports, by QMP. Buses and windows are read of
 * QEMU, for the guest sets them.
 */
import type { Clock } from '#base/clock';
import { formatBdf, type Nanos } from '#base/units';
import type { HostListener, SoftHost } from '#host/root-complex';
import type { VirtualPort } from '#host/virtual-port';
import type { RootSide } from '#pcie/root-port';
import { type RootPort, rootPortsOf } from '#vm/pci-topology';
import { QmpConnection } from '#vm/qmp-connection';
import type { QmpAnswer, QmpDone } from '#vm/qmp-session';
import type { Logger } from './logger.ts';
import type { SlotProblem, SlotSoftware, UsedFunction } from './slot-software.ts';
import { unknownRouting } from './unknown-ports.ts';
import { type Serve, type VmHotplug, VmSlot, type VmSlotOptions } from './vm-slot.ts';

export interface VmPlace {
  /** QEMU's QMP socket; it takes one client. */
  readonly qmp: string;
  /** The root ports that are the virtual slots 0, 1 and so on. */
  readonly rootPorts: readonly string[];
  /** Of the unix sockets devices are served at; the slot's number follows. */
  readonly socketPrefix: string;
  readonly serve: Serve;
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

export class VmSlots implements SlotSoftware, HostListener, VmHotplug {
  readonly #options: VmSlotsOptions;
  readonly #slots: readonly VmSlot[];
  readonly #monitor: QmpConnection;
  #isConnected = false;
  #whyNot = 'it has not been reached yet';
  #isLooking = false;
  #cancelLook: (() => void) | undefined;
  #looksUntilNs = 0;
  readonly #missing = new Set<string>();

  /** Ports of `soft` are those of `portOptions`. */
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
          },
        }),
    );
    soft.addListener(this);
    this.#monitor = new QmpConnection({
      path: options.qmp,
      clock: options.clock,
      user: {
        connected: () => this.#connected(),
        disconnected: (now, reason) => this.#disconnected(now, reason),
        event: (now, name, data) => this.#event(now, name, data),
        turnEnd: settle,
      },
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

  addDevice(id: string, rootPort: string, socketPath: string, done: QmpDone): void {
    const socket = { type: 'unix', path: socketPath };
    const device = { driver: 'vfio-user-pci', id, bus: rootPort, socket };
    this.#monitor.execute('device_add', device, done);
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
    const rootPort = this.#options.rootPorts[slot] ?? '';
    if (!this.#isConnected) return `QEMU is not connected: ${this.#whyNot}`;
    if (this.#missing.has(rootPort)) return noSuchPort(rootPort);
    return this.#slots[slot]?.note;
  }

  leave(now: Nanos, slot: number, done: (now: Nanos) => void): boolean {
    return this.#slots[slot]?.leave(now, done) ?? false;
  }

  slotChanged(now: Nanos, virtualSlot: number, active: boolean, surprise: boolean): void {
    this.#slots[virtualSlot]?.linkChanged(now, active, surprise);
  }

  stop(): void {
    this.#cancelLook?.();
    this.#monitor.stop();
  }

  #connected(): void {
    this.#options.log.info({ qmp: this.#options.qmp }, 'connected to QEMU');
    this.#monitor.execute('qom-list', { path: '/machine/peripheral' }, (_now, answer) => {
      const names = new Set(answer.ok ? namesOf(answer.value) : []);
      this.#look((then) => {
        this.#isConnected = true;
        for (const slot of this.#slots) slot.connected(then, names.has(slot.id));
        this.#options.onChanged();
        this.#options.settle();
      });
      if (!answer.ok) this.#options.log.warn({}, answer.message);
    });
  }

  #disconnected(now: Nanos, reason: string): void {
    this.#options.log.warn({ qmp: this.#options.qmp }, reason);
    this.#isConnected = false;
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
      case 'GUEST_PANICKED':
        this.#options.log.info({ event: name }, 'the guest restarts');
        this.#looksUntilNs = now + RESTART_NS;
        this.#look();
        break;
      default:
        break;
    }
  }

  /** Reads buses and windows; once at a time. */
  #look(then?: (now: Nanos) => void): void {
    if (this.#isLooking) {
      // What is being read may be older than the question.
      if (then !== undefined) this.#again(then);
      return;
    }
    this.#isLooking = true;
    this.#monitor.execute('query-pci', {}, (now, answer) => {
      this.#isLooking = false;
      this.#apply(now, answer);
      then?.(now);
      this.#lookIfUnsettled(now);
      this.#options.settle();
    });
  }

  #again(then: (now: Nanos) => void): void {
    this.#options.soft.tasks.at(this.#options.clock.now() + LOOK_AGAIN_NS / 10, () =>
      this.#look(then),
    );
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

  #apply(now: Nanos, answer: QmpAnswer): void {
    const { soft, rootPorts, log } = this.#options;
    if (!answer.ok) {
      log.warn({}, answer.message);
      return;
    }
    const found = rootPortsOf(answer.value);
    const changed: VmSlot[] = [];
    for (const [index, port] of soft.ports.entries()) {
      const name = rootPorts[index] ?? '';
      const there = found.get(name);
      if (there === undefined && !this.#missing.has(name)) log.error({}, noSuchPort(name));
      if (there === undefined) this.#missing.add(name);
      else this.#missing.delete(name);
      if (setRouting(port, there, index)) changed.push(this.#slots[index] as VmSlot);
    }
    if (changed.length === 0) return;
    log.info(
      { ports: soft.ports.map(({ routing }) => formatBdf(routing.secondaryBus << 8)) },
      'buses of the guest',
    );
    this.#options.onRouting(now);
    for (const slot of changed) slot.routingChanged(now);
  }
}

/** Returns whether anything is another now. A guest that has given no bus yet leaves the port without windows. */
function setRouting(port: VirtualPort, there: RootPort | undefined, index: number): boolean {
  const before = JSON.stringify(port.routing);
  const isKnown = there !== undefined && there.secondaryBus > 0;
  port.setRouting(
    isKnown
      ? {
          secondaryBus: there.secondaryBus,
          nonPrefetchable: there.nonPrefetchable,
          prefetchable: there.prefetchable,
        }
      : unknownRouting(index),
  );
  return JSON.stringify(port.routing) !== before;
}

function noSuchPort(name: string): string {
  return (
    `QEMU has no root port ${name}: start it with -device pcie-root-port,id=${name},bus=pcie.0,chassis=N,slot=N,` +
    'mem-reserve=32M,pref64-reserve=256M'
  );
}

function namesOf(answer: unknown): string[] {
  if (!Array.isArray(answer)) return [];
  return answer.flatMap((one: { name?: unknown }) =>
    typeof one.name === 'string' ? [one.name] : [],
  );
}
