/** Where the guest puts a function, its interrupts, resets and memory. */
import { describe, expect, it } from 'vitest';
import { TlpKind } from '#pcie/tlp';
import { vmFunctionRig } from '#testkit/vm-function-rig';
import { DmaRegion } from '#vfio-user/dma-map';
import { REGION_CONFIG } from '#vfio-user/region-info';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

describe('the addresses of the guest', () => {
  it('are there once all BARs have one in a window', () => {
    const { fn, guest, changes } = vmFunctionRig();
    const before = changes();
    expect(fn.placedBars).toBeUndefined();
    guest.configWrite(0x10, 0xe004_0000);
    expect(fn.placedBars).toBeUndefined();
    guest.configWrite(0x18, 0x0010_0000);
    expect(fn.placedBars).toBeUndefined();
    guest.configWrite(0x1c, 0x40);
    expect(fn.placedBars).toEqual([
      { index: 0, address: 0xe004_0000, sizeBytes: 65536 },
      { index: 2, address: 256 * GIB + MIB, sizeBytes: MIB },
    ]);
    // The window of the port ends at 0xe0ffffff.
    guest.configWrite(0x10, 0xe100_0000);
    expect(fn.placedBars).toBeUndefined();
    expect(changes() - before).toBe(4);
  });

  it('are not what a guest writes to learn sizes', () => {
    const { device, fn, guest, place } = vmFunctionRig();
    place();
    for (const register of [0x10, 0x18, 0x1c]) {
      const was = device.config.read32(register);
      guest.configWrite(register, 0xffff_ffff);
      expect(fn.placedBars, `0x${register.toString(16)}`).toBeUndefined();
      guest.configWrite(register, was);
      expect(fn.placedBars).toHaveLength(2);
    }
  });

  it('are none while a size is learnt, though all ones lie in the window and fit the size', () => {
    const { fn, guest, place } = vmFunctionRig({ bar2Bytes: 16 });
    place();
    // The window is 0x40_0000_0000 to 0x40_ffff_ffff.
    guest.configWrite(0x18, 0xffff_ffff);
    expect(fn.placedBars).toBeUndefined();
    guest.configWrite(0x18, 0xffff_ffe0);
    expect(fn.placedBars?.[1]?.address).toBe(0x40_ffff_ffe0);
  });

  it('may be written in halves and bytes', () => {
    const { fn, guest, place } = vmFunctionRig();
    place();
    guest.configWrite(0x12, 0xe00a, 2);
    expect(fn.placedBars?.[0]?.address).toBe(0xe00a_0000);
    guest.configWrite(0x12, 0x0b, 1);
    expect(fn.placedBars?.[0]?.address).toBe(0xe00b_0000);
  });

  it('are none once the VM is gone', () => {
    const { fn, guest, place } = vmFunctionRig();
    place();
    expect(fn.isUsed).toBe(true);
    guest.disconnect();
    expect(fn.isUsed).toBe(false);
    expect(fn.placedBars).toBeUndefined();
  });
});

