/** Many clusters, one after another, and what came of them. */
import { ClusterCounts, ClusterInvariant } from './cluster-oracle.ts';
import { type ClusterResult, ClusterWorld, type PlantedClusterFaults } from './cluster-world.ts';

export interface FailedSeed {
  readonly seed: number;
  readonly invariant: ClusterInvariant;
  /** What happened, when, and how to see it again. */
  readonly message: string;
}

/** Every so many seeds a cluster is run twice, to see that it comes out the same. */
export const REPEAT_EVERY = 50;

export class ClusterCampaign {
  readonly failed: FailedSeed[] = [];
  readonly counts = new ClusterCounts();
  seeds = 0;
  repeated = 0;
  virtualNs = 0;
  readonly #planted: PlantedClusterFaults;

  constructor(planted: PlantedClusterFaults = {}) {
    this.#planted = planted;
  }

  /** Runs the cluster of one seed; `repeat` runs it twice whatever its number. */
  run(seed: number, repeat = seed % REPEAT_EVERY === 0): void {
    const result = new ClusterWorld(seed, this.#planted).run();
    this.seeds++;
    this.virtualNs += result.virtualNs;
    this.counts.add(result.counts);
    if (result.violation !== undefined) {
      const { invariant, atNs, message } = result.violation;
      this.#fail(seed, invariant, `at ${(atNs / 1e9).toFixed(6)} s: ${message}`);
    } else if (repeat) {
      this.#repeat(result);
    }
  }

  #repeat({ seed, trace }: ClusterResult): void {
    this.repeated++;
    const again = new ClusterWorld(seed, this.#planted).run();
    if (again.trace === trace) return;
    const message = `the trace of the first run is ${trace}, of the second ${again.trace}`;
    this.#fail(seed, ClusterInvariant.REPEATABLE, message);
  }

  #fail(seed: number, invariant: ClusterInvariant, what: string): void {
    const message =
      `seed ${seed} violates invariant ${invariant}, ${what}\n` +
      `  again: DXPU_SEED=${seed} npx vitest run test/cluster\n` +
      `  event by event: npm run soak -- cluster --seeds ${seed} --events`;
    this.failed.push({ seed, invariant, message });
  }
}
