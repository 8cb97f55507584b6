/**
 * `kill -9` of the real manager before and after each commit of a binding's life, the points taken from
 * the table of transitions.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FIRST_TRANSITION } from '#manager/domain/transitions';
import { buildDist } from '../e2e/processes.ts';
import { CrashPool } from './crash-pool.ts';

const pool = new CrashPool();
beforeAll(async () => {
  await buildDist();
  await pool.start();
}, 180_000);
afterAll(() => pool.end());

const around = (...rows: string[]): string[] =>
  rows.flatMap((row) => [`before ${row}`, `after ${row}`]);

it('bind: each step, before and after its commit', async () => {
  const began = performance.now();
  let binding = '';
  await pool.crashAt(
    around(FIRST_TRANSITION, 'reserved>programming', 'programming>attaching', 'attaching>attached'),
    async () => {
      binding = await pool.bind();
    },
  );
  await pool.reaches(binding, 'ATTACHED');
  console.log('bind', performance.now() - began);
  await pool.crashAt(
    around('attached>draining', 'draining>detaching', 'detaching>scrubbing', 'scrubbing>free'),
    () => pool.unbind(binding),
  );
  console.log('unbind', performance.now() - began);
  await pool.isGone(binding);
  await pool.isClean();
  console.log('clean', performance.now() - began);
}, 60_000);

it('all', () => {
  expect(pool.covered.size).toBe(16);
});