describe('a function that is gone', () => {
  it('reads all ones, takes writes, and ends what is under way', () => {
    const { rig, guest, place } = vmFunctionRig();
    place();
    rig.fabric.hold = ({ kind }) => kind === TlpKind.MRd32 || kind === TlpKind.CfgRd1;
    const pending = [guest.startRead(0, 0, 4), guest.startRead(REGION_CONFIG, 0, 8)];
    rig.pass(1e6);
    expect(pending.map(({ hex }) => hex)).toEqual([undefined, undefined]);
    rig.fabric.unplug(0);
    expect(pending.map(({ hex }) => hex)).toEqual(['ff'.repeat(4), 'ff'.repeat(8)]);
    for (const count of [1, 2, 4, 8]) {
      expect(guest.startRead(0, 0, count).hex).toBe('ff'.repeat(count));
      expect(guest.startRead(REGION_CONFIG, 0, count).hex).toBe('ff'.repeat(count));
    }
    expect(guest.startWrite(0, 0, '00112233').isDone).toBe(true);
    expect(guest.startWrite(REGION_CONFIG, 0, '00112233').isDone).toBe(true);
  });

  it('reads as surveyed while QEMU adds it: all ones would hang or end QEMU', () => {
    const { rig, fn, guest } = vmFunctionRig({ isAdding: true });
    const surveyed = guest.read(REGION_CONFIG, 0, 256);
    // Half of it is there when the function goes.
    rig.fabric.hold = ({ kind, register }) => kind === TlpKind.CfgRd1 && register >= 0x80;
    const pending = guest.startRead(REGION_CONFIG, 0, 4096);
    rig.pass(1e6);
    expect(pending.hex).toBeUndefined();
    rig.fabric.unplug(0);
    expect(pending.hex).toBe(surveyed + '00'.repeat(4096 - 256));
    expect(guest.startRead(REGION_CONFIG, 0, 4096).hex).toBe(pending.hex);
    expect(guest.startRead(REGION_CONFIG, 2, 2).hex).toBe(surveyed.slice(4, 8));
    fn.added();
    expect(guest.startRead(REGION_CONFIG, 2, 2).hex).toBe('ffff');
  });

  it('that does not answer while QEMU adds it is waited for once', () => {
    const { rig, guest } = vmFunctionRig({ isAdding: true });
    const surveyed = guest.read(REGION_CONFIG, 0, 256);
    rig.fabric.hold = () => true;
    const from = rig.now;
    expect(guest.read(REGION_CONFIG, 0, 4096).slice(0, 512)).toBe(surveyed);
    expect(guest.read(REGION_CONFIG, 0x3d, 1)).toBe(surveyed.slice(0x7a, 0x7c));
    expect(rig.now - from).toBe(4e9);
  });

  it('that does not answer reads all ones after 4 s', () => {
    const { rig, guest, place } = vmFunctionRig();
    place();
    rig.fabric.hold = () => true;
    const from = rig.now;
    expect(guest.read(0, 0, 8)).toBe('ff'.repeat(8));
    expect(rig.now - from).toBe(4e9);
    rig.fabric.hold = () => false;
    rig.fabric.releaseHeld();
    rig.pass(1e6);
    expect(rig.host.requestCounts.lateCompletions).toBe(1);
  });
});

describe('interrupts', () => {
  it('are the vector behind the message data of the guest', () => {
    const { device, fn, guest } = vmFunctionRig({ vectors: 4 });
    const data = device.msi.offset + 12;
    guest.configWrite(data, 0x4120, 2);
    for (const value of [0x4120, 0x4123, 0x4124, 0x411f, 0]) fn.interrupt(value);
    expect(guest.vectors).toEqual([0, 3]);
    // The bytes one by one, and bits 31:16 are reserved.
    guest.configWrite(data, 0x40, 1);
    guest.configWrite(data + 1, 0x50, 1);
    fn.interrupt(0x5041);
    guest.configWrite(data, 0xabcd_6000);
    fn.interrupt(0x6002);
    expect(guest.vectors).toEqual([0, 3, 1, 2]);
  });

  it('are the level of the pin, and as many of each kind as the function has', () => {
    const { fn, guest } = vmFunctionRig({ pin: true, vectors: 2 });
    fn.setPin(true);
    fn.setPin(false);
    expect(guest.levels).toEqual([true, false]);
    expect(fn.spec.irqs).toEqual({ intx: 1, msi: 2, msix: 0, err: 0, req: 0 });
    expect(vmFunctionRig().fn.spec.irqs.intx).toBe(0);
  });

  it('reach nobody without a VM', () => {
    const { fn, guest } = vmFunctionRig();
    guest.disconnect();
    fn.interrupt(0);
    fn.setPin(true);
    expect([guest.vectors, guest.levels]).toEqual([[], []]);
  });
});

