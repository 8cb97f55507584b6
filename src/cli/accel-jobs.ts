/** The `run` method of a host's control socket: kernels on an accelerator, their results checked. */
import { z } from 'zod';
import { DxpuError } from '#base/errors';
import { Prng } from '#base/prng';
import { AccelDriver } from '#host/accel-driver';
import { firstDifference, plainSaxpy, plainSgemm } from '#host/plain';
import type { Task } from '#host/task';
import type { ControlCall } from './control-server.ts';
import type { HostNode } from '#agent/daemon/host-node';
import { parseParams } from './daemon-process.ts';

/** One command of more than this keeps the device model busy for so long that its box seems dead. */
const MAX_MULTIPLICATIONS = 2 ** 28;
/** More than this, operands and result, is more memory than a check should take. */
const MAX_ELEMENTS = 2 ** 24;
/** Work on operands and results stops this often to let the host's other work go on: some ms each. */
const SLICE_ELEMENTS = 2 ** 16;
const SLICE_MULTIPLICATIONS = 2 ** 20;

const runParams = z.discriminatedUnion('kernel', [
  z.strictObject({
    kernel: z.literal('sgemm'),
    slot: z.int().min(0),
    m: z.int().min(1),
    n: z.int().min(1),
    k: z.int().min(1),
    seed: z.int().min(0),
    iterations: z.int().min(1),
  }),
  z.strictObject({
    kernel: z.literal('saxpy'),
    slot: z.int().min(0),
    n: z.int().min(1),
    seed: z.int().min(0),
    iterations: z.int().min(1),
  }),
]);

export type RunParams = z.infer<typeof runParams>;

/** Sent after each iteration. */
export interface RunEvent {
  readonly iteration: number;
  readonly timeNs: number;
}

export interface RunResult {
  readonly kernel: string;
  readonly slot: number;
  readonly bdf: number;
  /** Upload, kernel and download, of each iteration. */
  readonly timesNs: readonly number[];
  readonly elements: number;
  /** Always true: a difference is an error. */
  readonly checked: true;
}

export class AccelJobs {
  readonly #node: HostNode;
  readonly #busy = new Set<number>();

  constructor(node: HostNode) {
    this.#node = node;
  }

  async run(params: unknown, call: ControlCall): Promise<RunResult> {
    const job = parseParams(runParams, params);
    const fn = this.#node.functionAt(job.slot);
    if (job.kernel === 'sgemm' && job.m * job.n * job.k > MAX_MULTIPLICATIONS) {
      throw new DxpuError(
        'invalid_argument',
        `${job.m} x ${job.n} x ${job.k} is more than ${MAX_MULTIPLICATIONS} multiplications in one ` +
          'command; use smaller matrices (--size 640 is the largest square)',
      );
    }
    const elements = largestArray(job);
    if (elements > MAX_ELEMENTS) {
      throw new DxpuError(
        'invalid_argument',
        `at most ${MAX_ELEMENTS} elements in an array, not ${elements}`,
      );
    }
    if (this.#busy.has(job.slot)) {
      throw new DxpuError(
        'failed_precondition',
        `the accelerator of slot ${job.slot} is running another job; wait for it`,
      );
    }
    const release = this.#node.hold(job.slot);
    this.#busy.add(job.slot);
    try {
      const driver = await this.#node.run(AccelDriver.open(this.#node.soft, fn));
      try {
        return await this.#iterate(job, driver, fn.bdf, call);
      } finally {
        await this.#node.run(driver.close());
      }
    } finally {
      this.#busy.delete(job.slot);
      release();
    }
  }

