import type { CrashPool } from './crash-pool.ts';
import {
  attached,
  attachesAndGoes,
  BOUND,
  CUT_MS,
  goes,
  longerMs,
  restartBox,
  type Scenario,
  scenario,
  takeNode,
  use,
} from './crash-steps.ts';

/** For agents that are there and say nothing: well below what a manager waits for their pings. */
const SILENT_MS = 400;
/** Short enough to wait for, long enough for agents to be back. */
const shortMs = (pool: CrashPool): number => Math.max(300, 3 * pool.paceMs);

/** A deadline passes, again for each manager, as all begin anew with it. */
export const LATE: readonly Scenario[] = [
  scenario(
    ['reserved>failed(box-unreachable)', 'failed>failed(node-gone)'],
    async (pool, points) => {
      let binding = '';
      const bind = async (): Promise<void> => {
        binding = await pool.bind();
      };
      await pool.crashAt([BOUND, ...points.slice(0, 2)], bind, {
        timeouts: { reservedMs: shortMs(pool) },
        whileDown: () => pool.kill('b1'),
      });
      await pool.reaches(binding, 'FAILED');
      await pool.crashAt(points.slice(2), () => takeNode(pool, binding));
      await goes(pool, binding);
      await restartBox(pool);
    },
  ),
  scenario(['reserved>failed(host-unreachable)'], async (pool, points) => {
    let binding = '';
    const bind = async (): Promise<void> => {
      binding = await pool.bind();
    };
    await pool.crashAt([BOUND, ...points], bind, {
      timeouts: { reservedMs: shortMs(pool) },
      whileDown: () => pool.kill('h1'),
    });
    await pool.startHost('h1');
    await attachesAndGoes(pool, binding);
  }),
  ...(['box', 'host'] as const).map((kind) =>
    scenario([`programming>failed(${kind}-unreachable)`], async (pool, points) => {
      const id = kind === 'box' ? 'b1' : 'h1';
      const timeouts = { programmingMs: longerMs(pool) };
      await pool.restart(timeouts);
      await pool.isReady();
      let binding = '';
      const provoke = async (): Promise<void> => {
        pool.signal(id, 'SIGSTOP');
        binding = await pool.bind();
        await pool.leaves(binding, 'RESERVED');
        await pool.kill(id);
      };
      await pool.crashAt(points, provoke, { timeouts });
      await pool.restart();
      await (kind === 'box' ? pool.startBox('b1') : pool.startHost('h1'));
      await attachesAndGoes(pool, binding);
    }),
  ),
  scenario(['programming>failed(programming-timeout)'], async (pool, points) => {
    // A box that is stopped does not connect to another manager: each point is a case of its own.
    for (const point of points) {
      await pool.restart({ programmingMs: SILENT_MS });
      await pool.isReady();
      let binding = '';
      const provoke = async (): Promise<void> => {
        pool.signal('b1', 'SIGSTOP');
        binding = await pool.bind();
      };
      await pool.crashAt([point], provoke);
      pool.signal('b1', 'SIGCONT');
      await attachesAndGoes(pool, binding);
    }
  }),
  scenario(['attaching>failed(attaching-timeout)'], async (pool, points) => {
    let binding = '';
    const bind = async (): Promise<void> => {
      binding = await pool.bind();
    };
    await pool.crashAt([BOUND, ...points], bind, {
      timeouts: { attachingMs: shortMs(pool) },
      whileDown: () => pool.cut(CUT_MS),
    });
    await pool.restart();
    await pool.clearCut();
    await attachesAndGoes(pool, binding);
  }),
  ...(['box', 'host'] as const).map((kind) =>
    scenario([`attaching>failed(${kind}-unreachable)`], async (pool, points) => {
      const id = kind === 'box' ? 'b1' : 'h1';
      let binding = '';
      const provoke = async (): Promise<void> => {
        binding = await pool.bind();
        await pool.reaches(binding, 'ATTACHING');
        await pool.kill(id);
      };
      await pool.crashAt([BOUND, ...points], provoke, {
        timeouts: { attachingMs: longerMs(pool) },
        whileDown: () => pool.cut(CUT_MS),
      });
      await pool.restart();
      await (kind === 'box' ? pool.startBox('b1') : pool.startHost('h1'));
      if (kind === 'box') await pool.clearCut();
      await attachesAndGoes(pool, binding);
    }),
  ),
  scenario(
    ['draining>failed(drain-timeout)', 'failed>draining', 'failed>detaching'],
    async (pool, points) => {
      const timeouts = { drainingMs: shortMs(pool) };
      await pool.restart(timeouts);
      const binding = await attached(pool);
      const job = await use(pool, binding);
      await pool.crashAt(points.slice(0, 2), () => pool.unbind(binding), { timeouts });
      await pool.reaches(binding, 'FAILED');
      await pool.crashAt(points.slice(2, 4), () => pool.unbind(binding), { timeouts });
      await pool.reaches(binding, 'FAILED');
      await pool.crashAt(points.slice(4), () => pool.unbind(binding, true));
      await pool.isGone(binding);
      await job.stop();
    },
  ),
  scenario(['detaching>failed(detaching-timeout)'], async (pool, points) => {
    for (const point of points) {
      await pool.restart({ detachingMs: SILENT_MS });
      const binding = await attached(pool);
      const provoke = async (): Promise<void> => {
        pool.signal('b1', 'SIGSTOP');
        // Without asking the function, which does not answer.
        await pool.unbind(binding, true);
      };
      await pool.crashAt([point], provoke);
      pool.signal('b1', 'SIGCONT');
      await pool.isGone(binding);
    }
  }),
  scenario(['detaching>failed(box-unreachable)'], async (pool, points) => {
    const timeouts = { detachingMs: longerMs(pool) };
    await pool.restart(timeouts);
    const binding = await attached(pool);
    const provoke = async (): Promise<void> => {
      pool.signal('b1', 'SIGSTOP');
      await pool.unbind(binding, true);
      await pool.kill('b1');
    };
    await pool.crashAt(points, provoke, { timeouts });
    await pool.startBox('b1');
    await pool.isGone(binding);
  }),
  scenario(['detaching>failed(host-unreachable)'], async (pool, points) => {
    const binding = await attached(pool);
    await pool.crashAt(['after draining>detaching', ...points], () => pool.unbind(binding), {
      timeouts: { detachingMs: shortMs(pool) },
      whileDown: () => pool.kill('h1'),
    });
    await pool.startHost('h1');
    await pool.isGone(binding);
  }),
];
