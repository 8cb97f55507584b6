/**
 * `kill -9` of the real manager before and after each commit of a binding's life, the points taken from
 * the table of transitions: after each the binding comes to its goal or to a clean failure, no slot
 * leaks, and the computation on another binding notices nothing.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CrashPool } from './crash-pool.ts';
import { missedRows, SCENARIOS } from './crash-scenarios.ts';

const pool = new CrashPool();
beforeAll(() => pool.start(), 180_000);
afterAll(() => pool.end());

it('a scenario for each row of the table that real processes come to', () => {
  expect(missedRows()).toEqual([]);
});

it.each(SCENARIOS.map((one) => [one.name, one] as const))(
  '%s',
  async (_, { rows, run }) => {
    try {
      await run(pool);
      await pool.isClean();
    } catch (error) {
      // The others are cases of their own.
      await pool.reset();
      throw error;
    }
    for (const row of rows) {
      expect(pool.covered, 'points at which the manager has died').toContain(`before ${row}`);
      expect(pool.covered, 'points at which the manager has died').toContain(`after ${row}`);
    }
  },
  120_000,
);

it('says what was covered', () => {
  console.log([...pool.covered].join('\n'));
});
