/** Slots of a host whose functions a VM uses, with a QEMU that a test plays, in virtual time. */
import { DxpuError } from '#base/errors';
import type { VmHotplug } from '#agent/daemon/vm-device';
import { VmSlot } from '#agent/daemon/vm-slot';
import type { VirtualPort } from '#host/virtual-port';
import type { QmpDone } from '#vm/qmp-session';
import type { ServedDevice } from '#vfio-user/served-device';
import { FakeFunction, type FakeFunctionOptions } from './fake-function.ts';
import { FakeGuest } from './fake-guest.ts';
import { rigWithoutSoftware } from './host-rig.ts';

const MIB = 2 ** 20;
/** What a survey and all else that takes no waiting is through by. */
const SOON_NS = 10e6;

export const BAR0 = { index: 0, sizeBytes: 65536, is64Bit: false, prefetchable: false };
export const BAR2 = { index: 2, sizeBytes: MIB, is64Bit: true, prefetchable: true };

export class VmSlotRig implements VmHotplug {
  isConnected = true;
  quietUntilNs = 0;
  refusesToServe = false;
  /** What QEMU was asked, oldest first, with the second: `0 add dxpu-slot0 rp0 /run/slot0`. */
  readonly asked: string[] = [];
  readonly servers: { readonly device: ServedDevice; readonly path: string; isOpen: boolean }[] =
    [];
  readonly host;
  readonly slots: readonly VmSlot[];
  readonly #rig;
  readonly #unanswered: QmpDone[] = [];

  constructor(slots = 1) {
    this.#rig = rigWithoutSoftware(slots);
    this.host = this.#rig.host;
    const quiet = (): void => {};
    this.slots = this.host.ports.map(
      (port, index) =>
        new VmSlot({
          soft: this.host,
          port,
          proxy: { registerSlotMemory: quiet, unregisterSlotMemory: quiet },
          rootPort: `rp${index}`,
          socketPath: `/run/slot${index}`,
          vm: this,
          serve: (device, path) => this.#serve(device, path),
          log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
          onChanged: quiet,
          settle: quiet,
        }),
    );
    this.host.addListener({
      slotChanged: (now, slot, active, surprise) =>
        this.slots[slot]?.linkChanged(now, active, surprise),
    });
  }

  get port(): VirtualPort {
    return this.host.ports[0] as VirtualPort;
  }

  get slot(): VmSlot {
    return this.slots[0] as VmSlot;
  }

  get fabric() {
    return this.#rig.fabric;
  }

  get now() {
    return this.#rig.now;
  }

  pass(durationNs: number): void {
    this.#rig.pass(durationNs);
  }

  /** QEMU's monitor is there, and says whether it has the slot's device. */
  connect(hasDevice: boolean): void {
    this.isConnected = true;
    this.slot.connected(this.now, hasDevice);
  }

  disconnect(): void {
    this.isConnected = false;
    this.slot.disconnected(this.now);
  }

  /** The guest sets bus or windows of the slot's root port. */
  setRouting(changes: Partial<VirtualPort['routing']>): void {
    const { port } = this;
    port.setRouting({ ...port.routing, ...changes });
    this.slot.routingChanged(this.now);
  }

  /** Has the function leave; then, as the host's plane does it, it is out of the slot within the call. */
  leave(): { readonly hasLeft: boolean } {
    const leaving = { hasLeft: false };
    this.slot.leave(this.now, () => {
      leaving.hasLeft = true;
      this.fabric.unplug(0, false);
    });
    return leaving;
  }

  addDevice(id: string, rootPort: string, socketPath: string, done: QmpDone): void {
    this.#ask(`add ${id} ${rootPort} ${socketPath}`, done);
  }

  removeDevice(id: string, done: QmpDone): void {
    this.#ask(`del ${id}`, done);
  }

  /** QEMU's answer to what it was asked first of what is not answered. */
  answer(): void {
    this.#take()(this.now, { ok: true, value: {} });
  }

  refuse(kind: string, message = kind): void {
    this.#take()(this.now, { ok: false, kind, message });
  }

  /** Puts a function into a slot, and lets it be surveyed. */
  plug(options: Partial<FakeFunctionOptions> = {}, slot = 0): FakeFunction {
    const fn = new FakeFunction({ bars: [BAR0, BAR2], ...options });
    this.fabric.plug(slot, fn);
    this.pass(SOON_NS);
    return fn;
  }

  /** QEMU connects to what is served last, and says that it has the device. */
  connectGuest(): FakeGuest {
    const guest = this.beginGuest();
    this.answer();
    return guest;
  }

  /** QEMU connects to what is served, and has yet to answer. */
  beginGuest(): FakeGuest {
    const server = this.servers.at(-1);
    if (server === undefined) throw new Error('nothing is served');
    return new FakeGuest(server.device, this.#rig.clock);
  }

  /** A function that the guest of the slot uses. */
  use(slot = 0): FakeGuest {
    this.plug({}, slot);
    const guest = this.connectGuest();
    placeBars(guest, slot);
    return guest;
  }

  #ask(command: string, done: QmpDone): void {
    if (!this.isConnected) {
      done(this.now, { ok: false, kind: 'gone', message: 'QEMU is not connected' });
      return;
    }
    if (this.asked.length > 100) throw new Error('QEMU is asked without end');
    this.asked.push(`${Math.floor(this.now / 1e9)} ${command}`);
    this.#unanswered.push(done);
  }

  #take(): QmpDone {
    const done = this.#unanswered.shift();
    if (done === undefined) throw new Error('QEMU was not asked');
    return done;
  }

  #serve(device: ServedDevice, path: string): { close(): void } {
    if (this.refusesToServe) throw new DxpuError('unavailable', `cannot listen at ${path}`);
    const server = { device, path, isOpen: true };
    this.servers.push(server);
    return {
      close: () => {
        server.isOpen = false;
      },
    };
  }
}

/** As a guest does, at the start of the windows of `portOptions`: 0xe0000000 and 256 GiB, for slot 0. */
export function placeBars(guest: FakeGuest, slot = 0): void {
  guest.configWrite(0x10, 0xe000_0000 + slot * 16 * MIB);
  guest.configWrite(0x18, 0);
  guest.configWrite(0x1c, 0x40 + slot);
}
