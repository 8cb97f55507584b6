import { expect, it } from 'vitest';
import { nanos } from '#base/units';
import { CorePool } from '#testkit/core-pool';
import type { ModelHostProxy } from '#testkit/core-pool-host';

function zones(): CorePool {
  const pool = new CorePool();
  for (const [id, zone] of [
    ['b1', 'east'],
    ['b2', 'west'],
    ['b3', 'east'],
  ] as const) {
    pool.addBox(id, 1).zone = zone;
  }
  for (const [id, reach] of [
    ['h1', ['east']],
    ['h2', []],
    ['h3', ['north', 'west']],
  ] as const) {
    pool.addHost(id, 1).reach = reach;
  }
  return pool;
}

const peersOf = (pool: CorePool, id: string): readonly string[] => pool.hosts.get(id)?.peers ?? [];

/** Orders that named peers. */
const listsSent = ({ orders }: ModelHostProxy): number =>
  orders.filter((order) => order.kind === 'host' && order.peers !== undefined).length;

it('a host keeps links to the boxes it reaches, and hears of new ones within a second', () => {
  const pool = zones();
  pool.boxes.get('b1')?.connect();
  pool.run();
  for (const host of pool.hosts.values()) host.connect();
  pool.run();
  expect(['h1', 'h2', 'h3'].map((id) => peersOf(pool, id))).toEqual([['b1'], ['b1'], []]);
  pool.boxes.get('b2')?.connect();
  pool.boxes.get('b3')?.connect();
  pool.run();
  pool.pass(1_000);
  pool.run();
  expect(['h1', 'h2', 'h3'].map((id) => peersOf(pool, id))).toEqual([
    ['b1', 'b3'],
    ['b1', 'b2', 'b3'],
    ['b2'],
  ]);
  // Nobody is sent a list that is the one he has.
  for (const host of pool.hosts.values()) expect(listsSent(host)).toBe(2);
});

it('a pool that comes up sends each host a few lists, not one for each box', () => {
  const pool = new CorePool();
  pool.addHost('h1', 1).connect();
  pool.run();
  for (let box = 0; box < 100; box++) {
    pool.addBox(`x${box}`, 1).connect();
    pool.run();
    pool.pass(10);
  }
  pool.pass(1_000);
  pool.run();
  expect(peersOf(pool, 'h1')).toHaveLength(100);
  // An empty one, one for the first box, and one a second in 2 s.
  expect(listsSent(pool.host)).toBeLessThanOrEqual(4);
});

it('a box whose agent is away keeps its links for a minute, and for as long as it is bound', () => {
  const pool = CorePool.ready();
  pool.pass(1_000);
  pool.run();
  pool.box.disconnect();
  pool.pass(59_000);
  expect(peersOf(pool, 'h1')).toEqual(['b1']);
  pool.pass(2_000);
  expect(peersOf(pool, 'h1')).toEqual([]);
  pool.box.connect();
  pool.run();
  pool.pass(1_000);
  pool.run();
  expect(peersOf(pool, 'h1')).toEqual(['b1']);
  pool.bound();
  pool.run();
  pool.box.disconnect();
  pool.pass(120_000);
  expect(peersOf(pool, 'h1')).toEqual(['b1']);
  // A manager that restarts tears nothing down either.
  pool.restart();
  pool.host.connect();
  pool.run();
  expect(peersOf(pool, 'h1')).toEqual(['b1']);
});

// A step of the links that was due stayed due until the turn ended: its timer went off a second time.
it('what is due is done in the tick, which is not asked for again', () => {
  const pool = CorePool.ready();
  pool.pass(1_000);
  pool.box.disconnect();
  pool.turn();
  pool.now = nanos(pool.core.nextDeadlineNs());
  pool.core.tick(pool.now);
  expect(pool.core.nextDeadlineNs()).toBeGreaterThan(pool.now);
  pool.turn();
  pool.run();
  expect(peersOf(pool, 'h1')).toEqual([]);
});
