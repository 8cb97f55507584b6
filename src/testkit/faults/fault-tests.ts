/**
 * Whole pools in virtual time, one for each seed, with connections cut, frames lost, duplicated and
 * reordered, and processes killed at any step: none of the invariants 2, 3, 6b, 6c, 7 and 8 of the
 * design is ever violated. `DXPU_SEED=n` runs the world of that seed alone, twice.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { Campaign } from './campaign.ts';

/** So many seeds a test: long enough to be quick, short enough to see how far it got. */
const BATCH = 100;
const BATCH_TIMEOUT_MS = 120_000;

export function testSeeds(first: number, last: number): void {
  const asked = process.env.DXPU_SEED;
  if (asked !== undefined) {
    const seed = Number(asked);
    it.runIf(first === 1)(`holds in the world of seed ${seed}`, () => {
      const campaign = new Campaign();
      campaign.run(seed, true);
      expect(campaign.failed.map(({ message }) => message)).toEqual([]);
    });
    return;
  }
  const campaign = new Campaign();
  describe(`fault worlds ${first} to ${last}`, () => {
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
      expect(seeds).toBe(last - first + 1);
      expect(repeated).toBe(Math.floor(last / 20) - Math.floor((first - 1) / 20));
      // On average at least one in two worlds, and far more of what happens all the time.
      for (const name of ['sessionsEnded', 'resumes', 'cuts', 'kills', 'stalls'] as const) {
        expect(counts[name], name).toBeGreaterThan(seeds / 2);
      }
      expect(counts.moves, 'moves').toBeGreaterThan(seeds / 10);
      expect(counts.spared, 'spared').toBeGreaterThan(seeds / 50);
      expect(counts.runs, 'runs').toBeGreaterThan(seeds);
      for (const name of ['attacks', 'forgeries', 'stale', 'sgemms', 'interrupts'] as const) {
        expect(counts[name], name).toBeGreaterThan(5 * seeds);
      }
    });
  });

  afterAll(() => {
    const { seeds, counts, virtualNs } = campaign;
    const virtualSeconds = Math.round(virtualNs / 1e9);
    console.log(`fault worlds: ${JSON.stringify({ seeds, virtualSeconds, counts })}`);
  });
}
