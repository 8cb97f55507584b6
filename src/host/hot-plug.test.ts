import { describe, expect, it } from 'vitest';
import { TlpKind } from '#pcie/tlp';
import { FakeFunction } from '#testkit/fake-function';
import { HostRig, portOptions } from '#testkit/host-rig';
import { configRead, mmioRead32 } from './host-operations.ts';
import { formatListing } from './listing.ts';
import { sleep } from './task.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const BAR0 = { index: 0, sizeBytes: 65536, is64Bit: false, prefetchable: false };
const BAR2 = { index: 2, sizeBytes: 64 * MIB, is64Bit: true, prefetchable: true };

function plugged(rig: HostRig, fn: FakeFunction, slot = 0): FakeFunction {
  rig.fabric.plug(slot, fn);
  rig.pass(3e6);
  return fn;
}

describe('a function that fits', () => {
  it('is recorded with what it is and where it lies', () => {
    const rig = new HostRig();
    plugged(rig, new FakeFunction({ bars: [BAR0, BAR2] }));
    expect(rig.problems).toEqual([]);
    expect(rig.hotPlug.functionAt(0)).toMatchObject({
      virtualSlot: 0,
      bdf: 0x0100,
      vendorId: 0x1234,
      deviceId: 0x5678,
      subsystemVendorId: 0x1111,
      subsystemId: 0x2222,
      classCode: 0x030200,
      revision: 0x42,
      bars: [
        {
          index: 0,
          kind: 'mem32',
          prefetchable: false,
          sizeBytes: 65536,
          address: 0xe000_0000,
        },
        {
          index: 2,
          kind: 'mem64',
          prefetchable: true,
          sizeBytes: 64 * MIB,
          address: 256 * GIB,
        },
      ],
      msi: { address: 0xfee0_0000, data: 0x4000, vectors: 1 },
    });
  });

  it('is enabled only once its BARs are in place, and sized with decode off', () => {
    const rig = new HostRig();
    const fn = new FakeFunction({ bars: [BAR0, BAR2] });
    // As firmware may leave it: decode on.
    fn.config.write(0x04, 6, 3);
    plugged(rig, fn);
    const commands = fn.configWrites.filter((write) => write.register === 0x04);
    const bars = fn.configWrites.filter((w) => w.register >= 0x10 && w.register < 0x28);
    expect(commands.map((write) => write.value & 7)).toEqual([0, 6]);
    expect(fn.configWrites.indexOf(commands[0]!)).toBeLessThan(fn.configWrites.indexOf(bars[0]!));
    expect(fn.configWrites.at(-1)).toBe(commands[1]);
    expect(fn.config.busMaster && fn.config.memoryEnable).toBe(true);
  });

  it('gets MPS and MRRS, wide tags, and captured its number', () => {
    const rig = new HostRig({ maxPayloadBytes: 512, maxReadRequestBytes: 1024 });
    const fn = plugged(rig, new FakeFunction({ bars: [BAR0], maxPayloadBytes: 256 }));
    expect(fn.pcie.maxPayloadBytes).toBe(256);
    expect(fn.pcie.maxReadRequestBytes).toBe(1024);
    expect(fn.pcie.tagBits).toBe(10);
    expect(fn.config.bdf).toBe(0x0100);
    expect(rig.added[0]).toMatchObject({ maxPayloadBytes: 256, maxReadRequestBytes: 1024 });
  });

  it('gets as many MSI vectors as it asks for, up to eight, each with a signal', () => {
    const rig = new HostRig({ slots: 2 });
    const fn = plugged(rig, new FakeFunction({ bars: [BAR0], vectors: 16 }), 1);
    expect(rig.added[0]!.msi).toMatchObject({ vectors: 8, data: 0x4020 });
    expect(fn.msi.vectorCount).toBe(8);
    const seen: number[] = [];
    for (let vector = 0; vector < 8; vector++) {
      rig.host.msiSignal(1, vector).listen(() => seen.push(vector));
    }
    for (const vector of [3, 0, 7, 3]) fn.sendMsi(rig.now, vector);
    rig.pass(1e5);
    expect(seen).toEqual([3, 0, 7, 3]);
    // The same data from another slot is nobody's interrupt.
    rig.host.interrupt(rig.now, 0, 0xfee0_0000, 0x4020);
    rig.host.interrupt(rig.now, 1, 0xfee0_0040, 0x4020);
    expect(seen).toHaveLength(4);
    expect(rig.host.strayInterrupts).toBe(2);
  });

  it('places the largest first, each at a multiple of its size, in the right window', () => {
    const rig = new HostRig();
    const fn = new FakeFunction({
      bars: [
        { index: 0, sizeBytes: 4096, is64Bit: false, prefetchable: false },
        { index: 1, sizeBytes: 2 * MIB, is64Bit: false, prefetchable: true },
        // 64 bit but not prefetchable: below 4 GiB all the same.
        { index: 2, sizeBytes: 8 * MIB, is64Bit: true, prefetchable: false },
        { index: 4, sizeBytes: 2 * GIB, is64Bit: true, prefetchable: true },
      ],
    });
    plugged(rig, fn);
    expect(rig.added[0]!.bars.map((bar) => bar.address)).toEqual([
      0xe000_0000 + 10 * MIB,
      0xe000_0000 + 8 * MIB,
      0xe000_0000,
      256 * GIB,
    ]);
    expect(fn.bars.baseOf(4)).toBe(256 * GIB);
  });

  it('waits for a function that is not ready yet', () => {
    const rig = new HostRig();
    rig.fabric.plug(0, new FakeFunction({ bars: [BAR0], readyAtNs: 3e9 }));
    const fn = rig.run(rig.hotPlug.waitForFunction(0, 10e9));
    expect(fn.vendorId).toBe(0x1234);
    expect(rig.now).toBeGreaterThanOrEqual(3e9);
    expect(rig.now).toBeLessThan(5e9);
  });

  it('is set up in each of several slots at the same time', () => {
    const rig = new HostRig({ slots: 3 });
    for (const slot of [2, 0, 1]) rig.fabric.plug(slot, new FakeFunction({ bars: [BAR0, BAR2] }));
    rig.pass(1e6);
    expect(rig.hotPlug.functions().map((fn) => fn.bars.map((bar) => bar.address))).toEqual([
      [0xe000_0000, 256 * GIB],
      [0xe100_0000, 260 * GIB],
      [0xe200_0000, 264 * GIB],
    ]);
  });
});

