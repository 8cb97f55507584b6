/**
 * How to bring a binding of host h1 to each step of its life in real processes, so that the manager can
 * die before and after its commit. Every scenario leaves the pool as it found it.
 */
import { callProcess } from '#cli/control-client';
import { FIRST_TRANSITION, TRANSITIONS } from '#manager/domain/transitions';
import type { CrashPool } from './crash-pool.ts';

export interface Scenario {
  readonly name: string;
  /** Of the table: a manager dies before and after the commit of each. */
  readonly rows: readonly string[];
  readonly run: (pool: CrashPool) => Promise<void>;
}

/** For agents that are there and say nothing: well below what a manager waits for their pings. */
const SILENT_MS = 400;
/** Short enough to wait for, long enough for agents to be back. */
const shortMs = (pool: CrashPool): number => Math.max(300, 3 * pool.paceMs);
/** Long enough for what shall be done meanwhile. */
const longerMs = (pool: CrashPool): number => Math.max(900, 6 * pool.paceMs);
/** Longer than any scenario takes. */
const CUT_MS = 120_000;
/** The binding is durable and nobody was told of it. */
const BOUND = `after ${FIRST_TRANSITION}`;

function around(rows: readonly string[]): string[] {
  return rows.flatMap((row) => [`before ${row}`, `after ${row}`]);
}

/** `run` gets the points of `rows`. */
function scenario(
  rows: readonly string[],
  run: (pool: CrashPool, points: readonly string[]) => Promise<void>,
  name = rows.join(', '),
): Scenario {
  return { name, rows, run: (pool) => run(pool, around(rows)) };
}

async function attached(pool: CrashPool): Promise<string> {
  const binding = await pool.bind();
  await pool.reaches(binding, 'ATTACHED');
  return binding;
}

/** A binding that is reserved: `whileDown` sees to it that it stays so. */
async function reserved(pool: CrashPool, whileDown: () => unknown): Promise<string> {
  let binding = '';
  const bind = async (): Promise<void> => {
    binding = await pool.bind();
  };
  await pool.crashAt([BOUND], bind, { whileDown });
  return binding;
}

/** Not further than `programming`: that agent has stopped to answer. */
async function programming(pool: CrashPool, silent: 'b1' | 'h1'): Promise<string> {
  await pool.isReady();
  pool.signal(silent, 'SIGSTOP');
  const binding = await pool.bind();
  await pool.reaches(binding, 'PROGRAMMING');
  return binding;
}

/** Not further than `attaching`: there is no connection between host and box. */
async function attaching(pool: CrashPool): Promise<string> {
  const binding = await reserved(pool, () => pool.cut(CUT_MS));
  await pool.reaches(binding, 'ATTACHING');
  return binding;
}

interface Job {
  stop(): Promise<unknown>;
}

/** A program of h1 that uses the function of a binding until it is stopped, or loses it. */
async function use(pool: CrashPool, binding: string): Promise<Job> {
  const { hostSlot } = await pool.reaches(binding, 'ATTACHED');
  const stop = new AbortController();
  const job = { kernel: 'saxpy', slot: hostSlot, n: 16, seed: 1, iterations: 1e9 };
  let over: Promise<unknown> = Promise.resolve();
  await new Promise<void>((resolve, reject) => {
    over = callProcess(pool.process('host-h1'), 'run', job, {
      signal: stop.signal,
      onEvent: () => resolve(),
    }).catch(reject);
  });
  return {
    stop: () => {
      stop.abort();
      return over;
    },
  };
}

/** Not further than `draining`: a program of the host uses the function. */
async function draining(pool: CrashPool): Promise<{ binding: string; job: Job }> {
  const binding = await attached(pool);
  const job = await use(pool, binding);
  await pool.unbind(binding);
  await pool.reaches(binding, 'DRAINING');
  return { binding, job };
}

/** They come back as other processes. */
async function restartBox(pool: CrashPool, slots?: readonly number[]): Promise<void> {
  await pool.kill('b1');
  await pool.startBox('b1', slots);
}

async function restartHost(pool: CrashPool): Promise<void> {
  await pool.kill('h1');
  await pool.startHost('h1');
}

