/**
 * An order of all nodes in which every edge's source comes before its target, as runs along lanes: a
 * thread goes on until a call waits for work that has not been, a stream until work waits for a call
 * or for other work. Lanes are the threads, then the streams.
 */
import type { Edges } from './edge-list.ts';
import { EDGE, firstEdge } from './edge-list.ts';
import type { Lanes } from './lanes.ts';
import { byLane, hasCall } from './lanes.ts';
import type { Timeline } from './timeline.ts';
import type { Waits } from './waits.ts';
import { firstWait } from './waits.ts';

/**
 * Run r takes `steps[r]` steps on lane `lane[r]`. A step of a stream is one row. A step of a thread
 * is a whole call, or for a call of `Waits` either half: its start, then its end.
 */
export interface Runs {
  readonly count: number;
  readonly lane: Uint32Array;
  readonly steps: Uint32Array;
}

export interface Scheduled {
  readonly runs: Runs;
  /** Edges left out since they closed a circle; the edges are flagged `dropped`. */
  readonly cut: number;
  readonly cutLaunches: ReadonlySet<number>;
}

export interface Unordered {
  readonly timeline: Timeline;
  readonly lanes: Lanes;
  readonly work: Edges;
  readonly waits: Waits;
  readonly handOvers: Edges;
}

/** What a lane stands still for: a point on another lane, and the edge that leads from there. */
interface Block {
  readonly lane: number;
  readonly cut: () => void;
}

export function schedule(graph: Unordered): Scheduled {
  return new Scheduler(graph).run();
}

class Scheduler {
  readonly #graph: Unordered;
  readonly #threads: number;
  /** Next row of each lane. */
  readonly #next: Uint32Array;
  readonly #end: Uint32Array;
  /** Whether the start of the next call of a thread has been, but not its end. */
  readonly #isInCall: Uint8Array;
  /** Next edge and next wait of each lane. */
  readonly #edge: Uint32Array;
  readonly #wait: Uint32Array;
  readonly #waiting: number[][];
  readonly #runLane: number[] = [];
  readonly #runSteps: number[] = [];
  readonly #cutLaunches = new Set<number>();
  #cut = 0;

  constructor(graph: Unordered) {
    this.#graph = graph;
    const { lanes, work, waits, handOvers } = graph;
    this.#threads = lanes.callFrom.length;
    this.#next = byLane(lanes.callFrom, lanes.workFrom);
    this.#end = byLane(lanes.callTo, lanes.workTo);
    this.#isInCall = new Uint8Array(this.#threads);
    this.#edge = this.#next.map((row, lane) =>
      firstEdge(lane < this.#threads ? handOvers : work, row),
    );
    this.#wait = lanes.callFrom.map((row) => firstWait(waits, row));
    this.#waiting = Array.from(this.#next, () => []);
  }