describe('a function that cannot be set up stays disabled', () => {
  it('no space: names BAR, size and window', () => {
    const rig = new HostRig({ ports: [portOptions(0, { prefetchableBytes: 64 * MIB })] });
    const bar = { ...BAR2, sizeBytes: 128 * MIB };
    const fn = plugged(rig, new FakeFunction({ bars: [BAR0, bar] }));
    expect(rig.problems).toEqual([
      {
        kind: 'no-space',
        message:
          'no space: BAR 2 needs 128 MiB, the prefetchable window of slot 0 has 64 MiB with 64 MiB ' +
          'left; reserve a larger window for this slot',
        barIndex: 2,
        barBytes: 128 * MIB,
        window: 'prefetchable',
        windowBytes: 64 * MIB,
      },
    ]);
    expect(rig.hotPlug.functionAt(0)).toBeUndefined();
    expect(fn.config.memoryEnable || fn.config.busMaster).toBe(false);
    // Nothing half-done: the registers are as they were.
    expect(fn.bars.baseOf(0)).toBe(0);
    expect(fn.bars.baseOf(2)).toBe(0);
  });

  it('no space: what is left counts, not the whole window', () => {
    const rig = new HostRig();
    const bars = [0, 1].map((index) => ({ ...BAR0, index, sizeBytes: 16 * MIB }));
    plugged(rig, new FakeFunction({ bars }));
    expect(rig.problems[0]).toMatchObject({
      kind: 'no-space',
      barIndex: 1,
      window: 'non-prefetchable',
    });
    expect(rig.problems[0]!.message).toContain('has 16 MiB with 0 bytes left');
  });

  it('asks for retry forever', () => {
    const rig = new HostRig({}, { readyTimeoutNs: 5e9 });
    rig.fabric.plug(0, new FakeFunction({ bars: [BAR0], readyAtNs: Infinity }));
    rig.pass(4.9e9);
    expect(rig.problems).toEqual([]);
    rig.pass(0.2e9);
    expect(rig.problems).toMatchObject([{ kind: 'not-ready', waitedNs: expect.closeTo(5e9, -8) }]);
  });

  it('answers with all ones', () => {
    const rig = new HostRig();
    const fn = new FakeFunction({ bars: [] });
    fn.config.set32(0, 0xffff_ffff);
    plugged(rig, fn);
    expect(rig.problems).toEqual([{ kind: 'no-device', message: 'nothing answers in slot 0' }]);
  });

  it('is a bridge', () => {
    const rig = new HostRig();
    const fn = new FakeFunction({ bars: [] });
    fn.config.set32(0x0c, 1 << 16);
    plugged(rig, fn);
    expect(rig.problems).toMatchObject([{ kind: 'config-error' }]);
    expect(fn.configWrites).toEqual([]);
  });

  it('has a BAR whose size bits have a hole', () => {
    const rig = new HostRig();
    const fn = new FakeFunction({ bars: [] });
    fn.config.define(0x10, 0, 0xff0f_0000);
    plugged(rig, fn);
    expect(rig.problems[0]!.message).toContain('BAR 0 has no size');
  });

  it('has a 64-bit BAR where no other half can be', () => {
    const rig = new HostRig();
    const fn = new FakeFunction({ bars: [] });
    fn.config.define(0x24, 4, 0xffff_0000);
    plugged(rig, fn);
    expect(rig.problems[0]!.message).toContain('BAR 5 has a type that does not exist');
  });

  it('stops answering while it is set up', () => {
    const rig = new HostRig({ completionTimeoutNs: 1e6 });
    const fn = new FakeFunction({ bars: [BAR0, BAR2] });
    rig.fabric.plug(0, fn);
    rig.pass(20e3);
    rig.fabric.hold = () => true;
    rig.pass(10e9);
    expect(rig.problems).toMatchObject([{ kind: 'no-answer' }]);
    expect(rig.hotPlug.functions()).toEqual([]);
    expect(fn.config.memoryEnable).toBe(false);
  });

  it('is not answered for once: an all-ones capability header would have hidden its MSI', () => {
    const rig = new HostRig({ completionTimeoutNs: 1e6 });
    const fn = new FakeFunction({ bars: [BAR0, BAR2] });
    let held = 0;
    rig.fabric.hold = ({ kind, register }) =>
      kind === TlpKind.CfgRd1 && register === fn.msi.offset && held++ === 0;
    rig.fabric.plug(0, fn);
    rig.pass(10e6);
    expect(held).toBe(1);
    expect(rig.added).toEqual([]);
    rig.pass(2e9);
    expect(rig.problems).toEqual([]);
    expect(rig.hotPlug.functionAt(0)?.msi).toMatchObject({ offset: fn.msi.offset });
  });

  it('can be tried again', () => {
    const rig = new HostRig();
    const fn = new FakeFunction({ bars: [BAR0] });
    const identity = fn.config.read32(0);
    fn.config.set32(0, 0xffff_ffff);
    plugged(rig, fn);
    expect(rig.hotPlug.problemAt(0)).toBeDefined();
    fn.config.set32(0, identity);
    rig.hotPlug.rescan(rig.now, 0);
    rig.pass(1e6);
    expect(rig.hotPlug.problemAt(0)).toBeUndefined();
    expect(rig.hotPlug.functionAt(0)).toBeDefined();
  });
});

