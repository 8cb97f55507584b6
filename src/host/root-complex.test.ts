import { describe, expect, it } from 'vitest';
import type { Nanos } from '#base/units';
import { FlowClass, flowClassOf, type Tlp, TlpKind, tlpAddress } from '#pcie/tlp';
import { FAKE_DEVICE_ID, FAKE_VENDOR_ID, FakeFunction } from '#testkit/fake-function';
import { HostRig, portOptions } from '#testkit/host-rig';
import { AccessStatus } from './cpu-access.ts';
import { configRead, memoryRead, memoryWrite, mmioRead32 } from './host-operations.ts';
import type { SoftHostOptions } from './root-complex.ts';
import { SoftHost } from './root-complex.ts';

const MIB = 2 ** 20;
const SECOND = 1e9;

/** A host with one function that is set up: BAR 0 of 64 KiB, BAR 2 of 1 MiB. */
function rigWithFunction(options: Partial<SoftHostOptions> = {}) {
  const rig = new HostRig(options);
  const fn = new FakeFunction({
    bars: [
      { index: 0, sizeBytes: 65536, is64Bit: false, prefetchable: false },
      { index: 2, sizeBytes: MIB, is64Bit: true, prefetchable: true },
    ],
  });
  rig.fabric.plug(0, fn);
  rig.pass(1e6);
  expect(rig.problems).toEqual([]);
  const [bar0, bar2] = rig.added[0]!.bars.map((bar) => bar.address) as [number, number];
  rig.fabric.requests.length = 0;
  return { rig, fn, bar0, bar2, memory: fn.memory.get(2)!, registers: fn.memory.get(0)! };
}

function isRead(tlp: Tlp): boolean {
  return tlp.kind === TlpKind.MRd32 || tlp.kind === TlpKind.MRd64;
}

