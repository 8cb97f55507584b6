/** How a binding of host h1 gets to a step of its life in real processes, and from there. */
import { expect } from 'vitest';
import { callProcess } from '#cli/control-client';
import { FIRST_TRANSITION } from '#manager/domain/transitions';
import { SLOTS } from './crash-configs.ts';
import type { CrashPool } from './crash-pool.ts';

export interface Scenario {
  readonly name: string;
  /** Of the table: a manager dies before and after the commit of each. */
  readonly rows: readonly string[];
  readonly run: (pool: CrashPool) => Promise<void>;
}

/** Longer than any scenario takes. */
const CUT_MS = 120_000;
/** The binding is durable and nobody was told of it. */
export const BOUND = `after ${FIRST_TRANSITION}`;

/** The points of `rows`, in their order. */
export function around(rows: readonly string[]): string[] {
  return rows.flatMap((row) => [`before ${row}`, `after ${row}`]);
}

/** `run` gets the points of `rows`. */
export function scenario(
  rows: readonly string[],
  run: (pool: CrashPool, points: readonly string[]) => Promise<void>,
  name = rows.join(', '),
): Scenario {
  return { name, rows, run: (pool) => run(pool, around(rows)) };
}

export async function attached(pool: CrashPool): Promise<string> {
  const binding = await pool.user.bind();
  await pool.user.reaches(binding, 'ATTACHED');
  return binding;
}

/** A binding that is reserved: `whileDown` sees to it that it stays so. */
export async function reserved(pool: CrashPool, whileDown: () => unknown): Promise<string> {
  let binding = '';
  const bind = async (): Promise<void> => {
    binding = await pool.user.bind();
  };
  await pool.crashAt([BOUND], bind, whileDown);
  return binding;
}

/** Not further than `programming`: that agent has stopped to answer. */
export async function programming(pool: CrashPool, silent: 'b1' | 'h1'): Promise<string> {
  await pool.isReady();
  pool.signal(silent, 'SIGSTOP');
  const binding = await pool.user.bind();
  await pool.user.reaches(binding, 'PROGRAMMING');
  return binding;
}

/** Not further than `attaching`: there is no connection between host and box. */
export async function attaching(pool: CrashPool): Promise<string> {
  const binding = await reserved(pool, () => pool.cut(CUT_MS));
  await pool.user.reaches(binding, 'ATTACHING');
  return binding;
}

export interface Job {
  stop(): Promise<unknown>;
}

/** A program of h1 that uses the function of a binding until it is stopped, or loses it. */
async function use(pool: CrashPool, binding: string): Promise<Job> {
  const { hostSlot } = await pool.user.reaches(binding, 'ATTACHED');
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
export async function draining(pool: CrashPool): Promise<{ binding: string; job: Job }> {
  const binding = await attached(pool);
  const job = await use(pool, binding);
  await pool.user.unbind([binding]);
  await pool.user.reaches(binding, 'DRAINING');
  return { binding, job };
}

/** Bindings in three steps at once. */
export interface Several {
  readonly attached: string;
  readonly draining: string;
  readonly programming: string;
  readonly job: Job;
}

/** Host h1 has stopped to answer, which holds the last of them. */
export async function several(pool: CrashPool): Promise<Several> {
  const first = await attached(pool);
  const second = await draining(pool);
  pool.signal('h1', 'SIGSTOP');
  const third = await pool.user.bind();
  await pool.user.reaches(third, 'PROGRAMMING');
  return { attached: first, draining: second.binding, programming: third, job: second.job };
}

/** Their agents are back: they come to their goals. */
export async function severalGo(pool: CrashPool, several: Several): Promise<void> {
  await Promise.all([
    attachesAndGoes(pool, several.attached),
    attachesAndGoes(pool, several.programming),
    pool.user.isGone(several.draining),
  ]);
  await several.job.stop();
}

/** They come back as other processes. */
export async function restartBox(pool: CrashPool, slots?: readonly number[]): Promise<void> {
  await pool.kill('b1');
  await pool.startBox('b1', slots);
}

export async function restartHost(pool: CrashPool): Promise<void> {
  await pool.kill('h1');
  await pool.startHost('h1');
}

/** Box b1 comes back without the GPU nodes of some bindings. */
export async function takeNodes(pool: CrashPool, ...bindings: readonly string[]): Promise<void> {
  const taken = new Set<number>();
  for (const { id, boxSlot } of await pool.user.bindingsOf('h1')) {
    if (bindings.includes(id)) taken.add(boxSlot);
  }
  expect(taken.size).toBe(bindings.length);
  await restartBox(
    pool,
    SLOTS.filter((slot) => !taken.has(slot)),
  );
}

export async function goes(pool: CrashPool, ...bindings: readonly string[]): Promise<void> {
  await pool.user.unbind(bindings);
  await Promise.all(bindings.map((binding) => pool.user.isGone(binding)));
}

/** It comes to its goal, whatever it went through. */
export async function attachesAndGoes(pool: CrashPool, binding: string): Promise<void> {
  await pool.user.reaches(binding, 'ATTACHED');
  await goes(pool, binding);
}