  async #iterate(
    job: RunParams,
    driver: AccelDriver,
    bdf: number,
    call: ControlCall,
  ): Promise<RunResult> {
    const prng = new Prng(job.seed);
    const timesNs: number[] = [];
    let elements = 0;
    for (let iteration = 0; iteration < job.iterations; iteration++) {
      if (call.signal.aborted) throw new DxpuError('cancelled', 'the caller went away');
      const { task, expected } = await prepare(job, driver, prng);
      const begin = performance.now();
      const result = await this.#node.run(task);
      const timeNs = (performance.now() - begin) * 1e6;
      timesNs.push(timeNs);
      elements = result.length;
      const wrong = await slicedDifference(result, await expected());
      if (wrong >= 0) {
        throw new DxpuError(
          'data_loss',
          `${job.kernel} is wrong at element ${wrong} of iteration ${iteration}: ${result[wrong]}`,
          { details: { iteration, element: wrong } },
        );
      }
      call.emit({ iteration, timeNs } satisfies RunEvent);
    }
    return { kernel: job.kernel, slot: job.slot, bdf, timesNs, elements, checked: true };
  }
}

function largestArray(job: RunParams): number {
  if (job.kernel === 'saxpy') return job.n;
  const { m, n, k } = job;
  return Math.max(m * k, k * n, m * n);
}

interface Prepared {
  readonly task: Task<Float32Array>;
  readonly expected: () => Promise<Float32Array>;
}

async function prepare(job: RunParams, driver: AccelDriver, prng: Prng): Promise<Prepared> {
  if (job.kernel === 'saxpy') {
    const a = prng.float() * 2 - 1;
    const x = await randoms(prng, job.n);
    const y = await randoms(prng, job.n);
    return { task: driver.saxpy(a, x, y), expected: () => slicedSaxpy(a, x, y) };
  }
  const { m, n, k } = job;
  const a = await randoms(prng, m * k);
  const b = await randoms(prng, k * n);
  return { task: driver.sgemm(m, n, k, a, b), expected: () => slicedSgemm(m, n, k, a, b) };
}

/**
 * Calls `work` for pieces of [0, count), and lets the event loop run between them: a link whose
 * process does nothing else for a second is dead to its peer.
 */
export async function inSlices(
  count: number,
  step: number,
  work: (begin: number, end: number) => void,
): Promise<void> {
  for (let begin = 0; begin < count; begin += step) {
    work(begin, Math.min(count, begin + step));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** As `plainSgemm`, some rows at a time. */
async function slicedSgemm(
  m: number,
  n: number,
  k: number,
  a: Float32Array,
  b: Float32Array,
): Promise<Float32Array> {
  const c = new Float32Array(m * n);
  const step = Math.max(1, Math.floor(SLICE_MULTIPLICATIONS / (n * k)));
  await inSlices(m, step, (row, end) => {
    c.set(plainSgemm(end - row, n, k, a.subarray(row * k, end * k), b), row * n);
  });
  return c;
}

/** As `plainSaxpy`, some elements at a time. */
async function slicedSaxpy(a: number, x: Float32Array, y: Float32Array): Promise<Float32Array> {
  const result = new Float32Array(x.length);
  await inSlices(x.length, SLICE_ELEMENTS, (begin, end) => {
    result.set(plainSaxpy(a, x.subarray(begin, end), y.subarray(begin, end)), begin);
  });
  return result;
}

/** As `firstDifference`, some elements at a time. */
async function slicedDifference(a: Float32Array, b: Float32Array): Promise<number> {
  if (a.length !== b.length) return Math.min(a.length, b.length);
  let first = -1;
  await inSlices(a.length, SLICE_ELEMENTS, (begin, end) => {
    if (first >= 0) return;
    const at = firstDifference(a.subarray(begin, end), b.subarray(begin, end));
    if (at >= 0) first = begin + at;
  });
  return first;
}

/** Values in (−1, 1), all exact in single precision. */
async function randoms(prng: Prng, count: number): Promise<Float32Array> {
  const values = new Float32Array(count);
  await inSlices(count, SLICE_ELEMENTS, (begin, end) => {
    for (let index = begin; index < end; index++) values[index] = prng.float() * 2 - 1;
  });
  return values;
}
