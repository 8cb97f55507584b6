/** The driver against the model of the device, over a fabric that only delays. */
import { describe, expect, it } from 'vitest';
import { Prng } from '#base/prng';
import { FlowClass, flowClassOf, type Tlp, TlpKind, tlpAddress } from '#pcie/tlp';
import { ACCELERATOR_UUID, rigWithAccelerator } from '#testkit/accelerator-host-rig';
import { AccelDriver, type AccelDriverOptions } from './accel-driver.ts';
import * as layout from './accel-layout.ts';
import { firstDifference, plainSaxpy, plainSgemm } from './plain.ts';
import { sleep, TaskScope } from './task.ts';

const KIB = 1024;
const MIB = 2 ** 20;

function matrix(random: Prng, words: number): Float32Array {
  return Float32Array.from({ length: words }, () => random.float() * 2 - 1);
}

/** Runs an m×n×k product through a driver and compares it bit by bit with the plain loop. */
function expectSgemm(
  { rig, open }: ReturnType<typeof rigWithAccelerator>,
  options: AccelDriverOptions,
  [m, n, k]: readonly [number, number, number],
): void {
  const random = new Prng(m * 10_007 + n * 101 + k);
  const a = matrix(random, m * k);
  const b = matrix(random, k * n);
  const c = rig.run(open(options).sgemm(m, n, k, a, b));
  expect(firstDifference(c, plainSgemm(m, n, k, a, b))).toBe(-1);
}

describe('open', () => {
  it('reads size and UUID and starts a ring', () => {
    const { open } = rigWithAccelerator({ memoryBytes: 4 * MIB });
    const driver = open();
    expect(driver.memoryBytes).toBe(4 * MIB);
    expect(driver.uuid).toBe(ACCELERATOR_UUID);
  });

  it('refuses another function, a channel that does not exist, a ring of odd size', () => {
    const { rig, fn } = rigWithAccelerator({ channels: 2 });
    const start = (vendorId: number, options: AccelDriverOptions) =>
      rig.run(AccelDriver.open(rig.host, { ...fn, vendorId }, options));
    expect(() => start(0x8086, {})).toThrow(
      expect.objectContaining({ code: 'failed_precondition' }),
    );
    expect(() => start(fn.vendorId, { channel: 2 })).toThrow('the accelerator has 2');
    expect(() => start(fn.vendorId, { ringEntries: 100 })).toThrow('power of two');
  });

  it('finds a device that reads all ones to be gone', () => {
    const { rig, fn } = rigWithAccelerator();
    const elsewhere = fn.bars.map((bar) => ({ ...bar, address: bar.address + 8 * MIB }));
    const open = AccelDriver.open(rig.host, { ...fn, bars: elsewhere });
    expect(() => rig.run(open)).toThrow(expect.objectContaining({ code: 'unavailable' }));
  });
});

describe.each(['msi', 'poll'] as const)('waiting by %s', (wait) => {
  it('copies up and down, any length and offset', () => {
    const { rig, open } = rigWithAccelerator();
    const driver = open({ wait, copyChunkBytes: 1000 });
    const random = new Prng(5);
    for (const [bytes, offset] of [
      [1, 0],
      [4096, 3],
      [10_001, 77],
      [65_536, 4096],
    ] as const) {
      const from = rig.host.memory.alloc(bytes);
      for (let index = 0; index < bytes; index++) from.bytes[index] = random.uint32();
      const into = rig.host.memory.alloc(bytes);
      rig.run(driver.upload(from, offset));
      rig.run(driver.download(offset, into));
      expect(into.bytes).toEqual(from.bytes);
      rig.host.memory.free(from);
      rig.host.memory.free(into);
    }
  });

  it('fills', () => {
    const { rig, open } = rigWithAccelerator();
    const driver = open({ wait });
    const into = rig.host.memory.alloc(16);
    rig.run(driver.fill(256, 3, 0xdead_beef));
    rig.run(driver.download(256, into));
    expect([...new Uint32Array(into.bytes.slice().buffer)]).toEqual([
      0xdead_beef, 0xdead_beef, 0xdead_beef, 0,
    ]);
  });

  it('multiplies, bit by bit as the plain loop does', () => {
    const parts = rigWithAccelerator();
    expectSgemm(parts, { wait }, [17, 9, 33]);
    expectSgemm(parts, { wait }, [1, 1, 1]);
    expectSgemm(parts, { wait }, [64, 64, 64]);
  });
});

