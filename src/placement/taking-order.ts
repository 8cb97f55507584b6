/** In which order GPU nodes of one box are taken, so that NVLink groups stay whole. */
import type { Lot } from './box-entry.ts';
import { freeOf, visitGroups } from './box-scan.ts';
import type { DemandView } from './demand-view.ts';

export interface TakingOrder {
  readonly lots: readonly Lot[];
  /** How many free GPU nodes stay in groups of which some were taken, when `count` are. */
  readonly leftBehind: number;
}

/**
 * What is in no group comes first where that is enough; then a group that is used up exactly; then the
 * smallest group that has what is missing, or the largest one and so on.
 */
export function takingOrder(view: DemandView, lots: readonly Lot[], count: number): TakingOrder {
  const [only] = lots;
  if (lots.at(-1)?.group === '') return { lots, leftBehind: 0 };
  if (lots.length === 1 && only !== undefined) return { lots, leftBehind: only.free - count };
  const groups: { members: readonly Lot[]; usable: number; free: number }[] = [];
  visitGroups(lots, (first, end) => {
    const members = lots.slice(first, end);
    const usable = freeOf(members.filter((lot) => view.accepts(lot)));
    groups.push({ members, usable, free: freeOf(members) });
  });
  const order: Lot[] = [];
  let missing = count;
  let leftBehind = 0;
  const takeGroup = (at: number): void => {
    for (const group of groups.splice(at, 1)) {
      const taken = Math.min(missing, group.usable);
      order.push(...group.members);
      missing -= taken;
      if (taken > 0) leftBehind += group.free - taken;
    }
  };
  const loose = lots.filter((lot) => lot.group === '');
  const looseUsable = freeOf(loose.filter((lot) => view.accepts(lot)));
  if (looseUsable < missing) {
    const exact = groups.findIndex((one) => one.usable === missing && one.free === missing);
    if (exact >= 0) takeGroup(exact);
  }
  order.push(...loose);
  missing -= Math.min(missing, looseUsable);
  while (groups.length > 0) {
    let best = 0;
    for (const [at, group] of groups.entries()) {
      const other = groups[best];
      if (other === undefined) continue;
      const enough = group.usable >= missing;
      if (enough !== other.usable >= missing) {
        if (enough) best = at;
      } else if (enough ? group.free < other.free : group.usable > other.usable) {
        best = at;
      }
    }
    takeGroup(best);
  }
  return { lots: order, leftBehind };
}
