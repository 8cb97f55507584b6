/** Which virtual slot each chosen GPU node goes behind. */
import { assert } from '#base/assert';
import { compareNeeds } from './bar-needs.ts';
import { type Shape, SlotMatching } from './slot-matching.ts';

/**
 * For each shape the position of its slot, all different. The largest needs choose first, each the
 * smallest windows that take them (positions ascend by size), so that large windows are left; where
 * that leads nowhere, slots are exchanged. The shapes must fit together.
 */
export function assignSlots(shapes: readonly Shape[]): number[] {
  const matching = new SlotMatching();
  for (const shape of [...shapes].sort((a, b) => compareNeeds(a.needs, b.needs))) {
    const added = matching.add(shape);
    assert(added, 'GPU nodes were chosen for which there are no slots');
  }
  const positions = new Map<Shape, number[]>();
  for (const shape of shapes) {
    if (positions.has(shape)) continue;
    positions.set(
      shape,
      shape.fitting.filter((position) => matching.shapeAt(position) === shape).reverse(),
    );
  }
  return shapes.map((shape) => {
    const position = positions.get(shape)?.pop();
    assert(position !== undefined, 'a chosen GPU node has no slot');
    return position;
  });
}
