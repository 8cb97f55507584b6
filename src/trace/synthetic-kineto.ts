/**
 * Writes made-up training as a Kineto trace of a wanted size, laid out as the PyTorch profiler of 2024
 * does it: operators, API calls, GPU work and the flows between them, times in µs with three decimals
 * since the base time.
 */
import { Prng } from '#base/prng';
import { trainingStep } from './synthetic.ts';
import {
  type SyntheticCall,
  SyntheticRun,
  type SyntheticSink,
  type SyntheticWork,
} from './synthetic-run.ts';
import { WORK_KIND } from './timeline.ts';

const PIECE = 1 << 18;
const BASE_TIME_NS = '1767225600000000000';
const HOST_PID = 4711;

const HEAD = `{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "synthetic GPU", "totalGlobalMem": 85174583296,
      "computeMajor": 8, "computeMinor": 0, "warpSize": 32, "numSms": 108
    }
  ],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": ${BASE_TIME_NS},
  "traceEvents": [
  {
    "name": "process_name", "ph": "M", "ts": 0.000, "pid": ${HOST_PID}, "tid": 0,
    "args": {
      "name": "python3"
    }
  }`;
const TAIL = `
  ],
  "traceName": "synthetic.json"
}
`;

/**
 * Pieces of one file of `sizeBytes` or a step (some hundred kB) more, never all in memory. The text is
 * ASCII. The same arguments give the same bytes.
 */
export function* syntheticKineto(
  sizeBytes: number,
  seed: number,
): Generator<string, void, undefined> {
  const sink = new TextSink();
  const run = new SyntheticRun(sink, new Prng(seed));
  let written = 0;
  let step = 0;
  while (written + sink.text.length + TAIL.length < sizeBytes || step === 0) {
    step += 1;
    trainingStep(run, step);
    if (sink.text.length < PIECE) continue;
    written += sink.text.length;
    yield sink.take();
  }
  yield sink.take() + TAIL;
}

/** Operators stand before the calls within them, as real traces have it in about that order. */
class TextSink implements SyntheticSink {
  text = HEAD;
  #id = 0;

  take(): string {
    const { text } = this;
    this.text = '';
    return text;
  }

  call({ thread, name, startNs, durationNs, correlation }: SyntheticCall): void {
    const place = `"pid": ${HOST_PID}, "tid": ${HOST_PID + thread}`;
    this.text += `,
  {
    "ph": "X", "cat": "cuda_runtime", "name": "${name}", ${place},
    "ts": ${us(startNs)}, "dur": ${us(durationNs)},
    "args": {
      "External id": ${this.#id}, "cbid": 211, "correlation": ${correlation}
    }
  },
  {
    "ph": "s", "id": ${correlation}, ${place}, "ts": ${us(startNs)},
    "cat": "ac2g", "name": "ac2g"
  }`;
  }

  work(work: SyntheticWork): void {
    const { stream, name, startNs, durationNs, correlation } = work;
    const isKernel = work.kind === WORK_KIND.kernel;
    const category = isKernel
      ? 'kernel'
      : work.kind === WORK_KIND.memset
        ? 'gpu_memset'
        : 'gpu_memcpy';
    const more = isKernel
      ? `"queued": 0, "device": 0, "context": 1,
      "stream": ${stream}, "correlation": ${correlation},
      "registers per thread": 32,
      "shared memory": 0,
      "blocks per SM": 9.481481,
      "warps per SM": 37.925926,
      "grid": [1024, 1, 1],
      "block": [128, 1, 1],
      "est. achieved occupancy %": 59`
      : `"device": 0, "context": 1,
      "stream": ${stream}, "correlation": ${correlation},
      "bytes": ${work.bytes}, "memory bandwidth (GB/s)": ${(work.bytes / durationNs).toFixed(6)}`;
    this.text += `,
  {
    "ph": "X", "cat": "${category}", "name": "${name}", "pid": 0, "tid": ${stream},
    "ts": ${us(startNs)}, "dur": ${us(durationNs)},
    "args": {
      "External id": ${this.#id}, ${more}
    }
  },
  {
    "ph": "f", "id": ${correlation}, "pid": 0, "tid": ${stream}, "ts": ${us(startNs)},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }`;
  }

  iteration(label: string, startNs: number, endNs: number): void {
    this.#operator('user_annotation', 0, label, startNs, endNs - startNs);
  }

  operator(thread: number, name: string, startNs: number, durationNs: number): void {
    // Operators call operators.
    this.#operator('cpu_op', thread, name, startNs, durationNs);
    this.#operator('cpu_op', thread, `${name}_impl`, startNs + 300, Math.max(0, durationNs - 600));
  }

  #operator(
    category: string,
    thread: number,
    name: string,
    startNs: number,
    durationNs: number,
  ): void {
    this.#id += 1;
    this.text += `,
  {
    "ph": "X", "cat": "${category}", "name": "${name}", "pid": ${HOST_PID}, "tid": ${HOST_PID + thread},
    "ts": ${us(startNs)}, "dur": ${us(durationNs)},
    "args": {
      "External id": ${this.#id}, "Record function id": 0, "Ev Idx": ${this.#id}
    }
  }`;
  }
}

/** Nanoseconds as µs with three decimals. */
function us(ns: number): string {
  const whole = Math.floor(ns / 1000);
  return `${whole}.${String(ns - whole * 1000).padStart(3, '0')}`;
}
