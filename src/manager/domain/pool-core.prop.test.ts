/**
 * The invariants of the design, over any order of commands, restarts, deaths of the manager at any point
 * of a turn, lost streams, trouble with devices and proxies that lie; and each check left out in turn, to
 * see that it is missed.
 */
import { describe, expect, it } from 'vitest';
import { demandOf } from '#testkit/core-pool';
import { type Act, acts, healAll, newJudgedPool } from '#testkit/core-pool-acts';
import { InvariantBroken, type JudgedInvariant, type JudgedPool } from '#testkit/core-pool-judge';
import { fc } from '#testkit/properties';
import type { PoolFaults } from './pool-options.ts';
import { FAILURE_REASONS } from './records.ts';

function live(faults: PoolFaults, life: readonly Act[]): JudgedPool {
  const pool = newJudgedPool(faults);
  for (const act of life) {
    act.run(pool);
    pool.judgeRows();
  }
  pool.turn();
  pool.judgeRows();
  return pool;
}

describe('whatever happens, in whatever order', () => {
  // The judge sees to all of them in each run; a run that breaks another says so by its name.
  it.each([
    'single-owner (1)',
    'fenced (2)',
    'attached-means-usable (4)',
    'store-owns (5)',
    'nothing-lost (6a)',
  ])('%s', () => {
    fc.assert(
      fc.property(acts, (life) => {
        live({}, life);
      }),
      { numRuns: 120 },
    );
  });
});

it('all comes to its goal or to a stated failure once nothing is wrong, and no slot is lost', () => {
  fc.assert(
    fc.property(acts, (life) => {
      const pool = live({}, life);
      healAll(pool);
      pool.pass(400_000);
      for (const { record, willRetry } of pool.core.bindings({}, '', 10).items) {
        const { state, failure, goal, id } = record;
        if (state === 'attached' && goal === 'attached') continue;
        // A liar's GPU node that never was there: a retry that was asked for waits for it.
        const isWaiting = willRetry && failure?.reason !== 'node-gone';
        expect(`${id} ${state} ${isWaiting}`).toBe(`${id} failed false`);
        const { retries } = FAILURE_REASONS[failure?.reason ?? 'link-down'];
        expect(retries && record.retries && goal === 'attached').toBe(false);
      }
      const ids = pool.core.bindings({}, '', 10).items.map(({ record }) => record.id);
      if (ids.length > 0)
        pool.submit({ kind: 'unbind', requestId: 'all', bindings: ids, force: true });
      pool.run();
      pool.pass(400_000);
      pool.judgeRows();
      expect(pool.core.status()).toMatchObject({ bindings: 0, gpus: 4, gpusFree: 4 });
      for (const of of ['h1', 'h2']) {
        pool.submit({
          kind: 'bind',
          requestId: `${of}-end`,
          retries: true,
          demand: demandOf({ gpus: 2, host: of }),
        });
      }
      pool.run();
      expect(pool.core.status()).toMatchObject({ bindingsAttached: 4 });
    }),
    { numRuns: 200 },
  );
});

describe('a check that is left out is missed', () => {
  const cases: readonly (readonly [keyof PoolFaults, readonly JudgedInvariant[]])[] = [
    ['noConfirmation', ['fenced']],
    ['skipsScrub', ['fenced']],
    ['reusesGeneration', ['fenced']],
    ['actsOnReports', ['store-owns', 'single-owner']],
    ['answersBeforeCommit', ['nothing-lost']],
    ['forgetsRequests', ['nothing-lost']],
    ['attachedEarly', ['attached-means-usable']],
  ];

  it.each(cases)('%s', (fault, invariants) => {
    const found = fc.check(
      fc.property(acts, (life) => {
        live({ [fault]: true }, life);
      }),
      { numRuns: 2_000, endOnFailure: true, seed: 1 },
    );
    expect(found.failed, 'no run has missed it').toBe(true);
    const error = found.errorInstance;
    if (!(error instanceof InvariantBroken)) throw error;
    expect(invariants).toContain(error.invariant);
  });
});
