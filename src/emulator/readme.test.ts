import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createAccelerator } from '#devices/accel';
import type { HostRow } from '#fabric/mapping-table';
import { AccelDriver } from '#host/accel-driver';
import type { Outcome } from '#host/task';
import { VirtualPool } from './virtual-pool.ts';

const MIB = 2 ** 20;
const uuid = '00000000-0000-4000-8000-000000000001';
const port = {
  secondaryBus: 1,
  nonPrefetchableBase: 0xe000_0000,
  nonPrefetchableBytes: MIB,
  prefetchableBase: 2 ** 36,
  prefetchableBytes: 64 * MIB,
};
const row: HostRow = {
  virtualSlot: 0,
  used: true,
  secondaryBus: 1,
  nonPrefetchable: { base: 0xe000_0000, limit: 0xe00f_ffff },
  prefetchable: { base: 2 ** 36, limit: 2 ** 36 + 64 * MIB - 1 },
  box: 'b',
  slot: 0,
  path: 'p',
  generation: 1,
};

function linesOf(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .join('\n')
    .trim();
}

it('the example of README.md runs', () => {
  let result: Outcome<Float32Array> | undefined;
  // README example
  const pool = new VirtualPool(1);
  pool.startBox({ id: 'b', devices: new Map([[0, createAccelerator({ uuid })]]) });
  const host = pool.startHost({ id: 'h', soft: { ports: [port] } });
  pool
    .box('b')
    .setTable([{ slot: 0, valid: true, used: true, host: 'h', path: 'p', generation: 1 }]);
  host.setTable([row]);
  pool.link('h', 'b', [pool.addPath({ rttNs: 6800 })]);
  host.run(
    (function* () {
      const fn = yield* host.hotPlug.waitForFunction(0, 1e9);
      const driver = yield* AccelDriver.open(host.soft, fn);
      return yield* driver.saxpy(2, Float32Array.of(1, 2), Float32Array.of(10, 20)); // 12, 24
    })(),
    (_now, outcome) => (result = outcome),
  );
  pool.clock.runWhile(() => result === undefined, 10e9);
  // end
  expect(result).toEqual({ ok: true, value: Float32Array.of(12, 24) });

  const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
  const source = readFileSync(new URL('./readme.test.ts', import.meta.url), 'utf8');
  const shown = /```ts\n([\s\S]*?)\n```/.exec(readme)?.[1] ?? '';
  const run = /\/\/ README example\n([\s\S]*?)\n *\/\/ end/.exec(source)?.[1] ?? '';
  expect(shown).toContain('new VirtualPool(');
  expect(linesOf(shown)).toBe(linesOf(run));
});
