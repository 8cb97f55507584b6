/** The invariants of a virtual cluster, and what is counted in one. */
import type { VirtualClock } from '#base/virtual-clock';
import type { Counts } from '../campaign/campaign.ts';
import { COMMON_INVARIANTS, Oracle } from '../campaign/oracle.ts';

/** By their numbers in the list of invariants of the design. */
export const ClusterInvariant = {
  SINGLE_OWNER: '1 single-owner',
  FENCED: '2 fenced',
  USABLE: '4 attached means usable',
  STORE_OWNS: '5 store owns, proxies observe',
  NOTHING_LOST: '6a nothing lost',
  ALL_OR_NOTHING: 'a request is one decision',
  PROGRESS: 'a goal or a stated failure',
  ...COMMON_INVARIANTS,
} as const;
export type ClusterInvariant = (typeof ClusterInvariant)[keyof typeof ClusterInvariant];

/** Under names as they come. */
export class ClusterCounts implements Counts<ClusterCounts> {
  readonly #counts = new Map<string, number>();

  up(name: string, by = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + by);
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  add(other: ClusterCounts): void {
    for (const [name, count] of other.#counts) this.up(name, count);
  }

  /** In the order of their names. */
  entries(): [string, number][] {
    return [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1));
  }
}

export class ClusterOracle extends Oracle<ClusterInvariant, ClusterCounts> {
  constructor(clock: VirtualClock) {
    super(clock, new ClusterCounts());
  }

  /** An event that is counted as `count`. */
  tell(text: string, count: string): void {
    this.event(text);
    this.counts.up(count);
  }
}