  run(): Scheduled {
    let ready = [...this.#next.keys()].filter((lane) => this.#hasMore(lane));
    let open = ready.length;
    while (open > 0) {
      if (ready.length === 0) ready = this.#cutCircle();
      const woken: number[] = [];
      for (const lane of ready) {
        this.#advance(lane, woken);
        if (!this.#hasMore(lane)) open -= 1;
      }
      ready = woken;
    }
    return {
      runs: {
        count: this.#runLane.length,
        lane: Uint32Array.from(this.#runLane),
        steps: Uint32Array.from(this.#runSteps),
      },
      cut: this.#cut,
      cutLaunches: this.#cutLaunches,
    };
  }

  #hasMore(lane: number): boolean {
    return (this.#next[lane] ?? 0) < (this.#end[lane] ?? 0);
  }

  /** As far as it goes; lanes that stood still for this one are added to `woken`. */
  #advance(lane: number, woken: number[]): void {
    let steps = 0;
    let block: Block | undefined;
    while (this.#hasMore(lane)) {
      block = this.#blocked(lane);
      if (block !== undefined) break;
      this.#step(lane);
      steps += 1;
    }
    if (steps > 0) {
      const last = this.#runLane.length - 1;
      if (this.#runLane[last] === lane) {
        this.#runSteps[last] = (this.#runSteps[last] ?? 0) + steps;
      } else {
        this.#runLane.push(lane);
        this.#runSteps.push(steps);
      }
      for (const waiting of this.#waiting[lane]?.splice(0) ?? []) woken.push(waiting);
    }
    if (block !== undefined) this.#waiting[block.lane]?.push(lane);
  }

  #step(lane: number): void {
    const row = this.#next[lane] ?? 0;
    const { waits, work, handOvers } = this.#graph;
    const isThread = lane < this.#threads;
    if (isThread && this.#isInCall[lane] === 1) {
      this.#isInCall[lane] = 0;
      this.#wait[lane] = (this.#wait[lane] ?? 0) + 1;
      this.#next[lane] = row + 1;
      return;
    }
    const edges = isThread ? handOvers : work;
    let edge = this.#edge[lane] ?? 0;
    while (edges.target[edge] === row) edge += 1;
    this.#edge[lane] = edge;
    if (isThread && waits.call[this.#wait[lane] ?? 0] === row) this.#isInCall[lane] = 1;
    else this.#next[lane] = row + 1;
  }

  #blocked(lane: number): Block | undefined {
    const row = this.#next[lane] ?? 0;
    const { waits, work, handOvers } = this.#graph;
    if (lane >= this.#threads) return this.#blockedWork(lane, row, work);
    if (this.#isInCall[lane] === 1) {
      const wait = this.#wait[lane] ?? 0;
      const to = waits.from[wait + 1] ?? 0;
      for (let edge = waits.from[wait] ?? 0; edge < to; edge += 1) {
        const block = this.#blockedByWork(waits.edges, edge);
        if (block !== undefined) return block;
      }
      return undefined;
    }
    for (let edge = this.#edge[lane] ?? 0; handOvers.target[edge] === row; edge += 1) {
      const source = handOvers.source[edge] ?? 0;
      const from = this.#graph.timeline.calls.thread[source] ?? 0;
      if (isDropped(handOvers, edge) || (this.#next[from] ?? 0) > source) continue;
      return { lane: from, cut: () => drop(handOvers, edge) };
    }
    return undefined;
  }

  #blockedWork(lane: number, row: number, work: Edges): Block | undefined {
    const { timeline, lanes } = this.#graph;
    const call = timeline.work.call[row] ?? -1;
    if (hasCall(timeline, lanes, call) && this.#needsLaunch(row, call)) {
      const thread = timeline.calls.thread[call] ?? 0;
      const next = this.#next[thread] ?? 0;
      const hasBegun = next > call || (next === call && this.#isInCall[thread] === 1);
      if (!hasBegun) return { lane: thread, cut: () => this.#cutLaunches.add(row) };
    }
    for (let edge = this.#edge[lane] ?? 0; work.target[edge] === row; edge += 1) {
      const block = this.#blockedByWork(work, edge);
      if (block !== undefined) return block;
    }
    return undefined;
  }

  #needsLaunch(row: number, call: number): boolean {
    const { work, calls } = this.#graph.timeline;
    const offsetNs = (work.startNs[row] ?? 0) - (calls.startNs[call] ?? 0);
    return offsetNs > 0 || (offsetNs === 0 && !this.#cutLaunches.has(row));
  }

  #blockedByWork(edges: Edges, edge: number): Block | undefined {
    const source = edges.source[edge] ?? 0;
    const lane = this.#threads + (this.#graph.timeline.work.stream[source] ?? 0);
    if (isDropped(edges, edge) || (this.#next[lane] ?? 0) > source) return undefined;
    return { lane, cut: () => drop(edges, edge) };
  }

  /**
   * Every lane stands still for another: of the nodes they are at, the earliest recorded are in a
   * circle of edges without length, or behind one. Cuts one such edge.
   */
  #cutCircle(): number[] {
    let earliest = -1;
    let earliestNs = Infinity;
    for (let lane = 0; lane < this.#next.length; lane += 1) {
      if (!this.#hasMore(lane)) continue;
      const atNs = this.#recordedNs(lane);
      if (atNs < earliestNs) {
        earliest = lane;
        earliestNs = atNs;
      }
    }
    const block = this.#blocked(earliest);
    if (block !== undefined) {
      block.cut();
      this.#cut += 1;
      const waiting = this.#waiting[block.lane] ?? [];
      const place = waiting.indexOf(earliest);
      if (place >= 0) waiting.splice(place, 1);
    }
    return [earliest];
  }

  #recordedNs(lane: number): number {
    const { calls, work } = this.#graph.timeline;
    const row = this.#next[lane] ?? 0;
    if (lane >= this.#threads) return work.startNs[row] ?? 0;
    const startNs = calls.startNs[row] ?? 0;
    return this.#isInCall[lane] === 1 ? startNs + (calls.durationNs[row] ?? 0) : startNs;
  }
}

function isDropped(edges: Edges, edge: number): boolean {
  return ((edges.flags[edge] ?? 0) & EDGE.dropped) !== 0;
}

function drop(edges: Edges, edge: number): void {
  edges.flags[edge] = (edges.flags[edge] ?? 0) | EDGE.dropped;
}