/** Box b1 comes back without the GPU node of a binding. */
async function takeNode(pool: CrashPool, binding: string): Promise<void> {
  const found = await pool.binding(binding);
  if (found === undefined) throw new Error(`binding ${binding} is gone`);
  await restartBox(pool, [1 - found.boxSlot]);
}

async function goes(pool: CrashPool, binding: string): Promise<void> {
  await pool.unbind(binding);
  await pool.isGone(binding);
}

/** It comes to its goal, whatever it went through. */
async function attachesAndGoes(pool: CrashPool, binding: string): Promise<void> {
  await pool.reaches(binding, 'ATTACHED');
  await goes(pool, binding);
}

const LIFE: readonly Scenario[] = [
  scenario(
    [FIRST_TRANSITION, 'reserved>programming', 'programming>attaching', 'attaching>attached'],
    async (pool, points) => {
      let binding = '';
      await pool.crashAt(points, async () => {
        binding = await pool.bind();
      });
      await attachesAndGoes(pool, binding);
    },
    'bind',
  ),
  scenario(
    ['attached>draining', 'draining>detaching', 'detaching>scrubbing', 'scrubbing>free'],
    async (pool, points) => {
      const binding = await attached(pool);
      await pool.crashAt(points, () => pool.unbind(binding));
      await pool.isGone(binding);
    },
    'unbind',
  ),
  scenario(['reserved>free'], async (pool, points) => {
    const binding = await reserved(pool, () => pool.kill('b1'));
    await pool.crashAt(points, () => pool.unbind(binding));
    await pool.startBox('b1');
  }),
  scenario(['programming>detaching'], async (pool, points) => {
    const binding = await programming(pool, 'b1');
    await pool.crashAt(points, () => pool.unbind(binding));
    pool.signal('b1', 'SIGCONT');
    await pool.isGone(binding);
  }),
  scenario(['attaching>draining'], async (pool, points) => {
    const binding = await attaching(pool);
    await pool.crashAt(points, () => pool.unbind(binding));
    await pool.isGone(binding);
    await pool.clearCut();
  }),
];

const RESTARTED: readonly Scenario[] = [
  scenario(['attached>failed(host-restarted)', 'failed>programming'], async (pool, points) => {
    const binding = await attached(pool);
    // It would tell first that its link is gone.
    pool.signal('b1', 'SIGSTOP');
    const [first = '', second = '', ...retried] = points;
    await pool.crashAt([first, second], () => restartHost(pool));
    await pool.crashAt(retried, () => pool.signal('b1', 'SIGCONT'));
    await attachesAndGoes(pool, binding);
  }),
  scenario(['attached>failed(box-restarted)'], async (pool, points) => {
    const binding = await attached(pool);
    pool.signal('h1', 'SIGSTOP');
    await pool.crashAt(points, () => restartBox(pool));
    pool.signal('h1', 'SIGCONT');
    await attachesAndGoes(pool, binding);
  }),
  scenario(['programming>failed(box-restarted)'], async (pool, points) => {
    const binding = await programming(pool, 'h1');
    await pool.crashAt(points, () => restartBox(pool));
    pool.signal('h1', 'SIGCONT');
    await attachesAndGoes(pool, binding);
  }),
  scenario(['programming>failed(host-restarted)'], async (pool, points) => {
    const binding = await programming(pool, 'h1');
    await pool.crashAt(points, () => restartHost(pool));
    await attachesAndGoes(pool, binding);
  }),
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
  scenario(['draining>failed(box-restarted)'], async (pool, points) => {
    const { binding, job } = await draining(pool);
    pool.signal('h1', 'SIGSTOP');
    await pool.crashAt(points, () => restartBox(pool));
    pool.signal('h1', 'SIGCONT');
    await pool.isGone(binding);
    await job.stop();
  }),
  scenario(['draining>failed(host-restarted)'], async (pool, points) => {
    const { binding, job } = await draining(pool);
    // A slot that is contained has nothing to drain.
    pool.signal('b1', 'SIGSTOP');
    await pool.crashAt(points, () => restartHost(pool));
    pool.signal('b1', 'SIGCONT');
    await pool.isGone(binding);
    await job.stop();
  }),
];