describe('loads and stores', () => {
  it('reads and writes a register, little-endian', () => {
    const { rig, bar0, registers } = rigWithFunction();
    rig.host.writeMmio32(rig.now, bar0 + 0x10, 0x8899_aabb);
    const value = rig.run(mmioRead32(rig.host, bar0 + 0x10));
    expect([...registers.subarray(0x10, 0x14)]).toEqual([0xbb, 0xaa, 0x99, 0x88]);
    expect(value).toBe(0x8899_aabb);
  });

  it('uses the 64-bit form above 4 GiB alone', () => {
    const { rig, bar0, bar2 } = rigWithFunction();
    rig.run(mmioRead32(rig.host, bar0));
    rig.run(mmioRead32(rig.host, bar2));
    expect(rig.fabric.requests.map((tlp) => tlp.kind)).toEqual([TlpKind.MRd32, TlpKind.MRd64]);
  });

  it('stores and loads any range, split at 4 KiB, MPS 256 and MRRS 512', () => {
    const { rig, bar2, memory } = rigWithFunction();
    for (const [start, length] of [
      [0, 1],
      [3, 2],
      [1, 8],
      [4093, 7],
      [4095, 1],
      [4096, 4096],
      [250, 13],
      [1001, 9000],
    ] as const) {
      memory.fill(0xee);
      rig.fabric.requests.length = 0;
      const data = Uint8Array.from({ length }, (_, index) => (index * 7 + length) & 0xff);
      expect(rig.run(memoryWrite(rig.host, bar2 + start, data))).toBe(AccessStatus.OK);
      const back = new Uint8Array(length);
      expect(rig.run(memoryRead(rig.host, bar2 + start, back))).toBe(AccessStatus.OK);
      expect(back).toEqual(data);
      expect(memory.subarray(start, start + length)).toEqual(data);
      const around = [memory[start - 1] ?? 0xee, memory[start + length] ?? 0xee];
      expect(around).toEqual([0xee, 0xee]);
      for (const tlp of rig.fabric.requests) {
        const limit = isRead(tlp) ? 512 : 256;
        expect(tlp.lengthDw * 4).toBeLessThanOrEqual(limit);
        const first = tlpAddress(tlp);
        const last = first + tlp.lengthDw * 4 - 1;
        expect(Math.floor(first / 4096)).toBe(Math.floor(last / 4096));
      }
    }
  });

  it('has all reads of a bulk load outstanding at once', () => {
    const { rig, bar2 } = rigWithFunction();
    const startNs = rig.now;
    // 64 KiB is 128 reads of 512 bytes; one after another they would take 128 × 2 µs.
    rig.run(memoryRead(rig.host, bar2, new Uint8Array(65536)));
    expect(rig.now - startNs).toBe(2000);
  });

  it('reads all ones where no window is, and makes no request', () => {
    const { rig } = rigWithFunction();
    expect(rig.run(mmioRead32(rig.host, 0xd000_0000))).toBe(0xffff_ffff);
    const into = new Uint8Array(5);
    expect(rig.run(memoryRead(rig.host, 0xd000_0000, into))).toBe(AccessStatus.UNSUPPORTED);
    expect([...into]).toEqual([255, 255, 255, 255, 255]);
    rig.host.writeMmio32(rig.now, 0xd000_0000, 1);
    expect(rig.fabric.requests).toEqual([]);
  });

  it('reads all ones where the function has no BAR (UR)', () => {
    const { rig, bar0 } = rigWithFunction();
    expect(rig.run(mmioRead32(rig.host, bar0 + 8 * MIB))).toBe(0xffff_ffff);
    expect(rig.fabric.requests).toHaveLength(1);
  });

  it('fills in what it got when part of a bulk load failed', () => {
    const { rig, fn, bar0, registers } = rigWithFunction();
    registers.fill(0x11);
    // Starts in BAR 0, ends behind it: MRRS is 512, so the last two requests miss.
    const into = new Uint8Array(2048);
    const status = rig.run(memoryRead(rig.host, bar0 + 65536 - 1024, into));
    expect(status).toBe(AccessStatus.UNSUPPORTED);
    expect(into.subarray(0, 1024).every((byte) => byte === 0x11)).toBe(true);
    expect(into.subarray(1024).every((byte) => byte === 0xff)).toBe(true);
    expect(fn.config.memoryEnable).toBe(true);
  });

  it('reads all ones through a port whose memory space is off', () => {
    const { rig, bar0 } = rigWithFunction();
    rig.host.configWrite(rig.now, 1 << 3, 0x04, 0, 3, () => {});
    expect(rig.run(mmioRead32(rig.host, bar0))).toBe(0xffff_ffff);
    expect(rig.fabric.requests).toEqual([]);
  });

  it('works over a fabric that answers from inside the request', () => {
    const { rig, bar2, memory } = rigWithFunction();
    rig.fabric.delayNs = 0;
    const data = Uint8Array.from({ length: 10_000 }, (_, index) => index & 0xff);
    rig.run(memoryWrite(rig.host, bar2 + 5, data));
    const into = new Uint8Array(10_000);
    rig.run(memoryRead(rig.host, bar2 + 5, into));
    expect(into).toEqual(data);
    expect(memory.subarray(5, 10_005)).toEqual(data);
    // A chain of instant answers must not become a chain of calls.
    let left = 20_000;
    const next = (now: Nanos): void => {
      if (--left > 0) rig.host.readMmio32(now, bar2, next);
    };
    rig.host.readMmio32(rig.now, bar2, next);
    expect(left).toBe(0);
  });
});

