import { expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { bar, windowOf } from '#testkit/small-pool';
import { barNeeds, compareSlots } from './bar-needs.ts';
import type { HostSlotFacts } from './facts.ts';
import { assignSlots } from './slot-assignment.ts';
import { type Shape, shapeOf, SlotMatching } from './slot-matching.ts';

function slot(number: number, highMib: number): HostSlotFacts {
  return {
    slot: number,
    free: true,
    nonPrefetchable: windowOf(0xe000_0000, 0, 1),
    prefetchable: windowOf(2 ** 38, 0, highMib),
  };
}

const needs = (mib: number) => barNeeds([bar(mib, 'high')]);

it('the smallest window that fits, so that large ones are left', () => {
  const slots = [slot(0, 32), slot(1, 8), slot(2, 16)].sort(compareSlots);
  expect(slots.map((one) => one.slot)).toEqual([1, 2, 0]);
  expect(assignSlots([shapeOf(needs(8), slots)])).toEqual([0]);
  const sixteen = shapeOf(needs(16), slots);
  expect(assignSlots([sixteen])).toEqual([1]);
  // Asked in the order small, large, small: the large one still gets what alone takes it.
  const small = shapeOf(needs(4), slots);
  const large = shapeOf(needs(32), slots);
  expect(assignSlots([small, large, small])).toEqual([0, 2, 1]);
  // The largest needs choose first.
  expect(assignSlots([small, shapeOf(needs(8), slots)])).toEqual([1, 0]);
});

it('equal windows are taken in the order of slots', () => {
  const slots = [slot(3, 8), slot(1, 8), slot(2, 8)].sort(compareSlots);
  const shape = shapeOf(needs(8), slots);
  expect(assignSlots([shape, shape]).map((at) => slots[at]?.slot)).toEqual([1, 2]);
});

it('windows that do not nest: earlier ones move to make room', () => {
  // a fits 0 and 1, b fits 0 alone, c fits 1 and 2: the one way is b 0, a 1, c 2.
  const shape = (fitting: number[], mib: number): Shape => ({ needs: needs(mib), fitting });
  const a = shape([0, 1], 8);
  const b = shape([0], 4);
  const c = shape([1, 2], 2);
  expect(assignSlots([a, b, c])).toEqual([1, 0, 2]);
});

it('finds room for as many as there can be, in whatever order they come', () => {
  const anyShapes = fc
    .array(fc.subarray([0, 1, 2, 3, 4]), { minLength: 1, maxLength: 3 })
    .chain((fittings) => {
      const shapes = fittings.map((fitting, at): Shape => ({ needs: needs(2 ** at), fitting }));
      return fc.array(fc.constantFrom(...shapes), { maxLength: 6 });
    });
  const most = (shapes: readonly Shape[], taken: readonly number[]): number => {
    const [first, ...others] = shapes;
    if (first === undefined) return 0;
    const free = first.fitting.filter((position) => !taken.includes(position));
    const with1 = free.map((position) => 1 + most(others, [...taken, position]));
    return Math.max(most(others, taken), ...with1);
  };
  fc.assert(
    fc.property(anyShapes, (shapes) => {
      const matching = new SlotMatching();
      const added = shapes.filter((shape) => matching.add(shape));
      expect(added.length).toBe(most(shapes, []));
      expect(matching.size).toBe(added.length);
      const positions = assignSlots(added);
      expect(new Set(positions).size).toBe(added.length);
      expect(positions.every((at, index) => added[index]?.fitting.includes(at))).toBe(true);
    }),
    { numRuns: 1000 },
  );
});