describe('kernels', () => {
  it('sgemm in tiles has the same bits: by work, by staging memory, by device memory', () => {
    // 2·24·20·50 = 48000 operations: 3000 at once makes at least 16 tiles, cut along k too.
    expectSgemm(rigWithAccelerator(), { kernelFlops: 3000 }, [24, 20, 50]);
    // The three matrices take 4·(24·50 + 50·20 + 24·20) = 10720 bytes.
    expectSgemm(rigWithAccelerator(), { stagingBytes: 1024 }, [24, 20, 50]);
    // 4·(300·300·3) = 1.08 MB do not fit 1 MiB of device memory.
    expectSgemm(rigWithAccelerator(), {}, [300, 300, 300]);
    expectSgemm(rigWithAccelerator(), { kernelFlops: 2, stagingBytes: 12 }, [2, 3, 4]);
  });

  it('sgemm with nothing to multiply or to sum', () => {
    const { rig, open } = rigWithAccelerator();
    const driver = open();
    const none = new Float32Array(0);
    expect(rig.run(driver.sgemm(0, 5, 3, none, new Float32Array(15)))).toEqual(none);
    expect(rig.run(driver.sgemm(2, 2, 0, none, none))).toEqual(new Float32Array(4));
  });

  it('saxpy, in pieces too', () => {
    const { rig, open } = rigWithAccelerator();
    const driver = open({ stagingBytes: 1000 });
    const random = new Prng(9);
    const [x, y] = [matrix(random, 1001), matrix(random, 1001)];
    const result = rig.run(driver.saxpy(0.1, x, y));
    expect(firstDifference(result, plainSaxpy(0.1, x, y))).toBe(-1);
    expect(rig.run(driver.saxpy(1, new Float32Array(0), new Float32Array(0)))).toHaveLength(0);
  });

  it('gives all its memory back', () => {
    const { rig, open, freeBytes } = rigWithAccelerator();
    const driver = open();
    const whole = driver.allocDevice(MIB);
    expect(() => driver.allocDevice(1)).toThrow('no 1 bytes of device memory');
    driver.freeDevice(whole);
    for (let round = 0; round < 3; round++) {
      rig.run(driver.sgemm(8, 8, 8, new Float32Array(64), new Float32Array(64)));
    }
    driver.freeDevice(driver.allocDevice(MIB));
    rig.run(driver.close());
    expect(rig.host.memory.freeBytes).toBe(freeBytes);
  });
});

describe('the ring', () => {
  it('takes batches far longer than itself', () => {
    const { rig, open } = rigWithAccelerator();
    for (const wait of ['msi', 'poll'] as const) {
      const driver = open({ ringEntries: 4, copyChunkBytes: 64, wait });
      const from = rig.host.memory.alloc(100 * 64);
      from.bytes.forEach((_, index) => {
        from.bytes[index] = index * 31;
      });
      const into = rig.host.memory.alloc(100 * 64);
      rig.run(driver.upload(from, 0));
      rig.run(driver.download(0, into));
      expect(into.bytes).toEqual(from.bytes);
      rig.run(driver.close());
    }
  });

  it('rings the doorbell once for a batch that fits', () => {
    const { rig, fn, open } = rigWithAccelerator();
    const driver = open({ copyChunkBytes: 1024 });
    const from = rig.host.memory.alloc(32 * KIB);
    rig.fabric.requests.length = 0;
    rig.run(driver.upload(from, 0));
    const writes = rig.fabric.requests.filter((tlp) => flowClassOf(tlp.kind) === FlowClass.POSTED);
    expect(writes.map(tlpAddress)).toEqual([fn.bars[0]!.address + 0x2000]);
    // Nothing is read over the link for a command that ends well.
    expect(rig.fabric.requests).toHaveLength(1);
  });

  it('is shared by tasks that run at the same time', () => {
    const { rig, open } = rigWithAccelerator();
    const driver = open({ ringEntries: 4, kernelFlops: 2000 });
    const random = new Prng(77);
    const runs = Array.from({ length: 6 }, (_, index) => {
      const [m, n, k] = [10 + index, 7, 20];
      const [a, b] = [matrix(random, m * k), matrix(random, k * n)];
      const started = rig.start(driver.sgemm(m, n, k, a, b));
      return { started, expected: plainSgemm(m, n, k, a, b) };
    });
    rig.pass(1e9);
    for (const { started, expected } of runs) {
      expect(started.outcome).toMatchObject({ ok: true });
      const { outcome } = started;
      if (outcome?.ok === true) expect(firstDifference(outcome.value, expected)).toBe(-1);
    }
  });

  it('runs a command for as long as it says', () => {
    const { rig, open } = rigWithAccelerator();
    const driver = open();
    const startNs = rig.now;
    rig.run(driver.busy(5e6));
    // Besides: doorbell, fetch there and back, fence and interrupt, 1 µs each way.
    expect(rig.now - startNs).toBe(5e6 + 4000);
  });
});

