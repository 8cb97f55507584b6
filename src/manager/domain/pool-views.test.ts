import { describe, expect, it } from 'vitest';
import { CorePool } from '#testkit/core-pool';

interface Paged {
  readonly items: readonly unknown[];
  readonly next: string | undefined;
}

/** All pages of a list. */
function all<P extends Paged>(list: (after: string) => P): P['items'][number][] {
  const items: P['items'][number][] = [];
  let after = '';
  for (;;) {
    const page = list(after);
    items.push(...page.items);
    if (page.next === undefined) return items;
    after = page.next;
  }
}

/** Twelve boxes of one GPU node, two hosts; bindings b1 to b11. */
function busy(): CorePool {
  const pool = new CorePool();
  for (let box = 1; box <= 12; box++) pool.addBox(`x${box}`, 1).connect();
  for (const id of ['h1', 'h2']) pool.addHost(id, 8).connect();
  pool.run();
  for (let count = 0; count < 11; count++) pool.bound({ host: count < 8 ? 'h1' : 'h2' });
  pool.run();
  return pool;
}

describe('lists', () => {
  it('are in the order of their keys, whatever the size of a page', () => {
    const pool = busy();
    const ids = Array.from({ length: 11 }, (_, index) => `b${index + 1}`);
    for (const limit of [1, 3, 11, 100]) {
      const bindings = all((after) => pool.core.bindings({}, after, limit));
      expect(bindings.map(({ record }) => record.id)).toEqual(ids);
      const boxes = all((after) => pool.core.boxes({}, after, limit));
      expect(boxes.map(({ record }) => record.id)).toEqual([
        'x1',
        'x10',
        'x11',
        'x12',
        'x2',
        'x3',
        'x4',
        'x5',
        'x6',
        'x7',
        'x8',
        'x9',
      ]);
      const gpus = all((after) => pool.core.gpus({}, after, limit));
      expect(gpus.map(({ record }) => record.box)).toEqual(boxes.map(({ record }) => record.id));
      const hosts = all((after) => pool.core.hosts({}, after, limit));
      expect(hosts.map(({ record }) => record.id)).toEqual(['h1', 'h2']);
      const paths = all((after) => pool.core.paths({}, after, limit));
      expect(paths.map(({ host, box }) => `${host} ${box}`)).toEqual(
        hosts.flatMap((host) => boxes.map((box) => `${host.record.id} ${box.record.id}`)),
      );
    }
  });

  it('say that there is more when there is, and never otherwise', () => {
    const pool = busy();
    expect(pool.core.bindings({}, '', 11).next).toBeUndefined();
    expect(pool.core.bindings({}, '', 10).next).toBe('b10');
    expect(pool.core.gpus({}, '', 12).next).toBeUndefined();
  });

  it('go on where they were, though what they stand at is gone and others have come', () => {
    const pool = busy();
    const first = pool.core.bindings({}, '', 4);
    expect(first.next).toBe('b4');
    pool.unbind(['b3', 'b4', 'b5']);
    pool.run();
    pool.bound({ host: 'h2' });
    const rest = all((after) =>
      pool.core.bindings({}, after === '' ? (first.next ?? '') : after, 4),
    );
    const ids = rest.map(({ record }) => record.id);
    expect(ids).toEqual(['b6', 'b7', 'b8', 'b9', 'b10', 'b11', 'b12']);
  });

  it('refuse to go on at what is no place in them', () => {
    const { core } = busy();
    for (const list of [
      () => core.bindings({}, 'x', 1),
      () => core.gpus({}, 'x1', 1),
      () => core.paths({}, 'h1/x1', 1),
    ]) {
      expect(list).toThrow(/is no place to go on in this list/);
    }
  });
});

describe('filters', () => {
  it('of bindings', () => {
    const pool = busy();
    const ids = (filter: Parameters<typeof pool.core.bindings>[0]): string[] =>
      all((after) => pool.core.bindings(filter, after, 2)).map(({ record }) => record.id);
    expect(ids({ host: 'h2' })).toEqual(['b9', 'b10', 'b11']);
    expect(ids({ host: 'nobody' })).toEqual([]);
    const { box } = pool.stored('b5') ?? { box: '' };
    expect(ids({ box })).toEqual(['b5']);
    expect(ids({ state: 'attached', host: 'h2' })).toEqual(['b9', 'b10', 'b11']);
    expect(ids({ state: 'failed' })).toEqual([]);
    expect(ids({ requestId: 'r9' })).toEqual(['b10']);
  });

  it('of GPU nodes', () => {
    const pool = busy();
    const found = (filter: Parameters<typeof pool.core.gpus>[0]): string[] =>
      all((after) => pool.core.gpus(filter, after, 1)).map(({ record }) => record.node.uuid);
    expect(found({ uuid: 'x7-gpu0' })).toEqual(['x7-gpu0']);
    expect(found({ uuid: 'none' })).toEqual([]);
    expect(found({ box: 'x12' })).toEqual(['x12-gpu0']);
    const free = found({ freeOnly: true });
    expect(free).toHaveLength(1);
    const { box } = pool.stored('b5') ?? { box: '' };
    pool.unbind(['b5']);
    pool.run();
    expect(found({ freeOnly: true }).sort()).toEqual([...free, `${box}-gpu0`].sort());
  });

  it('of boxes, hosts and paths', () => {
    const { core } = busy();
    expect(core.boxes({ id: 'x3' }, '', 9).items).toMatchObject([{ record: { id: 'x3' } }]);
    expect(core.boxes({ id: 'x3' }, 'x3', 9).items).toEqual([]);
    expect(core.hosts({ id: 'h2' }, '', 9).items).toMatchObject([{ record: { id: 'h2' } }]);
    const paths = all((after) => core.paths({ box: 'x3' }, after, 1));
    expect(paths.map(({ host, box }) => [host, box])).toEqual([
      ['h1', 'x3'],
      ['h2', 'x3'],
    ]);
    expect(all((after) => core.paths({ host: 'h2' }, after, 5))).toHaveLength(12);
  });
});

it('what is shown of a GPU node follows its life', () => {
  const pool = CorePool.ready();
  const shown = (): unknown => {
    const item = pool.core.gpus({ uuid: 'b1-gpu0' }, '', 1).items[0];
    return [item?.state, item?.binding, item?.reason];
  };
  expect(shown()).toEqual(['free', '', '']);
  pool.bound();
  pool.run();
  expect(shown()).toEqual(['bound', 'b1', '']);
  pool.box.scrubsForever = true;
  pool.unbind(['b1']);
  pool.run();
  expect(shown()).toEqual(['scrubbing', 'b1', 'being reset and scrubbed']);
  pool.box.scrubsForever = false;
  pool.box.scrubsInVain = true;
  pool.run();
  expect(shown()).toEqual(['quarantined', 'b1', 'memory could not be scrubbed']);
  pool.unbind(['b1']);
  pool.run();
  expect(shown()).toEqual(['quarantined', '', 'memory could not be scrubbed']);
  Object.assign(pool.box.slot(0), { state: 'unused' });
  pool.box.scrubsInVain = false;
  pool.run();
  expect(shown()).toEqual(['free', '', '']);
  pool.box.disconnect();
  expect(shown()).toEqual(['unreachable', '', 'the agent of box b1 is not connected']);
  pool.box.slot(0).node = undefined;
  pool.box.connect();
  expect(shown()).toEqual(['gone', '', 'it is not in its slot any more']);
});
