import type { CrashPool } from './crash-pool.ts';
import {
  attached,
  attachesAndGoes,
  attaching,
  draining,
  goes,
  programming,
  reserved,
  restartBox,
  type Scenario,
  scenario,
  takeNodes,
} from './crash-steps.ts';

/** Where it does not matter whether agents are back: they are there, or it is about one that is not. */
export const AT_ONCE_MS = 300;
/** Where those that live must be back before, on a machine that others have begun to use since. */
export const soonMs = (pool: CrashPool): number => Math.max(1500, 5 * pool.paceMs);

/** A box that is not there is seen before a host that is not. */
const waitFor = (pool: CrashPool, missing: 'b1' | 'h1'): number =>
  missing === 'b1' ? AT_ONCE_MS : soonMs(pool);

const startAgain = (pool: CrashPool, missing: 'b1' | 'h1'): Promise<void> =>
  missing === 'b1' ? pool.startBox('b1') : pool.startHost('h1');

const MISSING = [
  ['box', 'b1'],
  ['host', 'h1'],
] as const;

/** A deadline passes, again for each manager, as all begin anew with it. */
export const LATE: readonly Scenario[] = [
  scenario(
    [
      'programming>failed(box-unreachable)',
      'reserved>failed(box-unreachable)',
      'failed>failed(node-gone)',
    ],
    async (pool, points) => {
      const told = await programming(pool, 'b1');
      const binding = await reserved(pool, () => pool.kill('b1'));
      const timeouts = { reservedMs: AT_ONCE_MS, programmingMs: AT_ONCE_MS };
      await pool.expire(points.slice(0, -2), timeouts);
      await pool.crashAt(points.slice(-2), () => takeNodes(pool, binding));
      await attachesAndGoes(pool, told);
      await goes(pool, binding);
      await restartBox(pool);
    },
  ),
  scenario(
    ['programming>failed(host-unreachable)', 'reserved>failed(host-unreachable)'],
    async (pool, points) => {
      const told = await programming(pool, 'h1');
      const binding = await reserved(pool, () => pool.kill('h1'));
      const ms = soonMs(pool);
      await pool.expire(points, { reservedMs: ms, programmingMs: ms });
      await pool.startHost('h1');
      await attachesAndGoes(pool, told);
      await attachesAndGoes(pool, binding);
    },
  ),
  ...MISSING.map(([kind, id]) =>
    scenario([`attaching>failed(${kind}-unreachable)`], async (pool, points) => {
      const binding = await attaching(pool);
      await pool.kill(id);
      await pool.expire(points, { attachingMs: waitFor(pool, id) });
      if (id === 'b1') await pool.clearCut();
      await startAgain(pool, id);
      await attachesAndGoes(pool, binding);
    }),
  ),
  scenario(['detaching>failed(box-unreachable)'], async (pool, points) => {
    const binding = await attached(pool);
    pool.signal('b1', 'SIGSTOP');
    // Without asking the function, which does not answer.
    await pool.user.unbind([binding], true);
    await pool.user.reaches(binding, 'DETACHING');
    await pool.kill('b1');
    await pool.expire(points, { detachingMs: AT_ONCE_MS });
    await pool.startBox('b1');
    await pool.user.isGone(binding);
  }),
  scenario(['detaching>failed(host-unreachable)'], async (pool, points) => {
    const binding = await attached(pool);
    const unbind = () => pool.user.unbind([binding]);
    await pool.crashAt(['after draining>detaching'], unbind, () => pool.kill('h1'));
    await pool.expire(points, { detachingMs: soonMs(pool) });
    await pool.startHost('h1');
    await pool.user.isGone(binding);
  }),
  // A box that is stopped does not connect to another manager: each point is a case of its own.
  scenario(['programming>failed(programming-timeout)'], async (pool, points) => {
    for (const point of points) {
      await pool.restart({ programmingMs: AT_ONCE_MS });
      await pool.isReady();
      let binding = '';
      const provoke = async (): Promise<void> => {
        pool.signal('b1', 'SIGSTOP');
        binding = await pool.user.bind();
      };
      await pool.crashAt([point], provoke);
      pool.signal('b1', 'SIGCONT');
      await attachesAndGoes(pool, binding);
    }
  }),
  scenario(['detaching>failed(detaching-timeout)'], async (pool, points) => {
    for (const point of points) {
      await pool.restart({ detachingMs: AT_ONCE_MS });
      const binding = await attached(pool);
      const provoke = async (): Promise<void> => {
        pool.signal('b1', 'SIGSTOP');
        await pool.user.unbind([binding], true);
      };
      await pool.crashAt([point], provoke);
      pool.signal('b1', 'SIGCONT');
      await pool.user.isGone(binding);
    }
  }),
  scenario(['attaching>failed(attaching-timeout)'], async (pool, points) => {
    const binding = await attaching(pool);
    await pool.expire(points, { attachingMs: soonMs(pool) });
    await pool.clearCut();
    await attachesAndGoes(pool, binding);
  }),
  scenario(
    ['draining>failed(drain-timeout)', 'failed>draining', 'failed>detaching'],
    async (pool, points) => {
      const timeouts = { drainingMs: AT_ONCE_MS };
      const { binding, job } = await draining(pool);
      await pool.expire(points.slice(0, 2), timeouts);
      await pool.crashAt(points.slice(2, 4), () => pool.user.unbind([binding]));
      await pool.restart(timeouts);
      await pool.user.reaches(binding, 'FAILED');
      await pool.crashAt(points.slice(4), () => pool.user.unbind([binding], true));
      await pool.user.isGone(binding);
      await job.stop();
    },
  ),
];