describe('errors', () => {
  it('names the device error, and the driver goes on', () => {
    const { rig, open } = rigWithAccelerator();
    for (const wait of ['msi', 'poll'] as const) {
      const driver = open({ wait });
      const startNs = rig.now;
      let caught: unknown;
      try {
        rig.run(driver.fill(MIB - 4, 2, 0));
      } catch (error) {
        caught = error;
      }
      expect(caught).toMatchObject({
        code: 'aborted',
        message: expect.stringContaining('OUT_OF_RANGE'),
        details: { errorCode: 3, errorName: 'OUT_OF_RANGE', ringIndex: 0, address: '0xffffc' },
      });
      // An interrupt tells at once; without one the status is looked at every 100 ms.
      expect(rig.now - startNs).toBeLessThan(wait === 'msi' ? 50e3 : 101e6);
      rig.run(driver.fill(0, 1, 1));
      rig.run(driver.close());
    }
  });

  it('a DMA read outside host memory is reported with its address', () => {
    const { rig, open } = rigWithAccelerator();
    const driver = open();
    const nowhere = { address: 0x9_0000_0000, bytes: new Uint8Array(64) };
    expect(() => rig.run(driver.upload(nowhere, 0))).toThrow(
      /address 0x900000000: DMA_UNSUPPORTED/,
    );
  });

  it('fails every batch in flight, finished ones excepted, and none that comes later', () => {
    const { rig, open } = rigWithAccelerator();
    const driver = open();
    const before = rig.start(driver.busy(1000));
    const bad = rig.start(driver.fill(1, 1, 0));
    const after = rig.start(driver.busy(1000));
    rig.pass(1e6);
    expect(before.outcome).toEqual({ ok: true, value: undefined });
    for (const task of [bad, after]) {
      expect(task.outcome).toMatchObject({ ok: false, error: { code: 'aborted' } });
    }
    rig.run(driver.busy(1000));
  });

  it('a command that never ends is stopped, and its memory is safe then', () => {
    const { rig, open, freeBytes } = rigWithAccelerator();
    const driver = open({ commandTimeoutNs: 1e9 });
    const startNs = rig.now;
    expect(() => rig.run(driver.busy(3e9))).toThrow(
      expect.objectContaining({ code: 'deadline_exceeded' }),
    );
    expect(rig.now - startNs).toBeLessThan(1.01e9);
    const fence = rig.host.memory.alloc(4096);
    rig.pass(5e9);
    expect(fence.bytes.every((byte) => byte === 0)).toBe(true);
    rig.host.memory.free(fence);
    rig.run(driver.busy(1));
    rig.run(driver.close());
    expect(rig.host.memory.freeBytes).toBe(freeBytes);
  });

  it('a long batch is no timeout while commands finish', () => {
    const { rig, open } = rigWithAccelerator();
    const driver = open({ commandTimeoutNs: 1e9 });
    const durationNs = 0.9e9;
    const nop = { opcode: layout.Opcode.NOP, durationNs };
    rig.run(driver.run([nop, nop, nop]));
  });

  it('no interrupt arrives: the fence is found all the same', () => {
    const { rig, fn, open } = rigWithAccelerator();
    const driver = open();
    rig.host.configWrite(rig.now, fn.bdf, fn.msi!.offset, 0, 12, () => {});
    rig.run(driver.busy(1000));
  });

  it('after close everything is cancelled', () => {
    const { rig, open, freeBytes } = rigWithAccelerator();
    const driver = open();
    const running = rig.start(driver.busy(1e9));
    rig.run(driver.close());
    expect(running.outcome).toMatchObject({ ok: false, error: { code: 'cancelled' } });
    expect(() => rig.run(driver.busy(1))).toThrow(expect.objectContaining({ code: 'cancelled' }));
    rig.run(driver.close());
    expect(rig.host.memory.freeBytes).toBe(freeBytes);
  });
});

