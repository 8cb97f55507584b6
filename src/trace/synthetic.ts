/**
 * Small made-up traces of typical workloads, for examples and tests where no real one is at hand. The
 * same name and seed give the same timeline on every machine. Its format says `synthetic`, and whatever
 * shows it has to say so.
 */
import { Prng } from '#base/prng';
import {
  type SyntheticCall,
  SyntheticRun,
  type SyntheticSink,
  type SyntheticWork,
} from './synthetic-run.ts';
import type { Timeline } from './timeline.ts';
import { TimelineBuilder } from './timeline-builder.ts';

interface Workload {
  /** One line for people. */
  readonly about: string;
  readonly run: (run: SyntheticRun) => void;
}

const US = 1_000;
const MB = 1_000_000;

const GEMM = 'void gemm_fp16_nn<128, 128, 32, 3>(half const*, half const*, half*, int, int, int)';
const ELEMENTWISE = 'void elementwise_kernel<4, AddFunctor<float>>(int, AddFunctor<float>, float*)';
const NORM = 'void layer_norm_forward<float, 256>(float const*, float const*, float*, int, float)';
const SOFTMAX = 'void softmax_warp_forward<half, float, 10>(half*, half const*, int, int)';
const ATTENTION = 'void flash_attention_forward<half, 128, 64, true>(AttentionParameters)';
const OPTIMIZER = 'void multi_tensor_adam<float, 512>(TensorList<4>, float, float, float, int)';

function layer(run: SyntheticRun, lowUs: number, highUs: number): void {
  const long = (): number => run.prng.between(lowUs * US, highUs * US);
  run.kernel('aten::layer_norm', NORM, Math.round(long() / 4));
  run.kernel('aten::linear', GEMM, long());
  run.kernel('aten::attention', ATTENTION, long());
  run.kernel('aten::linear', GEMM, long());
  run.kernel('aten::add_', ELEMENTWISE, Math.round(long() / 4));
}

/** Exported for the writer of large files, which repeats it. */
export function trainingStep(run: SyntheticRun, step: number): void {
  run.iteration(`ProfilerStep#${step}`, () => {
    run.compute('enumerate(DataLoader)#_MultiProcessingDataLoaderIter', 120 * US);
    run.copy('HtoD', 38_535_168, 'Pinned');
    run.copy('HtoD', 2_048, 'Pinned');
    for (let one = 0; one < 12; one += 1) layer(run, 80, 420);
    run.switchTo(1);
    for (let one = 0; one < 24; one += 1) layer(run, 80, 420);
    run.switchTo(0);
    run.memset(4_096);
    for (let one = 0; one < 20; one += 1) {
      run.kernel('Optimizer.step#AdamW.step', OPTIMIZER, run.prng.between(30 * US, 60 * US));
    }
    run.kernel('aten::mean', ELEMENTWISE, 4 * US);
    run.copy('DtoH', 4, 'Pageable');
    run.synchronize('cudaStreamSynchronize');
  });
}

const WORKLOADS = {
  training: {
    about: 'training with a deep queue: the host is far ahead of the GPU and waits once a step',
    run: (run): void => {
      for (let step = 1; step <= 4; step += 1) trainingStep(run, step);
    },
  },
  inference: {
    about:
      'inference bound by latency: short kernels, each waited for by the next, and a wait a request',
    run: (run): void => {
      for (let request = 1; request <= 24; request += 1) {
        run.iteration(`ProfilerStep#${request}`, () => {
          run.compute('tokenize', 60 * US);
          run.copy('HtoD', 16_384, 'Pageable');
          for (let one = 0; one < 12; one += 1) layer(run, 2, 7);
          run.kernel('aten::softmax', SOFTMAX, 3 * US);
          run.copy('DtoH', 4_000, 'Pageable');
          run.synchronize('cudaStreamSynchronize');
        });
      }
    },
  },
  'graph-decode': {
    about: 'decoding of tokens by one graph launch each: hundreds of kernels for one submission',
    run: (run): void => {
      for (let token = 1; token <= 32; token += 1) {
        run.iteration(`ProfilerStep#${token}`, () => {
          run.compute('schedule', 150 * US);
          run.copy('HtoD', 4_096, 'Pinned');
          const kernels = Array.from({ length: 320 }, (_, index) => ({
            name: index % 5 === 0 ? GEMM : index % 5 === 1 ? ATTENTION : ELEMENTWISE,
            durationNs: run.prng.between(3 * US, index % 5 < 2 ? 40 * US : 8 * US),
          }));
          run.graph(kernels);
          run.copy('DtoH', 512, 'Pinned');
          run.synchronize('cudaStreamSynchronize');
        });
      }
    },
  },
  'copy-loader': {
    about: 'a loader that copies much each way through pageable memory, with little to compute',
    run: (run): void => {
      for (let batch = 1; batch <= 16; batch += 1) {
        run.iteration(`ProfilerStep#${batch}`, () => {
          run.compute('decode', 400 * US);
          run.copy('HtoD', 48 * MB, 'Pageable', 'cudaMemcpy');
          run.kernel('resize', ELEMENTWISE, run.prng.between(300 * US, 500 * US));
          run.kernel('normalize', NORM, run.prng.between(150 * US, 250 * US));
          run.copy('DtoH', 12 * MB, 'Pageable', 'cudaMemcpy');
        });
      }
    },
  },
} as const satisfies Readonly<Record<string, Workload>>;

export type SyntheticName = keyof typeof WORKLOADS;
export const SYNTHETIC_NAMES = Object.keys(WORKLOADS) as readonly SyntheticName[];

export function isSyntheticName(name: string): name is SyntheticName {
  return Object.hasOwn(WORKLOADS, name);
}

/** One line about the workload. */
export function syntheticAbout(name: SyntheticName): string {
  return WORKLOADS[name].about;
}

/** `seed` is any safe integer. */
export function syntheticTrace(name: SyntheticName, seed: number): Timeline {
  const sink = new BuilderSink();
  WORKLOADS[name].run(new SyntheticRun(sink, new Prng(seed)));
  return sink.builder.finish();
}

class BuilderSink implements SyntheticSink {
  readonly builder = new TimelineBuilder('synthetic');

  constructor() {
    this.builder.gpu(0, 'synthetic GPU');
  }

  call(call: SyntheticCall): void {
    const thread = this.builder.thread('1', String(call.thread + 1));
    const name = this.builder.name(call.name);
    this.builder.addCall(thread, name, call.startNs, call.durationNs, call.correlation);
  }

  work(work: SyntheticWork): void {
    this.builder.addWork(
      this.builder.stream(0, String(work.stream)),
      work.kind,
      this.builder.name(work.name),
      work.startNs,
      work.durationNs,
      work.correlation,
      work.bytes,
      work.flags,
    );
  }

  iteration(label: string, startNs: number, endNs: number): void {
    this.builder.addIteration(label, startNs, endNs);
  }

  operator(): void {}
}