describe('config accesses', () => {
  it('answers for the ports on bus 0, and all ones for the rest of it', () => {
    const rig = new HostRig({ slots: 2 });
    expect(rig.run(configRead(rig.host, 1 << 3, 0))).toBe(0x00ff_ddb0);
    expect(rig.run(configRead(rig.host, 2 << 3, 0x18))).toBe(0x0002_0200);
    expect(rig.run(configRead(rig.host, 3 << 3, 0))).toBe(0xffff_ffff);
    expect(rig.run(configRead(rig.host, (1 << 3) | 1, 0))).toBe(0xffff_ffff);
    expect(rig.run(configRead(rig.host, 9 << 8, 0))).toBe(0xffff_ffff);
    expect(rig.fabric.requests).toEqual([]);
  });

  it('sends type 1 requests to the bus behind a port', () => {
    const { rig } = rigWithFunction();
    const value = rig.run(configRead(rig.host, 1 << 8, 0));
    expect(value).toBe(((FAKE_DEVICE_ID << 16) | FAKE_VENDOR_ID) >>> 0);
    const [tlp] = rig.fabric.requests;
    expect(tlp!.kind).toBe(TlpKind.CfgRd1);
    expect(tlp!.completerId).toBe(0x0100);
  });

  it('reads all ones of a device that is not 0', () => {
    const { rig } = rigWithFunction();
    expect(rig.run(configRead(rig.host, (1 << 8) | (3 << 3), 0))).toBe(0xffff_ffff);
  });

  it('gives 0xffff0001 for a vendor ID answered "retry", and asks again for anything else', () => {
    const { rig, fn } = rigWithFunction();
    fn.readyAtNs = rig.now + 50e6;
    expect(rig.run(configRead(rig.host, 1 << 8, 0))).toBe(0xffff_0001);
    const startNs = rig.now;
    expect(rig.run(configRead(rig.host, 1 << 8, 0x08))).toBe(0x0302_0042);
    expect(rig.now - startNs).toBeGreaterThan(49e6);
    expect(rig.now - startNs).toBeLessThan(52e6);
  });

  it('ends what waits to be tried again when the link goes down: it is not for the next function', () => {
    const { rig, fn } = rigWithFunction();
    fn.readyAtNs = Infinity;
    let status = -1;
    rig.host.configWrite(rig.now, 1 << 8, 0x10, 0, 15, (_now, ended) => {
      status = ended;
    });
    rig.pass(100e3);
    rig.fabric.unplug(0);
    expect(status).toBe(AccessStatus.UNSUPPORTED);
    const next = new FakeFunction({
      bars: [{ index: 0, sizeBytes: 65536, is64Bit: false, prefetchable: false }],
    });
    rig.fabric.plug(0, next);
    rig.pass(500e3);
    const [bar] = rig.added[1]!.bars;
    rig.pass(5e6);
    expect(rig.run(configRead(rig.host, 1 << 8, 0x10))).toBe(bar!.address);
  });

  it('gives up a config access that is answered "retry" for a second', () => {
    const { rig, fn } = rigWithFunction();
    fn.readyAtNs = Infinity;
    let status = -1;
    rig.host.configRead(rig.now, 1 << 8, 0x08, (_now, value, ended) => {
      expect(value).toBe(0xffff_ffff);
      status = ended;
    });
    rig.pass(0.99 * SECOND);
    expect(status).toBe(-1);
    rig.pass(0.02 * SECOND);
    expect(status).toBe(AccessStatus.RETRY);
  });

  it('writes only the bytes enabled', () => {
    const { rig, fn } = rigWithFunction();
    const before = fn.config.read32(0x3c);
    rig.host.configWrite(rig.now, 1 << 8, 0x3c, 0x5555_5577, 1, () => {});
    rig.pass(1e5);
    expect(fn.config.read32(0x3c)).toBe((before & ~0xff) | 0x77);
    expect(fn.configWrites.at(-1)).toMatchObject({ register: 0x3c, byteEnables: 1 });
  });
});

