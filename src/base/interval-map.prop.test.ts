import { expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { IntervalMap } from './interval-map.ts';

/** Small enough that a plain map from every address to its interval is the model. */
const SPACE = 64;

const operation = fc.oneof(
  fc.record({
    kind: fc.constant('insert' as const),
    base: fc.nat(SPACE - 1),
    length: fc.integer({ min: 1, max: 12 }),
    value: fc.nat(1000),
  }),
  fc.record({ kind: fc.constant('remove' as const), base: fc.nat(SPACE - 1) }),
);

it('agrees with a plain map of addresses after any inserts and removes', () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60, size: 'max' }), (operations) => {
      const map = new IntervalMap(1);
      const model = new Map<number, { base: number; limit: number; value: number }>();
      for (const step of operations) {
        if (step.kind === 'insert') {
          const limit = step.base + step.length - 1;
          let free = true;
          for (let address = step.base; address <= limit; address++) free &&= !model.has(address);
          expect(map.insert(step.base, limit, step.value)).toBe(free);
          if (free) {
            const interval = { base: step.base, limit, value: step.value };
            for (let address = step.base; address <= limit; address++) model.set(address, interval);
          }
        } else {
          const interval = model.get(step.base);
          const found = interval !== undefined && interval.base === step.base;
          expect(map.remove(step.base)).toBe(found ? interval.value : -1);
          if (found) {
            for (let a = interval.base; a <= interval.limit; a++) model.delete(a);
          }
        }
        // One comparison for all addresses: an assertion each would be most of the time.
        const found: unknown[] = [];
        const expected: unknown[] = [];
        for (let address = -1; address < SPACE + 13; address++) {
          const interval = model.get(address);
          const index = map.findIndex(address);
          found.push(map.find(address), index < 0 ? -1 : map.baseAt(index));
          found.push(index < 0 ? -1 : map.limitAt(index));
          expected.push(interval?.value ?? -1, interval?.base ?? -1, interval?.limit ?? -1);
        }
        expect(found).toEqual(expected);
        const last = step.base + 4;
        let shared = false;
        for (let address = step.base; address <= last; address++) shared ||= model.has(address);
        expect(map.overlaps(step.base, last)).toBe(shared);
        expect(map.size).toBe(new Set(model.values()).size);
      }
    }),
    { numRuns: 60 },
  );
});
