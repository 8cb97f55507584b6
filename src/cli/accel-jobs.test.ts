import { describe, expect, it } from 'vitest';
import { plainSaxpy, plainSgemm } from '#host/plain';
import { AccelJobs, inSlices } from './accel-jobs.ts';
import type { ControlCall } from './control-server.ts';
import type { HostNode } from '#agent/daemon/host-node';

/** An accelerator that answers at once, with `wrong` added to its last element. */
function jobsWith(wrong = 0, held: string[] = []): AccelJobs {
  const spoilt = (values: Float32Array): Float32Array => {
    values[values.length - 1] = (values.at(-1) ?? 0) + wrong;
    return values;
  };
  const driver = {
    saxpy: (a: number, x: Float32Array, y: Float32Array) => spoilt(plainSaxpy(a, x, y)),
    sgemm: (m: number, n: number, k: number, a: Float32Array, b: Float32Array) =>
      spoilt(plainSgemm(m, n, k, a, b)),
    close: () => 'closed',
  };
  let calls = 0;
  const node = {
    functionAt: () => ({ bdf: 0x100, scope: undefined }),
    hold: (slot: number) => {
      held.push(`hold ${slot}`);
      return () => held.push(`release ${slot}`);
    },
    // The first task opens the driver.
    run: (task: unknown) => Promise.resolve(calls++ === 0 ? driver : task),
  };
  return new AccelJobs(node as unknown as HostNode);
}

const call: ControlCall = { emit: () => true, signal: new AbortController().signal };

/** How often others had their turn while `work` was under way. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let done = false;
  const count = (): void => {
    turns++;
    if (!done) setImmediate(count);
  };
  setImmediate(count);
  await work;
  done = true;
  return turns;
}

describe('a job', () => {
  it('of many elements lets the event loop run: the link once died of 8,000,000', async () => {
    const n = 2 ** 20;
    const work = jobsWith().run({ kernel: 'saxpy', slot: 0, n, seed: 1, iterations: 1 }, call);
    // Two operands, the plain result and the comparison, each in pieces of 2^16 elements.
    expect(await turnsDuring(work)).toBeGreaterThanOrEqual((4 * n) / 2 ** 16);
    const [m, k] = [512, 512];
    const sgemm = { kernel: 'sgemm', slot: 0, m, n: 4, k, seed: 1, iterations: 1 };
    // A has 2^18 elements; the product has 2^20 multiplications, one piece; B and C are one each.
    expect(await turnsDuring(jobsWith().run(sgemm, call))).toBeGreaterThanOrEqual(4 + 3);
  });

  it('with a wrong element in the last piece fails and names it', async () => {
    const n = 2 ** 16 + 7;
    const params = { kernel: 'saxpy', slot: 0, n, seed: 1, iterations: 1 };
    await expect(jobsWith(0.5).run(params, call)).rejects.toThrow(
      `saxpy is wrong at element ${n - 1} of iteration 0`,
    );
  });

  it('holds the function while it runs, whatever becomes of it', async () => {
    const held: string[] = [];
    const params = { kernel: 'saxpy', slot: 3, n: 4, seed: 1, iterations: 1 };
    await jobsWith(0, held).run(params, call);
    await expect(jobsWith(1, held).run(params, call)).rejects.toThrow('wrong');
    expect(held).toEqual(['hold 3', 'release 3', 'hold 3', 'release 3']);
  });

  it('too large for the host or for one command is refused', async () => {
    const jobs = jobsWith();
    const saxpy = { kernel: 'saxpy', slot: 0, n: 2 ** 24 + 1, seed: 1, iterations: 1 };
    await expect(jobs.run(saxpy, call)).rejects.toThrow('at most 16777216 elements in an array');
    const sgemm = { kernel: 'sgemm', slot: 0, m: 1024, n: 1024, k: 1024, seed: 1, iterations: 1 };
    await expect(jobs.run(sgemm, call)).rejects.toThrow('--size 640 is the largest square');
  });
});

describe('slices', () => {
  it('cover everything once, the last one shorter', async () => {
    const pieces: [number, number][] = [];
    await inSlices(10, 4, (begin, end) => pieces.push([begin, end]));
    expect(pieces).toEqual([
      [0, 4],
      [4, 8],
      [8, 10],
    ]);
  });
});
