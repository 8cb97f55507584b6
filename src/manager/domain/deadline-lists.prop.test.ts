import { expect, it } from 'vitest';
import { nanos } from '#base/units';
import { fc } from '#testkit/properties';
import { DeadlineLists, type Due } from './deadline-lists.ts';

interface Item extends Due {
  readonly name: number;
}

function newItem(name: number): Item {
  return {
    name,
    dueNs: Infinity,
    dueList: undefined,
    dueBefore: undefined,
    dueBehind: undefined,
  };
}

it('gives out what is due, once, like a list that is searched', () => {
  const act = fc.oneof(
    fc.record({ set: fc.nat({ max: 9 }), ms: fc.constantFrom(1, 5, 20) }),
    fc.record({ clear: fc.nat({ max: 9 }) }),
    fc.record({ passMs: fc.nat({ max: 8 }) }),
  );
  fc.assert(
    fc.property(fc.array(act, { maxLength: 80 }), (acts) => {
      const lists = new DeadlineLists<Item>();
      const items = Array.from({ length: 10 }, (_, name) => newItem(name));
      const model = new Map<number, number>();
      let nowNs = 0;
      for (const one of acts) {
        if ('set' in one) {
          lists.set(items[one.set] as Item, nanos(nowNs), one.ms);
          model.set(one.set, nowNs + one.ms * 1e6);
        } else if ('clear' in one) {
          lists.clear(items[one.clear] as Item);
          model.delete(one.clear);
        } else {
          nowNs += one.passMs * 1e6;
          const due = lists.takeDue(nanos(nowNs)).map(({ name }) => name);
          const expected = [...model].filter(([, dueNs]) => dueNs <= nowNs).map(([name]) => name);
          expect(new Set(due)).toEqual(new Set(expected));
          expect(due).toHaveLength(expected.length);
          for (const name of expected) model.delete(name);
        }
        expect(lists.nextNs()).toBe(Math.min(Infinity, ...model.values()));
      }
    }),
  );
});