describe('capability lists', () => {
  it('are recorded in their order, extended ones too', () => {
    const rig = new HostRig();
    const fn = new FakeFunction({ bars: [BAR0] });
    fn.config.addExtendedCapability(0x0001, 2, 0x48);
    fn.config.addExtendedCapability(0x0003, 1, 12);
    plugged(rig, fn);
    expect(rig.added[0]!.capabilities).toEqual([
      { id: 0x05, offset: 0x40, extended: false, version: 0 },
      { id: 0x10, offset: 0x58, extended: false, version: 2 },
      { id: 0x0001, offset: 0x100, extended: true, version: 2 },
      { id: 0x0003, offset: 0x148, extended: true, version: 1 },
    ]);
  });

  it('that loop are cut, and the function is set up all the same', () => {
    const rig = new HostRig();
    const fn = new FakeFunction({ bars: [BAR0] });
    // The last one, PCI Express at 58h, points back to MSI at 40h.
    fn.config.set32(0x58, (fn.config.read32(0x58) & 0xffff_00ff) | 0x4000);
    fn.config.define(0x100, 0x1001_0001, 0);
    plugged(rig, fn);
    expect(rig.problems).toEqual([]);
    expect(rig.added[0]!.capabilities.map((c) => c.offset)).toEqual([0x40, 0x58, 0x100]);
  });

  it('that lead into the header end there', () => {
    const rig = new HostRig();
    const fn = new FakeFunction({ bars: [BAR0] });
    fn.config.set32(0x40, (fn.config.read32(0x40) & 0xffff_00ff) | 0x1000);
    plugged(rig, fn);
    expect(rig.added[0]!.capabilities.map((c) => c.offset)).toEqual([0x40]);
  });
});

