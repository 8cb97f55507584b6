/** Through what a host can reach, in the order of box ids. */
import type { BoxEntry, Lot } from './box-entry.ts';
import type { DemandView } from './demand-view.ts';
import type { HostEntry } from './host-entry.ts';

/**
 * Calls `visit` with each box that would do and has at least `free` free GPU nodes, of whatever sort,
 * and with the position of the best path to it. What `visit` returns is the most that the boxes to
 * come may have free: others are passed over.
 */
export function visitBoxes(
  view: DemandView,
  host: HostEntry,
  free: number,
  visit: (box: BoxEntry, path: number) => number,
): void {
  const { paths } = host;
  const { boxNumbers, table } = paths;
  const { offered } = table;
  let most = Infinity;
  for (let first = 0, end = 0; first < boxNumbers.length; first = end) {
    end = paths.endOfBox(first);
    const number = boxNumbers[first] ?? 0;
    const there = offered[number] ?? 0;
    if (there < free || there > most) continue;
    const box = table.at(number);
    if (!view.acceptsKind(box)) continue;
    const best = view.bestPath(paths, first, end);
    if (best >= 0 && view.withinRtt(paths.rttNs[best] ?? 0)) most = visit(box, best);
  }
}

/** Calls `visit` with each NVLink group of the box, as the part of its lots from `first` to `end`. */
export function visitGroups(
  lots: readonly Lot[],
  visit: (first: number, end: number) => void,
): void {
  for (let first = 0, end = 0; first < lots.length; first = end) {
    const group = lots[first]?.group;
    while (end < lots.length && lots[end]?.group === group) end++;
    if (group !== '') visit(first, end);
  }
}

export function freeOf(lots: readonly Lot[], from = 0, end = lots.length): number {
  let free = 0;
  for (let at = from; at < end; at++) free += lots[at]?.free ?? 0;
  return free;
}
