/**
 * Which work comes after which because a stream or a copy engine takes one piece after another, in
 * the order recorded. Where two overlap in the record, that order is contradicted: of it only the
 * order of the starts is kept.
 */
import { appendTo } from '#base/append-to';
import type { EdgeList } from './edge-list.ts';
import { EDGE } from './edge-list.ts';
import type { Lanes } from './lanes.ts';
import type { Timeline } from './timeline.ts';
import { WORK_KIND } from './timeline.ts';

/**
 * Adds what the order of each stream and engine needs beside "each piece after the one before it on
 * its stream", which every reader of the graph takes as given. Returns how often the record
 * contradicts the order.
 */
export function addWorkOrder(timeline: Timeline, lanes: Lanes, edges: EdgeList): number {
  let contradicted = 0;
  for (let stream = 0; stream < lanes.workFrom.length; stream += 1) {
    const from = lanes.workFrom[stream] ?? 0;
    const count = (lanes.workTo[stream] ?? 0) - from;
    if (count < 2) continue;
    contradicted += addOrder(timeline, count, (index) => from + index, edges);
  }
  for (const rows of engines(timeline, lanes)) {
    contradicted += addOrder(timeline, rows.length, (index) => rows[index] ?? 0, edges);
  }
  return contradicted;
}

/** `rowAt` gives rows by start. An edge between neighbours of one stream is implied and not added. */
function addOrder(
  timeline: Timeline,
  count: number,
  rowAt: (index: number) => number,
  edges: EdgeList,
): number {
  const { startNs, durationNs, stream } = timeline.work;
  const endNs = (row: number): number => (startNs[row] ?? 0) + (durationNs[row] ?? 0);
  const isImplied = (before: number, row: number): boolean =>
    before === row - 1 && stream[before] === stream[row];
  const open = new OpenWork(endNs);
  let contradicted = 0;
  let before = rowAt(0);
  for (let index = 1; index < count; index += 1) {
    const row = rowAt(index);
    const atNs = startNs[row] ?? 0;
    if (endNs(before) > atNs) {
      contradicted += 1;
      open.push(before);
      if (!isImplied(before, row)) edges.add(row, before, EDGE.fromStart);
    } else if (!isImplied(before, row)) {
      edges.add(row, before, 0);
    }
    // What overlapped others and has ended since precedes this one too.
    for (;;) {
      const ended = open.popEndedBy(atNs);
      if (ended === undefined) break;
      if (!isImplied(ended, row)) edges.add(row, ended, 0);
    }
    before = row;
  }
  return contradicted;
}

/** Copies by device and direction, where more than one stream has such. */
function engines(timeline: Timeline, lanes: Lanes): number[][] {
  const { work, streams } = timeline;
  const rowsOf = new Map<string, number[]>();
  for (let stream = 0; stream < lanes.workFrom.length; stream += 1) {
    const device = streams[stream]?.device ?? 0;
    const to = lanes.workTo[stream] ?? 0;
    for (let row = lanes.workFrom[stream] ?? 0; row < to; row += 1) {
      const kind = work.kind[row];
      if (kind !== WORK_KIND.htod && kind !== WORK_KIND.dtoh) continue;
      appendTo(rowsOf, `${device} ${kind}`, row);
    }
  }
  const several = [...rowsOf.values()].filter(
    (rows) => work.stream[rows[0] ?? 0] !== work.stream[rows[rows.length - 1] ?? 0],
  );
  for (const rows of several) {
    rows.sort((a, b) => (work.startNs[a] ?? 0) - (work.startNs[b] ?? 0) || a - b);
  }
  return several;
}

/** Work that has not ended, the earliest end on top: a binary heap. */
class OpenWork {
  readonly #endNs: (row: number) => number;
  readonly #heap: number[] = [];

  constructor(endNs: (row: number) => number) {
    this.#endNs = endNs;
  }

  push(row: number): void {
    const heap = this.#heap;
    let at = heap.push(row) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#endAt(parent) <= this.#endAt(at)) break;
      this.#swap(at, parent);
      at = parent;
    }
  }

  popEndedBy(atNs: number): number | undefined {
    const heap = this.#heap;
    const top = heap[0];
    if (top === undefined || this.#endNs(top) > atNs) return undefined;
    const last = heap.pop() ?? top;
    if (heap.length > 0) heap[0] = last;
    let at = 0;
    for (;;) {
      let least = at;
      for (let child = 2 * at + 1; child <= 2 * at + 2; child += 1) {
        if (child < heap.length && this.#endAt(child) < this.#endAt(least)) least = child;
      }
      if (least === at) return top;
      this.#swap(at, least);
      at = least;
    }
  }

  #endAt(index: number): number {
    return this.#endNs(this.#heap[index] ?? 0);
  }

  #swap(a: number, b: number): void {
    const row = this.#heap[a] ?? 0;
    this.#heap[a] = this.#heap[b] ?? 0;
    this.#heap[b] = row;
  }
}