describe('removal', () => {
  it('forgets the function and ends every task that runs on it', () => {
    const rig = new HostRig();
    plugged(rig, new FakeFunction({ bars: [BAR0] }));
    const fn = rig.added[0]!;
    rig.fabric.hold = () => true;
    const waiting = rig.start(sleep(1e12), fn.scope);
    const reading = rig.start(mmioRead32(rig.host, fn.bars[0]!.address), fn.scope);
    rig.fabric.unplug(0);
    expect(waiting.outcome).toMatchObject({ ok: false, error: { code: 'unavailable' } });
    // The load itself ends as on any host: with all ones, before the removal is known.
    expect(reading.outcome).toEqual({ ok: true, value: 0xffff_ffff });
    const later = rig.start(sleep(1), fn.scope);
    expect(later.outcome).toMatchObject({ ok: false, error: { code: 'unavailable' } });
    expect(rig.hotPlug.functionAt(0)).toBeUndefined();
    expect(rig.removed).toEqual([fn]);
    expect(rig.host.tasks.size).toBe(0);
  });

  it.each([1, 2, 3, 5, 8, 13, 20, 30, 40, 50])(
    'in the middle of enumeration, after %i requests, leaves nothing behind',
    (requests) => {
      const rig = new HostRig();
      rig.fabric.plug(0, new FakeFunction({ bars: [BAR0, BAR2] }));
      rig.clock.runWhile(() => rig.fabric.requests.length < requests);
      expect(rig.added).toEqual([]);
      rig.fabric.unplug(0);
      const made = rig.fabric.requests.length;
      expect(rig.problems).toMatchObject([{ kind: 'link-down' }]);
      expect(rig.host.tasks.size).toBe(0);
      rig.pass(10e9);
      expect(rig.fabric.requests).toHaveLength(made);
      // The next one is set up from the start.
      rig.fabric.plug(0, new FakeFunction({ bars: [BAR0] }));
      rig.pass(1e6);
      expect(rig.added).toHaveLength(1);
      expect(rig.hotPlug.problemAt(0)).toBeUndefined();
    },
  );

  it('and a new function in the same instant are two different functions', () => {
    const rig = new HostRig();
    plugged(rig, new FakeFunction({ bars: [BAR0] }));
    const first = rig.added[0]!;
    rig.fabric.unplug(0);
    rig.fabric.plug(0, new FakeFunction({ bars: [BAR0] }));
    rig.pass(1e6);
    expect(rig.added).toHaveLength(2);
    expect(first.scope.error).toMatchObject({ code: 'unavailable' });
    expect(rig.hotPlug.functionAt(0)!.scope.error).toBeUndefined();
  });

  it('shows in the registers of the port', () => {
    const rig = new HostRig();
    const slotStatus = (): number => rig.run(configRead(rig.host, 1 << 3, portPcie(rig) + 0x18));
    const linkStatus = (): number => rig.run(configRead(rig.host, 1 << 3, portPcie(rig) + 0x10));
    const presence = 1 << 22;
    const active = 1 << 29;
    expect([slotStatus() & presence, linkStatus() & active]).toEqual([0, 0]);
    plugged(rig, new FakeFunction({ bars: [BAR0] }));
    expect([slotStatus() & presence, linkStatus() & active]).toEqual([presence, active]);
    rig.fabric.unplug(0);
    expect([slotStatus() & presence, linkStatus() & active]).toEqual([0, 0]);
    // The service has taken note: no change is left to report.
    expect(slotStatus() & ((1 << 19) | (1 << 24))).toBe(0);
  });
});