describe('order and back-pressure', () => {
  it('sends nothing of a class the fabric does not take, and goes on at resume', () => {
    const { rig, bar0, registers } = rigWithFunction();
    rig.fabric.accepts = () => false;
    rig.host.writeMmio32(rig.now, bar0, 1);
    const read = rig.start(mmioRead32(rig.host, bar0));
    rig.pass(1e6);
    expect(rig.fabric.requests).toEqual([]);
    rig.fabric.accepts = () => true;
    rig.host.resume(rig.now);
    rig.pass(1e6);
    expect(registers[0]).toBe(1);
    expect(read.outcome).toEqual({ ok: true, value: 1 });
  });

  it('keeps a read behind an earlier write that cannot leave', () => {
    const { rig, bar0 } = rigWithFunction();
    rig.fabric.accepts = (_slot, flow) => flow !== FlowClass.POSTED;
    rig.host.writeMmio32(rig.now, bar0, 7);
    const read = rig.start(mmioRead32(rig.host, bar0));
    rig.pass(1e6);
    expect(rig.fabric.requests).toEqual([]);
    rig.fabric.accepts = () => true;
    rig.host.resume(rig.now);
    rig.pass(1e6);
    expect(rig.fabric.requests.map((tlp) => flowClassOf(tlp.kind))).toEqual([
      FlowClass.POSTED,
      FlowClass.NON_POSTED,
    ]);
    expect(read.outcome).toEqual({ ok: true, value: 7 });
  });

  it('lets a write overtake a read that cannot leave (invariant 7)', () => {
    const { rig, bar0, registers } = rigWithFunction();
    rig.fabric.accepts = (_slot, flow) => flow !== FlowClass.NON_POSTED;
    const read = rig.start(mmioRead32(rig.host, bar0));
    rig.host.writeMmio32(rig.now, bar0, 9);
    rig.pass(1e6);
    expect(registers[0]).toBe(9);
    expect(read.outcome).toBeUndefined();
  });

  it('a slot that takes nothing does not hold up another', () => {
    const rig = new HostRig({ slots: 2 });
    for (const slot of [0, 1]) {
      const bars = [{ index: 0, sizeBytes: 4096, is64Bit: false, prefetchable: false }];
      rig.fabric.plug(slot, new FakeFunction({ bars }));
    }
    rig.pass(1e6);
    const [first, second] = rig.added.map((fn) => fn.bars[0]!.address) as [number, number];
    rig.fabric.accepts = (slot) => slot === 1;
    const stuck = rig.start(mmioRead32(rig.host, first));
    expect(rig.run(mmioRead32(rig.host, second))).toBe(0);
    expect(stuck.outcome).toBeUndefined();
  });
});

describe('tags and timeouts', () => {
  it('never has more requests outstanding than tags, and finishes all', () => {
    const { rig, bar2, memory } = rigWithFunction({ tags: 4 });
    memory.set(Uint8Array.from({ length: 65536 }, (_, index) => index * 13));
    let most = 0;
    let held = 0;
    rig.fabric.hold = () => {
      held++;
      most = Math.max(most, rig.fabric.heldCount + 1);
      return true;
    };
    const into = new Uint8Array(65536);
    const read = rig.start(memoryRead(rig.host, bar2, into));
    while (read.outcome === undefined) {
      rig.fabric.releaseHeld();
      rig.pass(10e3);
    }
    expect(most).toBe(4);
    expect(held).toBe(65536 / 512);
    expect(into).toEqual(memory.subarray(0, 65536));
  });

  it('ends a read with all ones after the completion timeout, not before', () => {
    const { rig, bar0 } = rigWithFunction();
    rig.fabric.hold = isRead;
    const read = rig.start(mmioRead32(rig.host, bar0));
    rig.pass(4 * SECOND - 1);
    expect(read.outcome).toBeUndefined();
    rig.pass(1);
    expect(read.outcome).toEqual({ ok: true, value: 0xffff_ffff });
    expect(rig.host.requestCounts).toMatchObject({ timeouts: 1, heldTags: 1 });
  });

  it('does not use a timed-out tag again until its completion has come', () => {
    const { rig, bar0, registers } = rigWithFunction({ tags: 2 });
    registers.fill(0x55);
    rig.fabric.hold = isRead;
    rig.start(mmioRead32(rig.host, bar0));
    rig.pass(5 * SECOND);
    const lostTag = rig.fabric.requests[0]!.tag;
    rig.fabric.hold = () => false;
    rig.fabric.requests.length = 0;
    for (let round = 0; round < 5; round++) {
      expect(rig.run(mmioRead32(rig.host, bar0))).toBe(0x5555_5555);
    }
    expect(rig.fabric.requests.map((tlp) => tlp.tag)).not.toContain(lostTag);
    rig.fabric.releaseHeld();
    rig.pass(1e5);
    expect(rig.host.requestCounts).toMatchObject({ lateCompletions: 1, heldTags: 0 });
    for (let round = 0; round < 2; round++) rig.run(mmioRead32(rig.host, bar0));
    expect(rig.fabric.requests.map((tlp) => tlp.tag)).toContain(lostTag);
  });

  it('waits for a tag when all have timed out, and goes on when one comes back', () => {
    const { rig, bar0 } = rigWithFunction({ tags: 1 });
    rig.fabric.hold = isRead;
    rig.start(mmioRead32(rig.host, bar0));
    rig.pass(5 * SECOND);
    const next = rig.start(mmioRead32(rig.host, bar0));
    rig.pass(5 * SECOND);
    expect(next.outcome).toBeUndefined();
    rig.fabric.hold = () => false;
    rig.fabric.releaseHeld();
    rig.pass(1e5);
    expect(next.outcome).toEqual({ ok: true, value: 0 });
  });

  it('counts a completion nobody asked for and does nothing else', () => {
    const { rig, bar0 } = rigWithFunction();
    rig.run(mmioRead32(rig.host, bar0));
    const stray = rig.fabric.requests[0]!;
    stray.kind = TlpKind.Cpl;
    stray.lengthDw = 0;
    rig.host.completion(rig.now, stray);
    expect(rig.host.requestCounts.unexpectedCompletions).toBe(1);
  });
});

