/**
 * The host's side of an emulation, in virtual time: threads make the calls of a workload, doorbells are
 * rung, waits end when fences arrive in host memory.
 *
 * Who calls whom: a thread runs ahead of the clock as far as nothing decides but its own gaps and
 * durations; it stops at a fence or at another thread's call that has not been, and goes on from the
 * event that brings it. A doorbell is a timer, as its moment lies ahead. Batches of a queue go into it
 * in their order; one that is due early waits for those before it.
 *
 * Times are ns since the beginning of the run.
 */
import { appendTo } from '#base/append-to';
import { assertDefined } from '#base/assert';
import type { Nanos } from '#base/units';
import type { AccelQueues } from '#host/accel-queues';
import type { TaskRunner } from '#host/task';
import type { Batch, Workload, WorkloadCall } from './workload.ts';

interface Thread {
  readonly calls: readonly number[];
  next: number;
  /** End of the last call. */
  endNs: number;
  /** Start of the call that waits for fences. */
  startNs: number;
  /** Fences, or calls of other threads, that have yet to come. */
  missing: number;
  /** When the last of the fences came. */
  releasedNs: number;
}

interface Queue {
  readonly batches: readonly Batch[];
  /** Next batch to go into the queue, and which batches are due. */
  next: number;
  readonly isDue: Uint8Array;
}

export class HostProgram {
  /** By call. NaN until it has been. */
  readonly callStartNs: Float64Array;
  readonly callEndNs: Float64Array;
  readonly #workload: Workload;
  readonly #queues: AccelQueues;
  readonly #tasks: TaskRunner;
  readonly #arrivalNs: number;
  readonly #done: (now: Nanos) => void;
  readonly #threads: readonly Thread[];
  readonly #lanes: readonly Queue[];
  /** By call: batches it submits, as queue and index; threads that stand still for its end. */
  readonly #submits = new Map<number, { queue: number; batch: number }[]>();
  readonly #standing = new Map<number, Thread[]>();
  #originNs = 0;
  /** Threads that have calls left, and queues that have not fenced their last command. */
  #open = 0;

  /**
   * `arrivalNs`: what a fence takes natively from the device to the host; recorded waits have it in
   * their own part, from which it is taken out. `done` is called once all calls and commands have been.
   */
  constructor(
    workload: Workload,
    queues: AccelQueues,
    tasks: TaskRunner,
    arrivalNs: number,
    done: (now: Nanos) => void,
  ) {
    this.#workload = workload;
    this.#queues = queues;
    this.#tasks = tasks;
    this.#arrivalNs = arrivalNs;
    this.#done = done;
    this.callStartNs = new Float64Array(workload.calls.length).fill(Number.NaN);
    this.callEndNs = new Float64Array(workload.calls.length).fill(Number.NaN);
    this.#threads = workload.threads.map((calls) => ({
      calls,
      next: 0,
      endNs: 0,
      startNs: 0,
      missing: 0,
      releasedNs: 0,
    }));
    this.#lanes = workload.queues.map((batches) => ({
      batches,
      next: 0,
      isDue: new Uint8Array(batches.length),
    }));
    for (const [queue, batches] of workload.queues.entries()) {
      for (const [batch, { call }] of batches.entries()) {
        if (call >= 0) appendTo(this.#submits, call, { queue, batch });
      }
    }
  }

  start(now: Nanos): void {
    this.#originNs = now;
    this.#open = this.#threads.length + this.#lanes.length;
    if (this.#open === 0) this.#done(now);
    for (const [index, lane] of this.#lanes.entries()) {
      let commands = 0;
      for (const batch of lane.batches) commands += batch.commands.length;
      if (commands === 0) this.#closed(now);
      else this.#queues.whenDone(index, commands, (at) => this.#closed(at));
      this.#feed(now, index);
    }
    for (const thread of this.#threads) this.#run(now, thread);
  }

  /** Goes on until the thread ends or has to stand still. */
  #run(now: Nanos, thread: Thread): void {
    for (;;) {
      const index = thread.calls[thread.next];
      if (index === undefined) {
        this.#whenIs(now, thread.endNs, (at) => this.#closed(at));
        return;
      }
      const call = assertDefined(this.#workload.calls[index], 'no such call');
      const startNs = this.#startOf(thread, call);
      if (startNs === undefined) return;
      this.#begin(now, index, startNs);
      thread.startNs = startNs;
      thread.releasedNs = -Infinity;
      for (const { queue, command } of call.fences) {
        if (this.#queues.doneOf(queue) >= command) continue;
        thread.missing += 1;
        this.#queues.whenDone(queue, command, (at) => {
          thread.releasedNs = at - this.#originNs;
          thread.missing -= 1;
          if (thread.missing > 0) return;
          this.#end(at, thread, index, call);
          this.#run(at, thread);
        });
      }
      if (thread.missing > 0) return;
      this.#end(now, thread, index, call);
    }
  }

  /** When the next call begins; undefined while another thread's call before it has not ended. */
  #startOf(thread: Thread, call: WorkloadCall): number | undefined {
    let startNs = thread.endNs + call.gapNs;
    for (const { call: other, gapNs } of call.after) {
      const endNs = this.callEndNs[other] ?? 0;
      if (Number.isNaN(endNs)) {
        appendTo(this.#standing, other, thread);
        return undefined;
      }
      if (endNs + gapNs > startNs) startNs = endNs + gapNs;
    }
    return startNs;
  }

  #begin(now: Nanos, index: number, startNs: number): void {
    this.callStartNs[index] = startNs;
    for (const { queue, batch } of this.#submits.get(index) ?? []) {
      const { delayNs } = assertDefined(this.#lanes[queue]?.batches[batch], 'no such batch');
      this.#whenIs(now, startNs + delayNs, (at) => {
        const lane = assertDefined(this.#lanes[queue], 'no such queue');
        lane.isDue[batch] = 1;
        this.#feed(at, queue);
      });
    }
  }

  #end(now: Nanos, thread: Thread, index: number, call: WorkloadCall): void {
    const endNs = Math.max(
      thread.startNs + call.ownNs,
      thread.releasedNs + Math.max(0, call.ownNs - this.#arrivalNs),
    );
    this.callEndNs[index] = endNs;
    thread.endNs = endNs;
    thread.next += 1;
    const standing = this.#standing.get(index);
    if (standing === undefined) return;
    this.#standing.delete(index);
    for (const other of standing) this.#run(now, other);
  }

  /** Submits what is due and not held up by a batch before it. */
  #feed(now: Nanos, queue: number): void {
    const lane = assertDefined(this.#lanes[queue], 'no such queue');
    for (;;) {
      const batch = lane.batches[lane.next];
      if (batch === undefined || (batch.call >= 0 && lane.isDue[lane.next] !== 1)) return;
      lane.next += 1;
      this.#queues.submit(now, queue, batch.commands);
    }
  }

  #whenIs(now: Nanos, atNs: number, fn: (at: Nanos) => void): void {
    const dueNs = this.#originNs + atNs;
    if (dueNs <= now) fn(now);
    else this.#tasks.at(dueNs, fn);
  }

  #closed(now: Nanos): void {
    this.#open -= 1;
    if (this.#open === 0) this.#done(now);
  }
}
