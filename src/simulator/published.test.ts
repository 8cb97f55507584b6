import { describe, expect, test } from 'vitest';
import {
  compareWithPublished,
  hasOpenb,
  NO_OPENB,
  openbNodes,
  openbWorkload,
  PUBLISHED_POLICIES,
  publishedRun,
} from '#testkit/openb';

// A slice of `npm run soak -- simulate`, which does all lists with ten seeds each.
describe.skipIf(!hasOpenb)(`published allocation (${NO_OPENB})`, () => {
  test.for([
    ...PUBLISHED_POLICIES.map((policy) => ['default', policy] as const),
    ['gpuspec10', 'fgd'] as const,
  ])('%s, %s: two seeds', ([list, policy]) => {
    const nodes = openbNodes();
    const workload = openbWorkload(list);
    const results = [42, 43].map((seed) => publishedRun(nodes, workload, policy, seed));
    const compared = compareWithPublished(list, policy, results);
    expect(compared.map(({ arrivedPct }) => arrivedPct)).toEqual([80, 90, 100, 110, 120, 130]);
    for (const { mean, publishedMean, bandPct, arrivedPct } of compared) {
      expect(Math.abs(mean - publishedMean), `at ${arrivedPct} % arrived`).toBeLessThan(bandPct);
    }
  });

  test('the hardware is the one the data description counts', () => {
    const nodes = openbNodes();
    const sum = (of: (node: (typeof nodes)[number]) => number): number =>
      nodes.reduce((total, node) => total + of(node), 0);
    expect(nodes).toHaveLength(1213);
    expect(sum(({ gpus }) => gpus)).toBe(6212);
    expect(sum(({ cpuMilli }) => cpuMilli)).toBe(107_018_000);
  });
});
