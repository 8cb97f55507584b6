import { describe, expect, it } from 'vitest';
import { createAccelerator } from '#devices/accel';
import { AccelDriver } from '#host/accel-driver';
import { plainSgemm } from '#host/plain';
import type { Task } from '#host/task';
import { VirtualPool } from './virtual-pool.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const PORTS = [0, 1].map((slot) => ({
  secondaryBus: slot + 1,
  nonPrefetchableBase: 0xe000_0000 + slot * 16 * MIB,
  nonPrefetchableBytes: 16 * MIB,
  prefetchableBase: 64 * GIB + slot * 256 * MIB,
  prefetchableBytes: 256 * MIB,
}));

function pool(rttNs: number): VirtualPool {
  const world = new VirtualPool(7);
  world.startBox({
    id: 'b',
    devices: new Map(
      [0, 1].map((slot) => [
        slot,
        createAccelerator({ uuid: `00000000-0000-4000-8000-00000000000${slot}` }),
      ]),
    ),
  });
  const host = world.startHost({ id: 'h', soft: { ports: PORTS } });
  world.box('b').setTable(
    [0, 1].map((slot) => ({
      slot,
      valid: true,
      used: true,
      host: 'h',
      path: 'p',
      generation: slot + 1,
    })),
  );
  host.setTable(
    PORTS.map((port, slot) => ({
      virtualSlot: slot,
      used: true,
      secondaryBus: port.secondaryBus,
      nonPrefetchable: {
        base: port.nonPrefetchableBase,
        limit: port.nonPrefetchableBase + port.nonPrefetchableBytes - 1,
      },
      prefetchable: {
        base: port.prefetchableBase,
        limit: port.prefetchableBase + port.prefetchableBytes - 1,
      },
      box: 'b',
      slot,
      path: 'p',
      generation: slot + 1,
    })),
  );
  world.link('h', 'b', [world.addPath({ rttNs })]);
  return world;
}

function matrix(rows: number, columns: number, seed: number): Float32Array {
  return Float32Array.from({ length: rows * columns }, (_, i) => ((i * 7 + seed) % 23) / 8 - 1);
}

describe('a host and a box in virtual time', () => {
  it('multiplies matrices on two accelerators through both proxies', () => {
    const world = pool(6800);
    const host = world.host('h');
    const [m, n, k] = [24, 17, 33];
    const results: Float32Array[] = [];
    const expected: Float32Array[] = [];
    for (const slot of [0, 1]) {
      const a = matrix(m, k, slot);
      const b = matrix(k, n, slot + 5);
      expected[slot] = plainSgemm(m, n, k, a, b);
      function* multiply(): Task<Float32Array> {
        const fn = yield* host.hotPlug.waitForFunction(slot, 1e9);
        const driver = yield* AccelDriver.open(host.soft, fn);
        return yield* driver.sgemm(m, n, k, a, b);
      }
      host.run(multiply(), (_now, outcome) => {
        if (!outcome.ok) throw outcome.error;
        results[slot] = outcome.value;
      });
    }
    world.clock.runWhile(() => results.filter(Boolean).length < 2, 10e9);
    expect(results[0]).toEqual(expected[0]);
    expect(results[1]).toEqual(expected[1]);
    expect(host.proxy.counters(0).refusedTotal).toBe(0);
  });
});

describe('a process that dies', () => {
  // Each end of a connection under way was handed to whoever had asked for it, dead or alive.
  it.each([
    ['host', 2500],
    ['box', 2500],
    ['host', 7500],
    ['box', 7500],
  ] as const)('%s, %d ns into a connection of 10 µs: no session of the dead', (kind, atNs) => {
    const world = pool(10_000);
    const host = world.host('h');
    const box = world.box('b');
    world.clock.runUntil(atNs);
    if (kind === 'host') world.killHost('h');
    else world.killBox('b');
    world.clock.runUntil(100e6);
    expect(host.links.get('b')?.sessionId).toBe(0);
    expect(box.links.sessionId('h')).toBe(0);
  });
});
