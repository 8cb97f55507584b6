/** Many fault worlds, one after another, and what came of them. */
import { FaultWorld, type PlantedFaults, type WorldResult } from './fault-world.ts';
import { Invariant, WorldCounts } from './oracle.ts';

export interface FailedSeed {
  readonly seed: number;
  readonly invariant: Invariant;
  /** What happened, when, and how to see it again. */
  readonly message: string;
}

/** Every so many seeds a world is run twice, to see that it comes out the same. */
const REPEAT_EVERY = 20;

export class Campaign {
  readonly failed: FailedSeed[] = [];
  readonly counts = new WorldCounts();
  seeds = 0;
  repeated = 0;
  virtualNs = 0;
  readonly #planted: PlantedFaults;

  constructor(planted: PlantedFaults = {}) {
    this.#planted = planted;
  }

  /** Runs the world of one seed; `repeat` runs it twice whatever its number. */
  run(seed: number, repeat = seed % REPEAT_EVERY === 0): void {
    const result = new FaultWorld(seed, this.#planted).run();
    this.seeds++;
    this.virtualNs += result.virtualNs;
    for (const name of Object.keys(this.counts) as (keyof WorldCounts)[]) {
      this.counts[name] += result.counts[name];
    }
    if (result.violation !== undefined) {
      const { invariant, atNs, message } = result.violation;
      this.#fail(seed, invariant, `at ${(atNs / 1e9).toFixed(6)} s: ${message}`);
    } else if (repeat) {
      this.#repeat(result);
    }
  }

  #repeat({ seed, trace }: WorldResult): void {
    this.repeated++;
    const again = new FaultWorld(seed, this.#planted).run();
    if (again.trace === trace) return;
    const message = `the trace of the first run is ${trace}, of the second ${again.trace}`;
    this.#fail(seed, Invariant.REPEATABLE, message);
  }

  #fail(seed: number, invariant: Invariant, what: string): void {
    const message =
      `seed ${seed} violates invariant ${invariant}, ${what}\n` +
      `  again: DXPU_SEED=${seed} npx vitest run test/faults\n` +
      `  event by event: npm run soak -- faults --seeds ${seed} --events`;
    this.failed.push({ seed, invariant, message });
  }
}
