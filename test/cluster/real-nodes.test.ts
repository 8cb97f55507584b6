/**
 * The daemons' own nodes, proxies, links and soft hosts in virtual time, under the manager's and the
 * agents' cores: crashes, cut streams and links, and programs that must find what they wrote, and nobody
 * else's. `DXPU_SEED=n` runs that seed alone, twice.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { violationText } from '#testkit/campaign/campaign';
import { ClusterCounts, ClusterInvariant } from '#testkit/cluster/cluster-oracle';
import { RealWorld } from '#testkit/cluster/real-world';

const SEEDS = 30;
const asked = process.env.DXPU_SEED;
const counts = new ClusterCounts();

describe('clusters of real nodes', () => {
  const seeds =
    asked === undefined ? Array.from({ length: SEEDS }, (_, index) => index + 1) : [Number(asked)];

  it.each(seeds)('hold with seed %d', { timeout: 60_000 }, async (seed) => {
    const result = await new RealWorld(seed).run();
    counts.add(result.counts);
    const { violation } = result;
    const again = `again: DXPU_SEED=${seed} npx vitest run test/cluster/real-nodes.test.ts`;
    expect(violation && `${violationText(violation)}\n  ${again}`).toBeUndefined();
    if (asked === undefined && seed % 10 !== 0) return;
    expect((await new RealWorld(seed).run()).trace).toBe(result.trace);
  });

  it.runIf(asked === undefined)('notice a slot that is given away too early', async () => {
    const found: (string | undefined)[] = [];
    for (let seed = 1; seed <= SEEDS && !found.includes(ClusterInvariant.FENCED); seed++) {
      const { violation } = await new RealWorld(seed, { noConfirmation: true }).run();
      found.push(violation?.invariant);
    }
    expect(found).toContain(ClusterInvariant.FENCED);
  });

  it.runIf(asked === undefined)('have come through what they are about', () => {
    for (const name of ['bind done', 'unbind done', 'attaching>attached', 'tenants looked']) {
      expect(counts.of(name), name).toBeGreaterThan(SEEDS);
    }
    for (const name of ['roads cut', 'agents killed', 'managers killed', 'streams cut']) {
      expect(counts.of(name), name).toBeGreaterThan(SEEDS / 2);
    }
  });
});

afterAll(() => {
  const names = ['bind done', 'unbind done', 'attaching>attached', 'tenants looked', 'roads cut'];
  const told = Object.fromEntries(names.map((name) => [name, counts.of(name)]));
  console.log(`clusters of real nodes: ${JSON.stringify(told)}`);
});
