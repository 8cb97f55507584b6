/** Displays through both proxies in virtual time: what is drawn on the host is seen at the box. */
import { describe, expect, it } from 'vitest';
import { createBochsDisplay } from '#devices/bochs-display';
import type { DeviceModel } from '#devices/device-model';
import { createVirtioGpu } from '#devices/virtio-gpu';
import { memoryWrite } from '#host/host-operations';
import type { Task } from '#host/task';
import { setBochsMode } from '#testkit/display-rig';
import { VirtioGpuDriver } from '#testkit/virtio-gpu-driver';
import { VirtualPool } from './virtual-pool.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const PORT = {
  secondaryBus: 1,
  nonPrefetchableBase: 0xe000_0000,
  nonPrefetchableBytes: 16 * MIB,
  prefetchableBase: 64 * GIB,
  prefetchableBytes: 256 * MIB,
};
const [WIDTH, HEIGHT] = [160, 100];

/** 32-bit pixels: blue, green, red, unused. */
const pixels = Uint8Array.from({ length: 4 * WIDTH * HEIGHT }, (_, i) => (i * 11 + (i >> 8)) & 255);
const expected = new Uint8Array(pixels.length);
for (let i = 0; i < pixels.length; i += 4) {
  expected.set([pixels[i + 2]!, pixels[i + 1]!, pixels[i]!, 255], i);
}

function pool(device: DeviceModel): VirtualPool {
  const world = new VirtualPool(11);
  world.startBox({ id: 'b', devices: new Map([[0, device]]) });
  const host = world.startHost({ id: 'h', soft: { ports: [PORT] } });
  const binding = { used: true, path: 'p', generation: 1 };
  world.box('b').setTable([{ ...binding, slot: 0, valid: true, host: 'h' }]);
  host.setTable([
    {
      ...binding,
      virtualSlot: 0,
      secondaryBus: PORT.secondaryBus,
      nonPrefetchable: {
        base: PORT.nonPrefetchableBase,
        limit: PORT.nonPrefetchableBase + PORT.nonPrefetchableBytes - 1,
      },
      prefetchable: {
        base: PORT.prefetchableBase,
        limit: PORT.prefetchableBase + PORT.prefetchableBytes - 1,
      },
      box: 'b',
      slot: 0,
    },
  ]);
  world.link('h', 'b', [world.addPath({ rttNs: 6800 })]);
  return world;
}

/** Runs a task on the host to its end, and a little longer. */
function run(world: VirtualPool, task: Task<void>): void {
  let done = false;
  world.host('h').run(task, (_now, outcome) => {
    if (!outcome.ok) throw outcome.error;
    done = true;
  });
  expect(world.clock.runWhile(() => !done, 10e9)).toBe(true);
  world.clock.runUntil(world.clock.now() + 1e6);
}

describe('a picture through both proxies', () => {
  it('drawn by a driver of virtio-gpu', () => {
    const device = createVirtioGpu({ uuid: '00000000-0000-4000-8000-000000000000' });
    const world = pool(device);
    const { soft, hotPlug, proxy } = world.host('h');
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
    world.box('b').setTable([]);
    expect(device.screenshot()).toBeUndefined();
  });

  it('written to a bochs-display', () => {
    const device = createBochsDisplay({ uuid: '00000000-0000-4000-8000-000000000000' });
    const world = pool(device);
    const { soft, hotPlug, proxy } = world.host('h');
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
