/** The `run` method of a host's control socket: kernels on an accelerator, their results checked. */
import { z } from 'zod';
import { DxpuError } from '#base/errors';
import { Prng } from '#base/prng';
import { AccelDriver } from '#host/accel-driver';
import { firstDifference, plainSaxpy, plainSgemm } from '#host/plain';
import type { Task } from '#host/task';
import type { ControlCall } from './control-server.ts';
import type { HostNode } from './host-node.ts';
import { parseParams } from './proxy-process.ts';

/** One command of more than this keeps the device model busy for so long that its box seems dead. */
const MAX_MULTIPLICATIONS = 2 ** 28;
/** Making more operands than this in one go does the same to the host. */
const MAX_ELEMENTS = 2 ** 24;
/** The plain computation stops this often to let the host's other work go on. */
const SLICE_MULTIPLICATIONS = 2 ** 22;

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
    if (job.kernel === 'saxpy' && job.n > MAX_ELEMENTS) {
      throw new DxpuError('invalid_argument', `at most ${MAX_ELEMENTS} elements, not ${job.n}`);
    }
    if (this.#busy.has(job.slot)) {
      throw new DxpuError(
        'failed_precondition',
        `the accelerator of slot ${job.slot} is running another job; wait for it`,
      );
    }
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
      const { task, expected } = prepare(job, driver, prng);
      const begin = performance.now();
      const result = await this.#node.run(task);
      const timeNs = (performance.now() - begin) * 1e6;
      timesNs.push(timeNs);
      elements = result.length;
      const wrong = firstDifference(result, await expected());
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

interface Prepared {
  readonly task: Task<Float32Array>;
  readonly expected: () => Promise<Float32Array>;
}

function prepare(job: RunParams, driver: AccelDriver, prng: Prng): Prepared {
  if (job.kernel === 'saxpy') {
    const a = prng.float() * 2 - 1;
    const x = randoms(prng, job.n);
    const y = randoms(prng, job.n);
    return {
      task: driver.saxpy(a, x, y),
      expected: () => Promise.resolve(plainSaxpy(a, x, y)),
    };
  }
  const { m, n, k } = job;
  const a = randoms(prng, m * k);
  const b = randoms(prng, k * n);
  return { task: driver.sgemm(m, n, k, a, b), expected: () => slicedSgemm(m, n, k, a, b) };
}

/** The plain computation, some rows at a time: a link must not seem dead for it. */
async function slicedSgemm(
  m: number,
  n: number,
  k: number,
  a: Float32Array,
  b: Float32Array,
): Promise<Float32Array> {
  const c = new Float32Array(m * n);
  const step = Math.max(1, Math.floor(SLICE_MULTIPLICATIONS / (n * k)));
  for (let row = 0; row < m; row += step) {
    const rows = Math.min(step, m - row);
    c.set(plainSgemm(rows, n, k, a.subarray(row * k, (row + rows) * k), b), row * n);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return c;
}

/** Values in (−1, 1), all exact in single precision. */
function randoms(prng: Prng, count: number): Float32Array {
  return Float32Array.from({ length: count }, () => prng.float() * 2 - 1);
}
