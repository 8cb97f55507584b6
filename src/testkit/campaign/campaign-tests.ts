/** Campaigns as tests. `DXPU_SEED=n` runs the world of that seed alone, twice. */
import { afterAll, describe, expect, it } from 'vitest';
import { Campaign, type Counts, type WorldKind } from './campaign.ts';
import { COMMON_INVARIANTS, type CommonInvariant } from './oracle.ts';

/** So many seeds a test: long enough to be quick, short enough to see how far it got. */
const BATCH = 100;
const BATCH_TIMEOUT_MS = 120_000;
const PLANTED_TIMEOUT_MS = 60_000;

export interface Reach<C> {
  /** Expects that so many worlds have come through what they are about. */
  readonly judge: (counts: C, seeds: number) => void;
  /** What is printed of the counts. */
  readonly told: (counts: C) => object;
}

/** No world of these seeds violates an invariant. */
export function testSeeds<P, I extends string, C extends Counts<C>>(
  kind: WorldKind<P, I, C>,
  first: number,
  last: number,
  { judge, told }: Reach<C>,
): void {
  const campaign = new Campaign(kind);
  const asked = process.env.DXPU_SEED;
  if (asked !== undefined) {
    const seed = Number(asked);
    it.runIf(first === 1)(`${kind.worlds} hold with seed ${seed}`, () => {
      campaign.run(seed, true);
      expect(campaign.failed.map(({ message }) => message)).toEqual([]);
    });
    return;
  }
  describe(`${kind.worlds} ${first} to ${last}`, () => {
    for (let from = first; from <= last; from += BATCH) {
      const to = Math.min(last, from + BATCH - 1);
      it(`hold from ${from} to ${to}`, { timeout: BATCH_TIMEOUT_MS }, () => {
        const failedBefore = campaign.failed.length;
        for (let seed = from; seed <= to; seed++) campaign.run(seed);
        const failed = campaign.failed.slice(failedBefore);
        expect(failed.map(({ message }) => message).join('\n')).toBe('');
      });
    }

    it('have come through what they are about', () => {
      const { counts, seeds, repeated } = campaign;
      const { repeatEvery } = kind;
      expect(seeds).toBe(last - first + 1);
      expect(repeated).toBe(Math.floor(last / repeatEvery) - Math.floor((first - 1) / repeatEvery));
      judge(counts, seeds);
    });
  });

  afterAll(() => {
    const { seeds, counts, virtualNs } = campaign;
    const virtualSeconds = Math.round(virtualNs / 1e9);
    console.log(`${kind.worlds}: ${JSON.stringify({ seeds, virtualSeconds, ...told(counts) })}`);
  });
}

/** What is planted, in words and as the worlds know it, and the invariant it breaks. */
export type Planted<P, I extends string> = readonly [string, P, I | CommonInvariant];

/** Each planted fault is noticed in one of the seeds 1 to `seeds`, and called by its invariant. */
export function testPlanted<P, I extends string, C extends Counts<C>>(
  kind: WorldKind<P, I, C>,
  seeds: number,
  all: readonly Planted<P, I>[],
): void {
  describe('a planted fault is found', () => {
    it.each(all)('when %s', { timeout: PLANTED_TIMEOUT_MS }, (_what, planted, invariant) => {
      const campaign = new Campaign(kind, planted);
      const isFound = (): boolean => campaign.failed.some((f) => f.invariant === invariant);
      for (let seed = 1; seed <= seeds && !isFound(); seed++) {
        campaign.run(seed, invariant === COMMON_INVARIANTS.REPEATABLE);
      }
      const found = campaign.failed.map((f) => f.invariant);
      expect(found, `in ${campaign.seeds} seeds`).toContain(invariant);
    });
  });
}
