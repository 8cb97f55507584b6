/**
 * Virtual clusters, one for each seed: processes crash and restart at any step, connections are cut, slow
 * and half-open, proxies lie or come back emptied, stores are set back. None of the invariants 1, 2, 4, 5,
 * 6a and 8 of the design is ever violated, and everything asked for reaches its goal or a stated failure.
 * `DXPU_SEED=n` runs the cluster of that seed alone, twice.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { ClusterCampaign, REPEAT_EVERY } from './cluster-campaign.ts';

/** What is printed of what happened; `npm run soak -- cluster` prints all. */
const TOLD = [
  'bind done',
  'bind refused',
  'unbind done',
  'attaching>attached',
  'commits',
  'agents killed',
  'links cut',
  'sessions ended',
  'stores restored',
] as const;

/** So many seeds a test: long enough to be quick, short enough to see how far it got. */
const BATCH = 100;
const BATCH_TIMEOUT_MS = 120_000;

export function testClusters(first: number, last: number): void {
  const asked = process.env.DXPU_SEED;
  if (asked !== undefined) {
    const seed = Number(asked);
    it.runIf(first === 1)(`holds in the cluster of seed ${seed}`, () => {
      const campaign = new ClusterCampaign();
      campaign.run(seed, true);
      expect(campaign.failed.map(({ message }) => message)).toEqual([]);
    });
    return;
  }
  const campaign = new ClusterCampaign();
  describe(`virtual clusters ${first} to ${last}`, () => {
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
      expect(repeated).toBe(
        Math.floor(last / REPEAT_EVERY) - Math.floor((first - 1) / REPEAT_EVERY),
      );
      for (const name of ['bind done', 'unbind done', 'attaching>attached', 'scrubbing>free']) {
        expect(counts.of(name), name).toBeGreaterThan(seeds);
      }
      for (const name of ['agents killed', 'links cut', 'bind refused', 'retried calls']) {
        expect(counts.of(name), name).toBeGreaterThan(seeds / 2);
      }
      for (const name of ['disk full', 'stores restored', 'clock jumps', 'GPU node gone']) {
        expect(counts.of(name), name).toBeGreaterThan(seeds / 20);
      }
    });
  });

  afterAll(() => {
    const { seeds, counts, virtualNs } = campaign;
    const virtualSeconds = Math.round(virtualNs / 1e9);
    const told = Object.fromEntries(TOLD.map((name) => [name, counts.of(name)]));
    console.log(`virtual clusters: ${JSON.stringify({ seeds, virtualSeconds, ...told })}`);
  });
}