describe('a link that goes down', () => {
  it('ends what is outstanding and what is queued with all ones, and what comes later', () => {
    const { rig, bar0 } = rigWithFunction();
    rig.fabric.hold = () => true;
    const outstanding = rig.start(mmioRead32(rig.host, bar0));
    rig.fabric.accepts = () => false;
    const queued = rig.start(mmioRead32(rig.host, bar0 + 4));
    rig.fabric.unplug(0);
    const later = rig.start(mmioRead32(rig.host, bar0 + 8));
    for (const read of [outstanding, queued, later]) {
      expect(read.outcome).toEqual({ ok: true, value: 0xffff_ffff });
    }
    expect(rig.fabric.requests).toHaveLength(1);
  });

  it('tells the writer of a bulk store that it did not all leave', () => {
    const { rig, bar2 } = rigWithFunction();
    let taken = 0;
    rig.fabric.accepts = () => taken++ < 2;
    const write = rig.start(memoryWrite(rig.host, bar2, new Uint8Array(4096)));
    expect(write.outcome).toBeUndefined();
    rig.fabric.unplug(0);
    expect(write.outcome).toEqual({ ok: true, value: AccessStatus.UNSUPPORTED });
  });
});

describe('options', () => {
  const ports = [portOptions(0)];
  it.each([
    ['two slots of one bus', { ports: [portOptions(0), portOptions(1, { secondaryBus: 1 })] }],
    [
      'overlapping windows',
      { ports: [portOptions(0), portOptions(1, { nonPrefetchableBase: 0xe000_0000 })] },
    ],
    ['memory in a window', { ports, memory: [{ base: 0xe000_0000, sizeBytes: MIB }] }],
    [
      'a window in the interrupt range',
      {
        ports: [portOptions(0, { nonPrefetchableBase: 0xfee0_0000, nonPrefetchableBytes: MIB })],
      },
    ],
    ['no slot', { ports: [] }],
    ['an MPS that does not exist', { ports, maxPayloadBytes: 300 }],
    ['a window of half a megabyte', { ports: [portOptions(0, { nonPrefetchableBytes: MIB / 2 })] }],
    ['bus 0', { ports: [portOptions(0, { secondaryBus: 0 })] }],
    [
      'a window beyond 4 GiB',
      {
        ports: [
          portOptions(0, { nonPrefetchableBase: 2 ** 32 - MIB, nonPrefetchableBytes: 2 * MIB }),
        ],
      },
    ],
  ])('refuses %s', (_name, options: SoftHostOptions) => {
    expect(() => new SoftHost(options)).toThrow(
      expect.objectContaining({ code: 'invalid_argument' }),
    );
  });
});
