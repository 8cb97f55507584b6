/** A function with two BARs in slot 0 of a host, and a guest that is connected to it, in virtual time. */
import { surveyFunction } from '#host/function-survey';
import type { VirtualPort } from '#host/virtual-port';
import { VmFunction } from '#agent/daemon/vm-function';
import { FakeFunction } from './fake-function.ts';
import { FakeGuest } from './fake-guest.ts';
import { rigWithoutSoftware } from './host-rig.ts';

export interface VmFunctionRigOptions {
  readonly flr?: boolean;
  readonly vectors?: number;
  readonly pin?: boolean;
  /** Default 1 MiB. */
  readonly bar2Bytes?: number;
  /** QEMU is still in `device_add`. */
  readonly isAdding?: boolean;
}

const MIB = 2 ** 20;
const BAR0 = { index: 0, sizeBytes: 65536, is64Bit: false, prefetchable: false };
const BAR2 = { index: 2, is64Bit: true, prefetchable: true };
const FLR = 1 << 28;

export function vmFunctionRig(options: VmFunctionRigOptions = {}) {
  const rig = rigWithoutSoftware();
  const device = new FakeFunction({
    bars: [BAR0, { ...BAR2, sizeBytes: options.bar2Bytes ?? MIB }],
    vectors: options.vectors ?? 4,
  });
  const capabilities = device.pcie.offset + 4;
  if (options.flr === true) {
    device.config.define(capabilities, device.config.read32(capabilities) | FLR, 0);
  }
  if (options.pin === true) device.config.define(0x3c, 1 << 8, 0xff);
  rig.fabric.plug(0, device);
  const result = rig.run(surveyFunction(rig.host, 0, 0x0100));
  if (!result.ok) throw new Error(result.problem.message);
  const calls: string[] = [];
  const warnings: string[] = [];
  const log = (): void => {};
  const warn = (facts: object | string, message?: string): void => {
    warnings.push(typeof facts === 'string' ? facts : (message ?? ''));
  };
  let changes = 0;
  const fn = new VmFunction({
    soft: rig.host,
    port: rig.host.ports[0] as VirtualPort,
    proxy: {
      registerSlotMemory: (slot, base, memory, { read, write }) => {
        if (base === 0xdead_0000) throw new Error('overlaps');
        const access = `${read ? 'r' : '-'}${write ? 'w' : '-'}`;
        calls.push(`slot ${slot}: ${memory.length} at 0x${base.toString(16)} ${access}`);
      },
      unregisterSlotMemory: (slot, base) => calls.push(`slot ${slot}: no 0x${base.toString(16)}`),
    },
    survey: result.survey,
    log: { debug: log, info: log, warn, error: log },
    onChanged: () => changes++,
    settle: () => {},
  });
  const guest = new FakeGuest(fn, rig.clock);
  if (options.isAdding !== true) fn.added();
  device.configWrites.length = 0;
  rig.fabric.requests.length = 0;
  const place = (): void => {
    guest.configWrite(0x10, 0xe004_0000);
    guest.configWrite(0x18, 0x0010_0000);
    guest.configWrite(0x1c, 0x40);
    guest.configWrite(0x04, 6, 2);
    rig.fabric.requests.length = 0;
  };
  return { rig, device, fn, guest, calls, warnings, place, changes: () => changes };
}
