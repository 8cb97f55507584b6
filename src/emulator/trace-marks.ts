/**
 * Where in the commands of a recorded workload something has to be told: an event that another stream
 * waits for, or a fence that a host thread waits for. Worked out before any command is made, as a
 * command may wait for an event whose signal is made later.
 */
import { appendTo } from '#base/append-to';
import type { DependencyGraph } from '#trace/dependency-graph';
import { EDGE } from '#trace/edge-list';
import { overhangNs } from '#trace/waits';

/** A point in a piece of work, ns after its recorded start. */
export interface Mark {
  readonly atNs: number;
  /** Value of the event of the work's stream that is signalled here; 0 for none. */
  event: number;
  /** Whether a fence is written here; its command's number comes with the commands. */
  isFence: boolean;
  command: number;
}

/** What work waits for before it starts: `mark` of a row on another stream. */
export interface Dependency {
  readonly row: number;
  readonly mark: Mark;
}

export interface Marks {
  /** By row of work, in order of time. */
  readonly ofRow: ReadonlyMap<number, readonly Mark[]>;
  /** By row of work: marks on other streams that it waits for. */
  readonly before: ReadonlyMap<number, readonly Dependency[]>;
  /** By call: what it waits for. */
  readonly waits: ReadonlyMap<number, readonly Dependency[]>;
}

export function marksOf(graph: DependencyGraph): Marks {
  const { timeline, work: edges, waits } = graph;
  const { stream, startNs, durationNs } = timeline.work;
  const ofRow = new Map<number, Mark[]>();
  const before = new Map<number, Dependency[]>();
  const waitsOf = new Map<number, Dependency[]>();

  const markAt = (row: number, atNs: number): Mark => {
    const found = ofRow.get(row)?.find((mark) => mark.atNs === atNs);
    if (found !== undefined) return found;
    const mark: Mark = { atNs, event: 0, isFence: false, command: 0 };
    appendTo(ofRow, row, mark);
    return mark;
  };

  for (let edge = 0; edge < edges.count; edge += 1) {
    const flags = edges.flags[edge] ?? 0;
    if ((flags & EDGE.dropped) !== 0) continue;
    const row = edges.source[edge] ?? 0;
    const target = edges.target[edge] ?? 0;
    // A queue has order enough for work of one stream.
    if (stream[row] === stream[target]) continue;
    const lastsNs = durationNs[row] ?? 0;
    const offsetNs = Math.max(0, (startNs[target] ?? 0) - (startNs[row] ?? 0));
    const atNs = (flags & EDGE.fromStart) === 0 ? lastsNs : Math.min(lastsNs, offsetNs);
    const mark = markAt(row, atNs);
    mark.event = 1;
    appendTo(before, target, { row, mark });
  }
  for (let wait = 0; wait < waits.count; wait += 1) {
    const call = waits.call[wait] ?? 0;
    const to = waits.from[wait + 1] ?? 0;
    for (let edge = waits.from[wait] ?? 0; edge < to; edge += 1) {
      if (((waits.edges.flags[edge] ?? 0) & EDGE.dropped) !== 0) continue;
      const row = waits.edges.source[edge] ?? 0;
      const atNs = (durationNs[row] ?? 0) - overhangNs(timeline, call, row);
      const mark = markAt(row, Math.max(0, atNs));
      mark.isFence = true;
      appendTo(waitsOf, call, { row, mark });
    }
  }
  numberEvents(graph, ofRow);
  return { ofRow, before, waits: waitsOf };
}

/** The signals of a stream raise its event by one each, in the order of its work. */
function numberEvents({ lanes }: DependencyGraph, ofRow: Map<number, Mark[]>): void {
  for (const marks of ofRow.values()) marks.sort((a, b) => a.atNs - b.atNs);
  for (let lane = 0; lane < lanes.workFrom.length; lane += 1) {
    let value = 0;
    const to = lanes.workTo[lane] ?? 0;
    for (let row = lanes.workFrom[lane] ?? 0; row < to; row += 1) {
      for (const mark of ofRow.get(row) ?? []) if (mark.event > 0) mark.event = ++value;
    }
  }
}