const LOST: readonly Scenario[] = [
  scenario(['attached>failed(link-down)'], async (pool, points) => {
    const binding = await attached(pool);
    await pool.crashAt(points, () => pool.cut(longerMs(pool)));
    await attachesAndGoes(pool, binding);
  }),
  scenario(['attaching>failed(link-down)'], async (pool, points) => {
    let binding = '';
    const bind = async (): Promise<void> => {
      binding = await pool.bind();
    };
    // Its rows are in force, its function is not in its slot yet.
    const whileDown = () => pool.cut(longerMs(pool));
    await pool.crashAt(['after programming>attaching', ...points], bind, { whileDown });
    await attachesAndGoes(pool, binding);
  }),
  scenario(['reserved>failed(node-gone)'], async (pool, points) => {
    const binding = await reserved(pool, () => pool.kill('b1'));
    await pool.crashAt(points, () => takeNode(pool, binding));
    await goes(pool, binding);
    await restartBox(pool);
  }),
  scenario(['programming>failed(node-gone)'], async (pool, points) => {
    const binding = await programming(pool, 'h1');
    await pool.crashAt(points, () => takeNode(pool, binding));
    pool.signal('h1', 'SIGCONT');
    await goes(pool, binding);
    await restartBox(pool);
  }),
  scenario(['attaching>failed(node-gone)'], async (pool, points) => {
    const binding = await attaching(pool);
    await pool.crashAt(points, () => takeNode(pool, binding));
    await goes(pool, binding);
    await pool.clearCut();
    await restartBox(pool);
  }),
  scenario(['attached>failed(node-gone)'], async (pool, points) => {
    const binding = await attached(pool);
    pool.signal('h1', 'SIGSTOP');
    await pool.crashAt(points, () => takeNode(pool, binding));
    pool.signal('h1', 'SIGCONT');
    await goes(pool, binding);
    await restartBox(pool);
  }),
  scenario(['draining>failed(node-gone)'], async (pool, points) => {
    const { binding, job } = await draining(pool);
    pool.signal('h1', 'SIGSTOP');
    await pool.crashAt(points, () => takeNode(pool, binding));
    pool.signal('h1', 'SIGCONT');
    await pool.isGone(binding);
    await job.stop();
    await restartBox(pool);
  }),
];

/** A deadline passes, again for each manager, as all begin anew with it. */
const LATE: readonly Scenario[] = [
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
      await (kind === 'box' ? pool.startBox(id) : pool.startHost(id));
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
      await (kind === 'box' ? pool.startBox(id) : pool.startHost(id));
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

export const SCENARIOS: readonly Scenario[] = [...LIFE, ...RESTARTED, ...LOST, ...LATE];

/** Why some rows are reached in virtual time alone (test/cluster): by their reason, or by their name. */
const UNREACHED: Readonly<Record<string, string>> = {
  quarantined: 'reset and scrub of a reference accelerator do not fail',
  'failed>free': 'the way out of quarantine',
  'row-lost': 'a proxy of ours that keeps running keeps its rows',
  'order-refused': 'the manager orders nothing that a proxy of ours refuses',
  'no-space': 'placement looks at the windows first, and a soft host has room where they do',
  'function-unusable': 'a soft host can use every reference accelerator',
  'reserved>failed(programming-timeout)': 'two agents that are there confirm empty slots at once',
  'scrubbing-timeout': 'a reference accelerator is scrubbed when its row goes, in the same turn',
  'scrubbing>failed(box-unreachable)': 'so no commit has a binding that is still being scrubbed',
};

/** Rows of the table that no scenario goes through, and that are not known to be out of reach. */
export function missedRows(): string[] {
  const covered = new Set(SCENARIOS.flatMap((one) => one.rows));
  return TRANSITIONS.filter(
    ({ name, reason }) =>
      !covered.has(name) && UNREACHED[name] === undefined && UNREACHED[reason ?? ''] === undefined,
  ).map(({ name }) => name);
}
