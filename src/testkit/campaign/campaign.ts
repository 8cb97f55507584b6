/** Many worlds of one kind, each from its seed, one after another, and what came of them. */
import { COMMON_INVARIANTS, type Oracle, type Violation, type WorldResult } from './oracle.ts';

export interface World<I extends string, C> {
  readonly oracle: Oracle<I, C>;
  run(): WorldResult<I, C>;
}

/** How often things happened: for the report, and to show that a campaign reaches what it is about. */
export interface Counts<C> {
  add(other: C): void;
  entries(): [string, number][];
}

/** `P` is what can be planted in a world of this kind, `I` its invariants, `C` what it counts. */
export interface WorldKind<P, I extends string, C extends Counts<C>> {
  /** That of its folder in `test/`, and of its soak run. */
  readonly name: string;
  /** What such worlds are called. */
  readonly worlds: string;
  readonly newWorld: (seed: number, planted?: P) => World<I, C>;
  readonly newCounts: () => C;
  /** Every so many seeds a world is run twice, to see that it comes out the same. */
  readonly repeatEvery: number;
}

export interface FailedSeed<I extends string> {
  readonly seed: number;
  readonly invariant: Violation<I>['invariant'];
  /** What happened, when, and how to see it again. */
  readonly message: string;
}

export class Campaign<P, I extends string, C extends Counts<C>> {
  readonly failed: FailedSeed<I>[] = [];
  readonly counts: C;
  seeds = 0;
  repeated = 0;
  virtualNs = 0;
  readonly #kind: WorldKind<P, I, C>;
  readonly #planted: P | undefined;

  constructor(kind: WorldKind<P, I, C>, planted?: P) {
    this.#kind = kind;
    this.#planted = planted;
    this.counts = kind.newCounts();
  }

  /** Runs the world of one seed; `repeat` runs it twice whatever its number. */
  run(seed: number, repeat = seed % this.#kind.repeatEvery === 0): void {
    const { violation, trace, counts, virtualNs } = this.#world(seed);
    this.seeds++;
    this.virtualNs += virtualNs;
    this.counts.add(counts);
    if (violation !== undefined) {
      this.#fail(seed, violation.invariant, violationText(violation));
    } else if (repeat) {
      this.#repeat(seed, trace);
    }
  }

  #world(seed: number): WorldResult<I, C> {
    return this.#kind.newWorld(seed, this.#planted).run();
  }

  #repeat(seed: number, trace: string): void {
    this.repeated++;
    const again = this.#world(seed);
    if (again.trace === trace) return;
    const invariant = COMMON_INVARIANTS.REPEATABLE;
    const what = `the trace of the first run is ${trace}, of the second ${again.trace}`;
    this.#fail(seed, invariant, `${invariant}, ${what}`);
  }

  #fail(seed: number, invariant: Violation<I>['invariant'], what: string): void {
    const { name } = this.#kind;
    const message =
      `seed ${seed} violates invariant ${what}\n` +
      `  again: DXPU_SEED=${seed} npx vitest run test/${name}\n` +
      `  event by event: npm run soak -- ${name} --seeds ${seed} --events`;
    this.failed.push({ seed, invariant, message });
  }
}

/** Which invariant, when, and how. */
export function violationText({ invariant, atNs, message }: Violation<string>): string {
  return `${invariant}, at ${(atNs / 1e9).toFixed(6)} s: ${message}`;
}
