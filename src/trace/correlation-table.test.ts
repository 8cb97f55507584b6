import { describe, expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { CorrelationTable } from './correlation-table.ts';

describe('CorrelationTable', () => {
  it.each([
    ['close to each other', fc.integer({ min: 1000, max: 1400 })],
    ['far apart', fc.maxSafeNat()],
  ])('agrees with a map, ids %s', (_, id) => {
    fc.assert(
      fc.property(
        fc.uniqueArray(id, { minLength: 1, maxLength: 150 }),
        fc.array(id, { maxLength: 50 }),
        (ids, others) => {
          const table = new CorrelationTable(Math.min(...ids), Math.max(...ids), ids.length);
          const map = new Map<number, number>();
          for (const [index, one] of ids.entries()) {
            table.set(one, index);
            map.set(one, index);
          }
          table.set(ids[0]!, 77);
          map.set(ids[0]!, 77);
          for (const one of [...ids, ...others, 0]) expect(table.get(one)).toBe(map.get(one) ?? -1);
        },
      ),
    );
  });

  it('is empty without ids', () => {
    expect(new CorrelationTable(0, 0, 0).get(5)).toBe(-1);
  });
});