describe('removal', () => {
  const random = new Prng(3);
  const [a, b] = [matrix(random, 40 * 40), matrix(random, 40 * 40)];

  it.each([0, 500, 1500, 2500, 4000, 7000, 11_000, 20_000, 33_000])(
    'at %i ns ends an sgemm with "unavailable" and leaves nothing behind',
    (afterNs) => {
      const { rig, open, freeBytes } = rigWithAccelerator();
      const driver = open({ kernelFlops: 2000 });
      const task = rig.start(driver.sgemm(40, 40, 40, a, b));
      rig.pass(afterNs);
      expect(task.outcome).toBeUndefined();
      rig.fabric.unplug(0);
      rig.pass(2e6);
      expect(task.outcome).toMatchObject({ ok: false, error: { code: 'unavailable' } });
      const later = rig.start(driver.fill(0, 1, 1));
      expect(later.outcome).toMatchObject({ ok: false, error: { code: 'unavailable' } });
      rig.run(driver.close());
      expect(rig.host.memory.freeBytes).toBe(freeBytes);
      expect(rig.host.tasks.size).toBe(0);
    },
  );

  it.each([0, 1000, 3000, 5000, 9000, 13_000])('at %i ns ends an open', (afterNs) => {
    const { rig, fn, freeBytes } = rigWithAccelerator();
    const opening = rig.start(AccelDriver.open(rig.host, fn));
    rig.pass(afterNs);
    rig.fabric.unplug(0);
    rig.pass(2e6);
    expect(opening.outcome).toMatchObject({ ok: false, error: { code: 'unavailable' } });
    expect(rig.host.memory.freeBytes).toBe(freeBytes);
  });

  it('ends a wait whose register read it answered with all ones', () => {
    const { rig, open } = rigWithAccelerator();
    const driver = open({ wait: 'poll' });
    const task = rig.start(driver.busy(1e9));
    // The status is looked at every 100 ms.
    rig.fabric.hold = (tlp: Tlp) => tlp.kind === TlpKind.MRd32;
    rig.pass(100.5e6);
    expect(rig.fabric.heldCount).toBe(1);
    rig.fabric.unplug(0);
    rig.pass(2e6);
    expect(task.outcome).toMatchObject({ ok: false, error: { code: 'unavailable' } });
  });
});

describe('a task that is ended by its own scope', () => {
  it('does not give memory back that the device may still write to', () => {
    const { rig, open, freeBytes } = rigWithAccelerator();
    const driver = open();
    const scope = new TaskScope('caller');
    // 64 KiB up, 64 KiB down: far longer than 5 µs at 1 µs a way.
    const words = 16 * KIB;
    const task = rig.start(
      driver.saxpy(1, new Float32Array(words), new Float32Array(words)),
      scope,
    );
    rig.pass(3e3);
    const during = rig.host.memory.freeBytes;
    scope.end(rig.now, Object.assign(new Error('enough'), { code: 'cancelled' }) as never);
    expect(task.outcome).toMatchObject({ ok: false });
    expect(rig.host.memory.freeBytes).toBe(during);
    rig.run(sleep(1e9));
    // Its last command has interrupted by now.
    expect(rig.host.memory.freeBytes).toBeGreaterThan(during);
    rig.run(driver.busy(1));
    rig.run(driver.close());
    expect(rig.host.memory.freeBytes).toBe(freeBytes);
  });
});
