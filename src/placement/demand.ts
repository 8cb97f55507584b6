/** What somebody asks of the pool, and the two answers there are. */

/** N GPU nodes for one host. A field that is `undefined` or false asks for nothing. */
export interface Demand {
  /** 1 to `MAX_GPUS`. */
  readonly gpus: number;
  readonly host: string;
  readonly model: string | undefined;
  /** At least this much of each. */
  readonly memoryBytes: number | undefined;
  /** All from one box. */
  readonly sameBox: boolean;
  /** All of one NVLink group of one box. */
  readonly nvlink: boolean;
  readonly boxKind: 'pcie' | 'nvswitch' | undefined;
  /** Of the path the plan takes to each of them. */
  readonly maxRttNs: number | undefined;
}

/** More than any host has slots for; a larger demand is refused as wrong, not as unmet. */
export const MAX_GPUS = 4096;

export interface Pick {
  readonly box: string;
  readonly slot: number;
  readonly uuid: string;
  readonly model: string;
  /** The host's virtual slot it goes behind. */
  readonly hostSlot: number;
  readonly path: string;
  /** 0 where the path was not measured. */
  readonly rttNs: number;
}

/**
 * A complete answer: as many picks as GPU nodes were asked for, no slot twice. It speaks of the view
 * it was made on; whoever commits it asks that view's owner first whether it still holds.
 */
export interface Plan {
  readonly ok: true;
  readonly demand: Demand;
  readonly picks: readonly Pick[];
}

/**
 * Why a candidate is left out, in the order in which they are looked at: a candidate counts under the
 * first that holds. The last group stands for the demand as a whole.
 */
export const REASONS = [
  'gone',
  'unreachable',
  'quarantined',
  'scrubbing',
  'bound',
  'model',
  'memory',
  'box-kind',
  'no-path',
  'path-down',
  'round-trip',
  'window',
  'fragmented',
] as const;
export type Reason = (typeof REASONS)[number];

/** Why no candidate was looked at, or why those that would do are not enough. */
export const DEMAND_REASONS = [
  'unknown-host',
  'host-unreachable',
  'no-free-slot',
  'too-few',
] as const;
export type DemandReason = (typeof DEMAND_REASONS)[number];

export interface ReasonCount {
  readonly reason: Reason | DemandReason;
  /** GPU nodes left out for it; for a `DemandReason` the number that is missing. */
  readonly count: number;
  /** For people: names what was asked and what there is. */
  readonly message: string;
}

export interface Refusal {
  readonly ok: false;
  readonly demand: Demand;
  /** One sentence with the way out. */
  readonly summary: string;
  /** Most frequent first. */
  readonly reasons: readonly ReasonCount[];
}

export interface Candidate {
  readonly box: string;
  readonly slot: number;
  readonly uuid: string;
  /** `undefined` when it would do by itself. */
  readonly reason: Reason | undefined;
  readonly message: string;
}
