/** Through what a host can reach, in the order of box ids. */
import type { BoxEntry, Lot } from './box-entry.ts';
import { type DemandView, endOfBox } from './demand-view.ts';
import type { HostEntry } from './host-entry.ts';

/**
 * Calls `visit` with each box that would do and has at least `free` free GPU nodes, of whatever sort,
 * and with the position of the best path to it.
 */
export function visitBoxes(
  view: DemandView,
  host: HostEntry,
  free: number,
  visit: (box: BoxEntry, path: number) => void,
): void {
  const { paths } = host;
  for (let first = 0, end = 0; first < paths.size; first = end) {
    end = endOfBox(paths, first);
    const box = paths.boxes[first];
    if (box === undefined || box.free < free || !box.reachable || !view.acceptsKind(box)) continue;
    const best = view.bestPath(paths, first, end);
    if (best >= 0 && view.withinRtt(paths.rttNs[best] ?? 0)) visit(box, best);
  }
}

/** The NVLink groups of a box, each as its lots. */
export function groupsOf(lots: readonly Lot[]): (readonly Lot[])[] {
  const groups: (readonly Lot[])[] = [];
  for (let first = 0, end = 0; first < lots.length; first = end) {
    const group = lots[first]?.group;
    while (end < lots.length && lots[end]?.group === group) end++;
    if (group !== '') groups.push(lots.slice(first, end));
  }
  return groups;
}

export function freeOf(lots: readonly Lot[]): number {
  let free = 0;
  for (const lot of lots) free += lot.free;
  return free;
}
