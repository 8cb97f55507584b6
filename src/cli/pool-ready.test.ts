import { expect, it } from 'vitest';
import { FakePool } from '#testkit/fake-pool';
import { hostHasPaths } from './pool-ready.ts';

// `dxpu vm up --detach && dxpu bind` was refused: every path of the host was down.
it('a host that was just started is waited for until it reaches all boxes that report', async () => {
  let looks = 0;
  const pool = new FakePool({
    getStatus: () => ({ boxesConnected: 2 }),
    listPaths: ({ host }) => {
      looks++;
      if (looks === 1) throw new Error('no such host yet');
      const b1 = { host, box: 'b1', up: true, roundTripNs: 5e5 };
      const b2 = { host, box: 'b2', up: true, roundTripNs: looks > 3 ? 6e5 : 0 };
      return { paths: looks > 2 ? [b1, b2] : [b1] };
    },
  });
  expect(await hostHasPaths(pool, 'vm1', 5000)).toBe(true);
  expect(looks).toBe(4);
});

it('a host that does not reach a box is not waited for any longer than that', async () => {
  const pool = new FakePool({ getStatus: () => ({ boxesConnected: 1 }), listPaths: () => ({}) });
  expect(await hostHasPaths(pool, 'vm1', 60)).toBe(false);
});