function portPcie(rig: HostRig): number {
  return rig.host.ports[0]!.pcieOffset;
}

describe('waiting for a function', () => {
  it('ends with the problem as soon as there is one', () => {
    const rig = new HostRig();
    const wait = rig.start(rig.hotPlug.waitForFunction(0, 60e9));
    plugged(rig, new FakeFunction({ bars: [{ ...BAR0, sizeBytes: 32 * MIB }] }));
    expect(wait.outcome).toMatchObject({
      ok: false,
      error: { code: 'failed_precondition', details: { kind: 'no-space', barBytes: 32 * MIB } },
    });
  });

  it('ends at its deadline when nothing comes', () => {
    const rig = new HostRig();
    const wait = rig.start(rig.hotPlug.waitForFunction(0, 1e9));
    rig.pass(1e9);
    expect(wait.outcome).toMatchObject({ ok: false, error: { code: 'deadline_exceeded' } });
  });

  it('refuses a slot that does not exist', () => {
    const rig = new HostRig();
    const wait = rig.start(rig.hotPlug.waitForFunction(7, 1e9));
    expect(wait.outcome).toMatchObject({ ok: false, error: { code: 'not_found' } });
  });
});

describe('the listing', () => {
  it('shows ports, functions, windows and capabilities', () => {
    const rig = new HostRig({ slots: 2 });
    plugged(rig, new FakeFunction({ bars: [BAR0, BAR2] }));
    expect(formatListing(rig.host, rig.hotPlug)).toBe(
      [
        '00:01.0 PCI bridge [0604]: Device [ddb0:00ff] (rev 01) slot 0, link up',
        '00:02.0 PCI bridge [0604]: Device [ddb0:00ff] (rev 01) slot 1, empty',
        '01:00.0 3D controller [0302]: Device [1234:5678] (rev 42)',
        '',
      ].join('\n'),
    );
    expect(formatListing(rig.host, rig.hotPlug, { verbose: true })).toBe(
      [
        '00:01.0 PCI bridge [0604]: Device [ddb0:00ff] (rev 01) slot 0, link up',
        '\tBus: primary=00, secondary=01, subordinate=01',
        '\tMemory behind bridge: e0000000-e0ffffff [size=16 MiB]',
        '\tPrefetchable memory behind bridge: 0000004000000000-00000040ffffffff [size=4 GiB]',
        '00:02.0 PCI bridge [0604]: Device [ddb0:00ff] (rev 01) slot 1, empty',
        '\tBus: primary=00, secondary=02, subordinate=02',
        '\tMemory behind bridge: e1000000-e1ffffff [size=16 MiB]',
        '\tPrefetchable memory behind bridge: 0000004100000000-00000041ffffffff [size=4 GiB]',
        '01:00.0 3D controller [0302]: Device [1234:5678] (rev 42)',
        '\tSubsystem: Device [1111:2222]',
        '\tMax payload 256 bytes, max read request 512 bytes',
        '\tRegion 0: Memory at e0000000 (32-bit, non-prefetchable) [size=64 KiB]',
        '\tRegion 2: Memory at 0000004000000000 (64-bit, prefetchable) [size=64 MiB]',
        '\tCapabilities: [40] MSI: enabled, 1 vector(s), address fee00000 data 4000',
        '\tCapabilities: [58] PCI Express',
        '',
      ].join('\n'),
    );
  });

  it('says why a function is not usable', () => {
    const rig = new HostRig();
    plugged(rig, new FakeFunction({ bars: [{ ...BAR0, sizeBytes: 32 * MIB }] }));
    expect(formatListing(rig.host, rig.hotPlug)).toContain(
      '\tNot usable: no space: BAR 0 needs 32 MiB',
    );
  });
});
