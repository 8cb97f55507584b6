/** The example of README.md. */
import { expect, it } from 'vitest';
import { TimerDriver } from '#base/clock';
import { VirtualClock } from '#base/virtual-clock';
import { newAccelerator } from '#testkit/accelerator-host-rig';
import { FakeFabric } from '#testkit/fake-fabric';
import { AccelDriver } from './accel-driver.ts';
import { HotPlug } from './hot-plug.ts';
import { SoftHost } from './root-complex.ts';
import { runTask } from './run-task.ts';
import type { Task } from './task.ts';

it('multiplies two matrices on an accelerator', async () => {
  const clock = new VirtualClock();
  const host = new SoftHost({
    ports: [
      {
        secondaryBus: 1,
        nonPrefetchableBase: 0xe000_0000,
        nonPrefetchableBytes: 16 * 2 ** 20,
        prefetchableBase: 2 ** 38,
        prefetchableBytes: 4 * 2 ** 30,
      },
    ],
    onDeadline: () => driver.update(),
  });
  const driver = new TimerDriver(clock, host);
  const hotPlug = new HotPlug(host);
  const fabric = new FakeFabric(clock, host, host.ports);
  host.attach(fabric);
  // (1 2; 3 4) · (5 6; 7 8) = (19 22; 43 50)
  const [m, n, k] = [2, 2, 2];
  const a = Float32Array.of(1, 2, 3, 4);
  const b = Float32Array.of(5, 6, 7, 8);

  function* multiply(): Task<Float32Array> {
    const fn = yield* hotPlug.waitForFunction(0, 10e9);
    const accelerator = yield* AccelDriver.open(host, fn);
    const c = yield* accelerator.sgemm(m, n, k, a, b);
    yield* accelerator.close();
    return c;
  }

  const result = runTask(host, clock, multiply());
  fabric.plug(0, newAccelerator());
  clock.runUntil(1e9);
  expect([...(await result)]).toEqual([19, 22, 43, 50]);
  // And what goes wrong rejects.
  await expect(runTask(host, clock, hotPlug.waitForFunction(9, 1))).rejects.toMatchObject({
    code: 'not_found',
  });
});