describe('a reset', () => {
  const DEVICE_CONTROL = 0x08;

  it('is that of the function where it has one, and takes 100 ms', () => {
    const { rig, device, fn, guest, place } = vmFunctionRig({ flr: true });
    place();
    const register = device.pcie.offset + DEVICE_CONTROL;
    const control = device.config.read32(register) & 0xffff;
    device.configWrites.length = 0;
    const took = guest.reset();
    // The bit to begin with, the rest as it was (7.5.3.4); nothing else is written.
    expect(device.configWrites).toEqual([
      { register, value: control | 0x8000, byteEnables: 0b0011 },
    ]);
    // Each of the read and the write takes 1000 ns down and 1000 ns up.
    expect(took).toBe(100e6 + 4000);
    expect(fn.placedBars).toBeUndefined();
    expect(guest.read(0, 0, 4)).toBe('ffffffff');
    expect(rig.host.requestCounts.timeouts).toBe(0);
  });

  it('switches the function off and takes its addresses without one', () => {
    const { device, fn, guest, place } = vmFunctionRig();
    place();
    guest.configWrite(device.msi.offset + 12, 0x4120, 2);
    guest.configWrite(device.msi.offset + 2, 1, 1);
    expect(device.msi.enabled).toBe(true);
    device.configWrites.length = 0;
    guest.reset();
    expect(device.configWrites[0]).toEqual({ register: 0x04, value: 0, byteEnables: 0b0011 });
    expect(device.config.read32(0x04) & 6).toBe(0);
    expect(device.msi.enabled).toBe(false);
    // Of the registers of BARs, flags alone are left: BAR 2 is 64 bit and prefetchable.
    const bars = [0, 1, 2, 3, 4, 5].map((bar) => device.config.read32(0x10 + 4 * bar));
    expect(bars).toEqual([0, 0, 0b1100, 0, 0, 0]);
    expect(fn.placedBars).toBeUndefined();
    fn.interrupt(0x4120);
    expect(guest.vectors).toEqual([]);
  });

  it('ends for a function that is gone', () => {
    for (const flr of [false, true]) {
      const { rig, guest } = vmFunctionRig({ flr });
      rig.fabric.unplug(0);
      expect(guest.reset()).toBeLessThanOrEqual(100e6);
    }
  });
});

describe('memory of the VM', () => {
  const region = (address: number, windows: readonly number[], readable = true): DmaRegion => {
    const sizeBytes = windows.reduce((sum, bytes) => sum + bytes, 0);
    const request = { address, sizeBytes, fileOffset: 0, readable, writable: true };
    const memory = {
      windows: windows.map((bytes) => new Uint8Array(bytes)),
      windowBytes: windows[0] ?? 0,
      release: (): void => {},
    };
    return new DmaRegion(request, memory, undefined);
  };

  it('is registered for the slot, array by array, and taken back', () => {
    const { rig, fn, calls } = vmFunctionRig();
    const low = region(0, [4096, 8192]);
    const high = region(4 * GIB, [4096], false);
    fn.memoryAdded(rig.now, low);
    fn.memoryAdded(rig.now, high);
    expect(calls.splice(0)).toEqual([
      'slot 0: 4096 at 0x0 rw',
      'slot 0: 8192 at 0x1000 rw',
      'slot 0: 4096 at 0x100000000 -w',
    ]);
    fn.memoryRemoved(rig.now, low);
    fn.memoryRemoved(rig.now, low);
    expect(calls.splice(0)).toEqual(['slot 0: no 0x0', 'slot 0: no 0x1000']);
    fn.memoryRemoved(rig.now, high);
    expect(calls).toEqual(['slot 0: no 0x100000000']);
  });

  it('that cannot be mapped is said once, and never registered', () => {
    const { rig, fn, calls, warnings } = vmFunctionRig();
    const request = { sizeBytes: 4096, fileOffset: 0, readable: true, writable: true };
    for (const address of [0, 4096]) {
      const unmapped = new DmaRegion({ ...request, address }, undefined, undefined);
      fn.memoryAdded(rig.now, unmapped);
      fn.memoryRemoved(rig.now, unmapped);
    }
    expect(calls).toEqual([]);
    expect(warnings).toEqual(['memory of the VM that cannot be mapped: out of reach']);
  });

  it('that is refused is said, and not taken back', () => {
    const { rig, fn, calls, warnings } = vmFunctionRig();
    const refused = region(0xdead_0000, [4096]);
    fn.memoryAdded(rig.now, refused);
    fn.memoryRemoved(rig.now, refused);
    expect(calls).toEqual([]);
    expect(warnings).toEqual(['overlaps']);
  });
});
