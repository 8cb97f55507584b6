/**
 * What an engine drives: hardware in one of the two designs, with the policy that places requests
 * on it. The engines (`fill.ts`, `fewest.ts`, `timed.ts`) know nothing of servers, hosts or boxes.
 */
import type { Demand } from './demand.ts';

/**
 * Where a request went: `host` is the server (or host) whose CPU and memory it holds, `gpus` the
 * GPUs, numbered over the whole of the hardware, each with `demand.gpuMilli` of it taken.
 */
export interface Placement {
  readonly demand: Demand;
  readonly host: number;
  readonly gpus: readonly number[];
}

/**
 * Why a request found no place, the first that holds:
 * - `model`: it would have a place if any model would do;
 * - `no-cpu-beside-gpu`: the GPUs it needs are free together, but no CPU or memory beside them;
 * - `no-slot`: no virtual slot for them where CPU and memory are free (pool alone);
 * - `fragmentation`: what is free beside enough CPU and memory adds up, but is in pieces: parts of
 *   GPUs, GPUs of several machines or boxes, or of several racks;
 * - `no-gpu-beside-cpu`: what is free beside enough CPU and memory does not even add up.
 *
 * A request of no GPU that finds no CPU or memory is counted under `no-cpu-beside-gpu`.
 */
export const UNPLACED_REASONS = [
  'model',
  'no-cpu-beside-gpu',
  'no-slot',
  'fragmentation',
  'no-gpu-beside-cpu',
] as const;
export type UnplacedReason = (typeof UNPLACED_REASONS)[number];

/** A count of 0 for each reason. */
export function noneUnplaced(): Record<UnplacedReason, number> {
  return Object.fromEntries(UNPLACED_REASONS.map((reason) => [reason, 0])) as ReturnType<
    typeof noneUnplaced
  >;
}

/**
 * What can fail: a GPU node, a machine with CPU (a server, or a host of a pool), or a box of a pool.
 * GPUs are numbered as in placements; servers and boxes from 0.
 */
export interface Unit {
  readonly kind: 'gpu' | 'server' | 'box';
  readonly index: number;
}

/** How many there are of each kind; `gpus` names them, for their numbers have gaps. */
export interface Units {
  readonly gpus: readonly number[];
  readonly servers: number;
  readonly boxes: number;
}

export interface Design {
  readonly name: 'server' | 'pool';
  /** All GPUs, in thousandths; constant, failed ones included. */
  readonly capacityMilli: number;
  /** Takes what the placement names, or answers that there is no place: nothing is taken then. */
  place(demand: Demand): Placement | undefined;
  /** Gives back what `place` took. Each placement is released at most once. */
  release(placement: Placement): void;
  /** Takes exactly what a placement that was released has: it must still be free. */
  retake(placement: Placement): void;
  readonly units: Units;
  /** Out of service, and back. Failures of one part add up: it is back when all are over. */
  setFailed(unit: Unit, failed: boolean): void;
  /** Whether what failed stops a request that holds the placement. */
  hits(unit: Unit, placement: Placement): boolean;
  /**
   * Gives a placement spares for its GPUs that have failed, on the same host. `undefined`, and nothing
   * changed, if there are none or the design has no such thing.
   */
  rebind(placement: Placement): Placement | undefined;
  /** Why `place` just said no. Looks at everything: slow, and asked once per request refused. */
  whyNot(demand: Demand): UnplacedReason;
}
