/**
 * A scenario for each row of the table of transitions: the manager dies before and after its commit. The
 * agents are real processes wherever those come to the row, and scripted where they would have to
 * misbehave (`crash-scripts.ts`). Every scenario leaves the pool as it found it.
 */
import type { FailureReason } from '#manager/domain/records';
import { FIRST_TRANSITION, TRANSITIONS } from '#manager/domain/transitions';
import { LATE } from './crash-deadlines.ts';
import { scripted } from './crash-scripts.ts';
import {
  attached,
  attaching,
  attachesAndGoes,
  goes,
  programming,
  reserved,
  restartBox,
  restartHost,
  type Scenario,
  scenario,
  several,
  severalGo,
  takeNodes,
} from './crash-steps.ts';

const BIND = [
  FIRST_TRANSITION,
  'reserved>programming',
  'programming>attaching',
  'attaching>attached',
];
const UNBIND = ['attached>draining', 'draining>detaching', 'detaching>scrubbing', 'scrubbing>free'];

const LIFE: readonly Scenario[] = [
  scenario(
    [...BIND, ...UNBIND],
    async (pool, points) => {
      // A life for each: one manager dies while it is bound, one while it is given back.
      const half = points.length / 2;
      for (const [index, first] of points.slice(0, half).entries()) {
        let binding = '';
        await pool.crashAt([first], async () => {
          binding = await pool.user.bind();
        });
        await pool.user.reaches(binding, 'ATTACHED');
        await pool.crashAt(points.slice(half + index, half + index + 1), () =>
          pool.user.unbind([binding]),
        );
        await pool.user.isGone(binding);
      }
    },
    'bind and unbind',
  ),
  scenario(['reserved>free'], async (pool, points) => {
    const binding = await reserved(pool, () => pool.kill('b1'));
    await pool.crashAt(points, () => pool.user.unbind([binding]));
    await pool.startBox('b1');
  }),
  scenario(['programming>detaching'], async (pool, points) => {
    const binding = await programming(pool, 'b1');
    await pool.crashAt(points, () => pool.user.unbind([binding]));
    pool.signal('b1', 'SIGCONT');
    await pool.user.isGone(binding);
  }),
  scenario(['attaching>draining'], async (pool, points) => {
    const binding = await attaching(pool);
    await pool.crashAt(points, () => pool.user.unbind([binding]));
    await pool.user.isGone(binding);
    await pool.clearCut();
  }),
];

const SEVERAL = ['attached', 'draining', 'programming'] as const;
const failed = (reason: FailureReason): string[] =>
  SEVERAL.map((from) => `${from}>failed(${reason})`);

const RESTARTED: readonly Scenario[] = [
  scenario(
    [...failed('host-restarted'), 'failed>programming'],
    async (pool, points) => {
      const bindings = await several(pool);
      // It would tell first that its link is gone; and a slot that is contained has nothing to drain.
      pool.signal('b1', 'SIGSTOP');
      const retried = points.slice(-2);
      await pool.crashAt(points.slice(0, -2), () => restartHost(pool));
      await pool.crashAt(retried, () => pool.signal('b1', 'SIGCONT'));
      await severalGo(pool, bindings);
    },
    'host-restarted',
  ),
  scenario(
    failed('box-restarted'),
    async (pool, points) => {
      const bindings = await several(pool);
      await pool.crashAt(points, () => restartBox(pool));
      pool.signal('h1', 'SIGCONT');
      await severalGo(pool, bindings);
    },
    'box-restarted',
  ),
  scenario(['attaching>failed(box-restarted)'], async (pool, points) => {
    const binding = await attaching(pool);
    await pool.crashAt(points, () => restartBox(pool));
    await pool.clearCut();
    await attachesAndGoes(pool, binding);
  }),
  scenario(['attaching>failed(host-restarted)'], async (pool, points) => {
    const binding = await attaching(pool);
    await pool.crashAt(points, () => restartHost(pool));
    await attachesAndGoes(pool, binding);
  }),
];

/** Longer than ends of sessions take to be seen, 300 ms. */
const CUT_MS = 800;

const LOST: readonly Scenario[] = [
  scenario(['attached>failed(link-down)'], async (pool, points) => {
    const binding = await attached(pool);
    await pool.crashAt(points, () => pool.cut(CUT_MS));
    await attachesAndGoes(pool, binding);
  }),
  scenario(['attaching>failed(link-down)'], async (pool, points) => {
    let binding = '';
    const bind = async (): Promise<void> => {
      binding = await pool.user.bind();
    };
    // Its rows are in force, its function is not in its slot yet.
    const whileDown = () => pool.cut(CUT_MS);
    await pool.crashAt(['after programming>attaching', ...points], bind, whileDown);
    await attachesAndGoes(pool, binding);
  }),
  scenario(
    [...failed('node-gone'), 'reserved>failed(node-gone)'],
    async (pool, points) => {
      const bindings = await several(pool);
      const last = await reserved(pool, () => pool.kill('b1'));
      const all = [bindings.attached, bindings.programming, last];
      await pool.crashAt(points, () => takeNodes(pool, ...all, bindings.draining));
      pool.signal('h1', 'SIGCONT');
      await goes(pool, ...all);
      await pool.user.isGone(bindings.draining);
      await bindings.job.stop();
      await restartBox(pool);
    },
    'node-gone',
  ),
  scenario(['attaching>failed(node-gone)'], async (pool, points) => {
    const binding = await attaching(pool);
    await pool.crashAt(points, () => takeNodes(pool, binding));
    await goes(pool, binding);
    await pool.clearCut();
    await restartBox(pool);
  }),
];

const OF_REAL_AGENTS: readonly Scenario[] = [...LIFE, ...RESTARTED, ...LOST, ...LATE];

export const SCENARIOS: readonly Scenario[] = [...OF_REAL_AGENTS, ...scripted(OF_REAL_AGENTS)];

/** Rows of the table that no scenario goes through. */
export function missedRows(): string[] {
  const covered = new Set(SCENARIOS.flatMap((one) => one.rows));
  return TRANSITIONS.map(({ name }) => name).filter((name) => !covered.has(name));
}
