import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { type Outcome, runJobs } from './worker-pool.ts';

/** Real threads: they double a number, fail, report, run for ever, or die, as the job says. */
const CODE = `
const { parentPort } = require('node:worker_threads');
parentPort.on('message', ({ value, how, gate }) => {
  if (how === 'die') process.exit(3);
  if (how === 'throw') throw new Error('lost its way');
  parentPort.postMessage({ kind: 'progress', step: 'doubling', share: 0.5 });
  if (how === 'loop') for (;;) ;
  // Until the others have ended.
  if (gate !== undefined) Atomics.wait(new Int32Array(gate), 0, 0);
  parentPort.postMessage(how === 'fail'
    ? { kind: 'failed', error: { code: 'not_found', message: 'no ' + value, details: { value } } }
    : { kind: 'done', result: 2 * value });
});`;
const start = (): Worker => new Worker(CODE, { eval: true });

async function told(
  jobs: readonly unknown[],
  options: { workers: number; signal?: AbortSignal; onProgress?: (job: number) => void },
): Promise<[number, Outcome<number>][]> {
  const outcomes: [number, Outcome<number>][] = [];
  const onOutcome = (job: number, outcome: Outcome<number>): void =>
    void outcomes.push([job, outcome]);
  await runJobs<number>(jobs, { ...options, start, onOutcome });
  return outcomes;
}

describe('the worker pool', () => {
  it('tells outcomes in the order of the jobs, whichever ends first', async () => {
    const ended: number[] = [];
    const outcomes: number[] = [];
    const gate = new SharedArrayBuffer(4);
    await runJobs<number>([{ value: 1, gate }, { value: 2 }, { value: 3 }], {
      workers: 2,
      start,
      onEnd: (job) => {
        if (ended.push(job) < 2) return;
        Atomics.store(new Int32Array(gate), 0, 1);
        Atomics.notify(new Int32Array(gate), 0);
      },
      onOutcome: (job, outcome) => outcomes.push(job, 'result' in outcome ? outcome.result : -1),
    });
    expect(ended.at(-1)).toBe(0);
    expect(outcomes).toEqual([0, 2, 1, 4, 2, 6]);
  });

  it('loses no job to one that fails, throws or dies', async () => {
    const jobs = ['ok', 'fail', 'die', 'ok', 'throw', 'ok'].map((how, value) => ({ value, how }));
    const outcomes = await told(jobs, { workers: 2 });
    expect(
      outcomes.map(([job, outcome]) => [
        job,
        'result' in outcome ? outcome.result : `${outcome.error.code}: ${outcome.error.message}`,
      ]),
    ).toEqual([
      [0, 0],
      [1, 'not_found: no 1'],
      [2, 'internal: its worker ended with status 3'],
      [3, 6],
      [4, 'unknown: lost its way'],
      [5, 10],
    ]);
  });

  it('says that the memory was not enough', async () => {
    const code = `require('node:worker_threads').parentPort.on('message', () => {
      const all = []; for (;;) all.push(new Array(1e5).fill(all.length));
    });`;
    const outcomes: Outcome<number>[] = [];
    await runJobs<number>([{}], {
      workers: 1,
      start: () => new Worker(code, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 16 } }),
      onOutcome: (_job, outcome) => outcomes.push(outcome),
    });
    expect(outcomes).toMatchObject([{ error: { code: 'resource_exhausted' } }]);
  });

  it('ends at once when told to, busy workers too', async () => {
    const stop = new AbortController();
    const outcomes = await told([{ value: 1 }, { value: 2, how: 'loop' }, { value: 3 }], {
      workers: 1,
      signal: stop.signal,
      onProgress: (job) => {
        if (job === 1) stop.abort();
      },
    });
    expect(outcomes.map(([job]) => job)).toEqual([0]);
  });

  it('starts none where there is nothing to do', async () => {
    expect(await told([], { workers: 4 })).toEqual([]);
  });
});
