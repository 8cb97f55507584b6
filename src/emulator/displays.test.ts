/** Displays through both proxies in virtual time: what is drawn on the host is seen at the box. */
import { describe, expect, it } from 'vitest';
import { createBochsDisplay } from '#devices/bochs-display';
import type { DeviceModel } from '#devices/device-model';
import { createVirtioGpu } from '#devices/virtio-gpu';
import { memoryWrite } from '#host/host-operations';
import type { Task } from '#host/task';
import { setBochsMode } from '#testkit/display-rig';
import { VirtioGpuDriver } from '#testkit/virtio-gpu-driver';
import { portFor, type SingleSlotPool, singleSlotPool } from './single-slot-pool.ts';

const MIB = 2 ** 20;
const [WIDTH, HEIGHT] = [160, 100];

/** 32-bit pixels: blue, green, red, unused. */
const pixels = Uint8Array.from({ length: 4 * WIDTH * HEIGHT }, (_, i) => (i * 11 + (i >> 8)) & 255);
const expected = new Uint8Array(pixels.length);
for (let i = 0; i < pixels.length; i += 4) {
  expected.set([pixels[i + 2]!, pixels[i + 1]!, pixels[i]!, 255], i);
}

function pool(device: DeviceModel): SingleSlotPool {
  return singleSlotPool({ device, port: portFor(256 * MIB), path: { rttNs: 6800 }, seed: 11 });
}

/** Runs a task on the host to its end, and a little longer. */
function run({ pool: { clock }, host }: SingleSlotPool, task: Task<void>): void {
  let done = false;
  host.run(task, (_now, outcome) => {
    if (!outcome.ok) throw outcome.error;
    done = true;
  });
  expect(clock.runWhile(() => !done, 10e9)).toBe(true);
  clock.runUntil(clock.now() + 1e6);
}

describe('a picture through both proxies', () => {
  it('drawn by a driver of virtio-gpu', () => {
    const device = createVirtioGpu({ uuid: '00000000-0000-4000-8000-000000000000' });
    const world = pool(device);
    const { soft, hotPlug, proxy } = world.host;
    function* draw(): Task<void> {
      const fn = yield* hotPlug.waitForFunction(0, 1e9);
      const driver = yield* VirtioGpuDriver.open(soft, fn);
      const memory = soft.memory.alloc(pixels.length);
      memory.bytes.set(pixels);
      const all = [0, 0, WIDTH, HEIGHT];
      yield* driver.createResource(1, 2, WIDTH, HEIGHT);
      yield* driver.attachBacking(1, [{ address: memory.address, bytes: pixels.length }]);
      yield* driver.setScanout(1, all);
      yield* driver.transfer(1, all, 0);
      yield* driver.flush(1, all);
      expect(driver.interrupts).toBe(5);
    }
    run(world, draw());
    const shot = device.screenshot();
    expect([shot?.width, shot?.height]).toEqual([WIDTH, HEIGHT]);
    expect(Buffer.compare(shot!.rgba, expected)).toBe(0);
    expect(proxy.counters(0).refusedTotal).toBe(0);
    // The next owner: another generation.
    world.pool.box(world.boxId).setTable([]);
    expect(device.screenshot()).toBeUndefined();
  });

  it('written to a bochs-display', () => {
    const device = createBochsDisplay({ uuid: '00000000-0000-4000-8000-000000000000' });
    const world = pool(device);
    const { soft, hotPlug, proxy } = world.host;
    function* draw(): Task<void> {
      const fn = yield* hotPlug.waitForFunction(0, 1e9);
      const bar = (index: number): number => fn.bars.find((one) => one.index === index)!.address;
      yield* setBochsMode(soft, bar(2), { 3: 32, 1: WIDTH, 2: HEIGHT, 4: 0x41 });
      yield* memoryWrite(soft, bar(0), pixels);
    }
    run(world, draw());
    expect(Buffer.compare(device.screenshot()!.rgba, expected)).toBe(0);
    expect(proxy.counters(0).refusedTotal).toBe(0);
  });
});
