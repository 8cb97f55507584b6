/** Safety of plans and refusals, each under its name, against a model that tries everything. */
import { expect, it } from 'vitest';
import { hostOf, reasonByHand, solutions, violations } from '#testkit/placement-by-trial';
import { fc } from '#testkit/properties';
import { anyDemand, anyPool, indexOf, type SmallPool } from '#testkit/small-pool';
import { type Demand, REASONS, type Reason, type Refusal } from './demand.ts';
import { explain } from './explain.ts';
import { holds } from './holds.ts';
import { plan } from './plan.ts';

const RUNS = { numRuns: 500 };

function forAll(check: (pool: SmallPool, demand: Demand) => void): void {
  fc.assert(fc.property(anyPool, anyDemand, check), RUNS);
}

function isReason(reason: string): reason is Reason {
  return REASONS.some((one) => one === reason);
}

function countsOf(refusal: Refusal): Record<string, number> {
  return Object.fromEntries(refusal.reasons.map(({ reason, count }) => [reason, count]));
}

it('complete, no slot twice, every pick satisfies: a plan breaks nothing', () => {
  forAll((pool, demand) => {
    const answer = plan(indexOf(pool), demand);
    if (answer.ok) expect(violations(pool, answer)).toEqual([]);
  });
});

it('refused only when impossible', () => {
  forAll((pool, demand) => {
    expect(plan(indexOf(pool), demand).ok).toBe(solutions(pool, demand).length > 0);
  });
});

it('a plan holds on the view it was made on', () => {
  forAll((pool, demand) => {
    const index = indexOf(pool);
    const answer = plan(index, demand);
    if (answer.ok) expect(holds(index, answer)).toBe(true);
  });
});

it('as few boxes as can be', () => {
  forAll((pool, demand) => {
    // Where windows are in the way of some, fewer boxes are a wish and no promise.
    const roomy = {
      ...pool,
      nodes: pool.nodes.map((node) => ({ ...node, bars: [] })),
    };
    const answer = plan(indexOf(roomy), demand);
    if (!answer.ok) return;
    const boxes = (nodes: readonly { readonly box: string }[]): number =>
      new Set(nodes.map((node) => node.box)).size;
    const fewest = Math.min(...solutions(roomy, demand).map(boxes));
    expect(boxes(answer.picks)).toBe(fewest);
  });
});

it('best fit: no other box that would do alone has fewer free GPU nodes', () => {
  forAll((pool, demand) => {
    if (demand.nvlink) return;
    const answer = plan(indexOf(pool), demand);
    const chosen = answer.ok ? new Set(answer.picks.map((pick) => pick.box)) : new Set();
    if (chosen.size !== 1) return;
    const free = (box: string): number =>
      pool.nodes.filter((node) => node.box === box && node.state === 'free').length;
    const [box] = chosen as Set<string>;
    const alone = solutions(pool, { ...demand, sameBox: true }).map(([node]) => node?.box ?? '');
    expect(free(box ?? '')).toBe(Math.min(...alone.map(free)));
  });
});

it('counts add up: each GPU node is under one reason or would do', () => {
  forAll((pool, demand) => {
    const answer = plan(indexOf(pool), demand);
    if (answer.ok) return;
    const counts = countsOf(answer);
    const whole = ['unknown-host', 'host-unreachable', 'no-free-slot'].filter(
      (one) => one in counts,
    );
    if (whole.length > 0) {
      const host = hostOf(pool, demand);
      const free = host?.slots.filter((slot) => slot.free).length ?? 0;
      const missing = whole[0] === 'no-free-slot' ? demand.gpus - free : demand.gpus;
      expect(answer.reasons).toMatchObject([{ reason: whole[0], count: missing }]);
      return;
    }
    const expected: Record<string, number> = {};
    let usable = 0;
    for (const node of pool.nodes) {
      const reason = reasonByHand(pool, demand, node);
      if (reason === undefined) usable++;
      else expected[reason] = (expected[reason] ?? 0) + 1;
    }
    const oneBox = demand.sameBox || demand.nvlink;
    if (oneBox && usable > 0) expected['fragmented'] = usable;
    let together = usable;
    if (!oneBox) {
      // The most that can be had at once, by asking for ever fewer.
      while (together > 0 && solutions(pool, { ...demand, gpus: together }).length === 0)
        together--;
    }
    if (demand.gpus > together) expected['too-few'] = demand.gpus - together;
    expect(counts).toEqual(expected);
    const order = answer.reasons.map(({ count }) => count);
    expect(order).toEqual([...order].sort((a, b) => b - a));
  });
});

it('explanation and refusal say the same', () => {
  forAll((pool, demand) => {
    const index = indexOf(pool);
    const candidates = [...explain(index, demand)];
    expect(candidates.map(({ box, slot, uuid }) => ({ box, slot, uuid }))).toEqual(
      pool.nodes.map(({ box, slot, uuid }) => ({ box, slot, uuid })),
    );
    const answer = plan(index, demand);
    if (answer.ok) {
      const would = candidates.filter((one) => one.reason === undefined);
      const wouldDo = new Set(would.map(({ box, slot }) => `${box}/${slot}`));
      expect(answer.picks.every((pick) => wouldDo.has(`${pick.box}/${pick.slot}`))).toBe(true);
      return;
    }
    const counts = countsOf(answer);
    if ('unknown-host' in counts || 'host-unreachable' in counts || 'no-free-slot' in counts)
      return;
    const listed: Record<string, number> = {};
    for (const { reason } of candidates) {
      if (reason !== undefined) listed[reason] = (listed[reason] ?? 0) + 1;
    }
    const grouped = answer.reasons.filter((one) => isReason(one.reason));
    expect(listed).toEqual(Object.fromEntries(grouped.map(({ reason, count }) => [reason, count])));
  });
});

it('refusals are words: one sentence and a message each', () => {
  forAll((pool, demand) => {
    const answer = plan(indexOf(pool), demand);
    if (answer.ok) return;
    for (const text of [answer.summary, ...answer.reasons.map((one) => one.message)]) {
      expect(text).toMatch(/^.{12,400}$/);
      expect(text).not.toMatch(/undefined|NaN|Infinity|null|\[object/);
    }
    expect(answer.summary).toMatch(/: ./);
  });
});
