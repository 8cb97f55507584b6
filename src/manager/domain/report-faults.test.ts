import { describe, expect, it } from 'vitest';
import type { BoxReport } from '#proto/agent-messages';
import { CorePool } from '#testkit/core-pool';
import type { ModelBoxProxy } from '#testkit/core-pool-box';
import { highestGeneration, reportFault } from './report-faults.ts';

const CONTEXT = {
  kind: 'box',
  isFirst: true,
  hasRaised: false,
  revision: 0,
  applied: 0,
  generation: 10,
} as const;
const WHOLE: BoxReport = { kind: 'box', applied: 0, whole: true, slots: [], refused: '' };

/** A box without a row whose process has had this generation. */
function connectAhead(pool: CorePool, box: ModelBoxProxy, highest: number): void {
  box.applied = 0;
  box.session = pool.open(box, box.hello);
  const slots = [...box.slots].map(([slot, one]) => ({ slot, ...one }));
  pool.report(box.session, { ...WHOLE, slots, highestGeneration: highest });
  pool.run();
}

describe('the highest generation of a proxy', () => {
  it('counts beside those of its rows', () => {
    expect(highestGeneration({ ...WHOLE, highestGeneration: 12 })).toBe(12);
    expect(highestGeneration(WHOLE)).toBe(0);
  });

  it('may be ahead of the store in the first report alone, and not by more than any copy is old', () => {
    const ahead = { ...WHOLE, highestGeneration: 11 };
    expect(reportFault(ahead, CONTEXT)).toBeUndefined();
    expect(reportFault(ahead, { ...CONTEXT, isFirst: false })).toContain('generation 11');
    expect(reportFault(ahead, { ...CONTEXT, hasRaised: true })).toContain('generation 11');
    const absurd = { ...WHOLE, highestGeneration: 11 + 2 ** 40 };
    expect(reportFault(absurd, CONTEXT)).toContain('was never given out');
    expect(reportFault({ ...WHOLE, highestGeneration: -1 }, CONTEXT)).toContain('generation -1');
  });

  // The fault: generations of bindings that had come and gone were given out again after a restore.
  it('lets a restored store go on behind it, with no row left to show it', () => {
    const pool = new CorePool();
    pool.addHost('h1', 2).connect();
    connectAhead(pool, pool.addBox('b1', 2), 41);
    const [id] = pool.bound();
    expect(pool.stored(id as string)?.generation).toBe(42);
    pool.run();
    expect(pool.state(id as string)).toBe('attached');
  });

  // The fault: a reserved binding of an older copy, whose life had come and gone, took its rows again.
  it('renumbers what is reserved under a generation no higher', () => {
    const pool = CorePool.ready();
    const [id] = pool.bound();
    pool.host.disconnect();
    pool.run();
    pool.restart();
    connectAhead(pool, pool.box, 1);
    expect(pool.stored(id as string)).toMatchObject({ state: 'reserved', generation: 2 });
  });

  // The fault: whoever watched the log went on with the generation that was given up.
  it('renumbers what was only reserved, and the log tells it', () => {
    const pool = CorePool.ready();
    const [id] = pool.bound();
    pool.host.disconnect();
    pool.run();
    pool.restart();
    connectAhead(pool, pool.box, 41);
    expect(pool.stored(id as string)).toMatchObject({ state: 'reserved', generation: 42 });
    const told = pool.log.filter(({ binding }) => binding?.id === id).at(-1);
    expect(told).toMatchObject({ action: 'renumbered', binding: { generation: 42 } });
  });
});
