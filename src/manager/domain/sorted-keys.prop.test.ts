import { expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { compareNumbers, SortedKeys } from './sorted-keys.ts';

it('is a sorted set, at any size', () => {
  const key = fc.nat({ max: 3000 });
  const change = fc.record({ adds: fc.boolean(), keys: fc.array(key, { maxLength: 700 }) });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 8 }), key, (changes, from) => {
      const keys = new SortedKeys<number>(compareNumbers);
      const model = new Set<number>();
      for (const { adds, keys: some } of changes) {
        for (const one of some) {
          if (adds) {
            keys.add(one);
            model.add(one);
          } else {
            keys.delete(one);
            model.delete(one);
          }
        }
      }
      const sorted = [...model].sort(compareNumbers);
      expect(keys.size).toBe(model.size);
      expect([...keys.above(undefined)]).toEqual(sorted);
      expect([...keys.above(from)]).toEqual(sorted.filter((one) => one > from));
    }),
  );
});
