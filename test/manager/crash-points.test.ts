/**
 * `kill -9` of the real manager before and after each commit of a binding's life, the points taken from
 * the table of transitions: after each the binding comes to its goal or to a clean failure, no slot
 * leaks, and the computation on another binding notices nothing.
 *
 * Two pools share the scenarios: each waits a good part of the time.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundlePrograms, type Programs } from './bundle.ts';
import { CrashPool } from './crash-pool.ts';
import { missedRows, SCENARIOS } from './crash-scenarios.ts';

const POOLS = 2;

let programs: Programs;
const pools: CrashPool[] = [];
const unused: CrashPool[] = [];
const waiting: ((pool: CrashPool) => void)[] = [];

/** A pool that nobody uses, for whoever has waited longest. */
async function take(): Promise<CrashPool> {
  return unused.pop() ?? new Promise((resolve) => waiting.push(resolve));
}

function give(pool: CrashPool): void {
  const next = waiting.shift();
  if (next === undefined) unused.push(pool);
  else next(pool);
}

beforeAll(async () => {
  programs = await bundlePrograms();
  for (let index = 0; index < POOLS; index++) pools.push(new CrashPool(programs));
  await Promise.all(pools.map((pool) => pool.start()));
  unused.push(...pools);
}, 180_000);
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.end()));
  programs.remove();
  const covered = pools.flatMap((pool) => [...pool.covered]);
  console.log(`the manager died at ${covered.length} points:\n${covered.toSorted().join('\n')}`);
}, 60_000);

it('a scenario for each row of the table', () => {
  expect(missedRows()).toEqual([]);
});

describe.concurrent('a manager that dies at', () => {
  it.each(SCENARIOS.map((one) => [one.name, one] as const))(
    '%s',
    async (_, { rows, run }) => {
      const pool = await take();
      try {
        await run(pool);
        await pool.isClean();
        for (const row of rows) {
          expect(pool.covered).toContain(`before ${row}`);
          expect(pool.covered).toContain(`after ${row}`);
        }
      } catch (error) {
        // The others are cases of their own.
        await pool.reset();
        throw error;
      } finally {
        give(pool);
      }
    },
    400_000,
  );
});
