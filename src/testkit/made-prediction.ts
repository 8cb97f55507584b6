/** A prediction with round numbers, for what shows predictions. */
import type { Causes, LinkFigures, Prediction, TraceFigures } from '#perfmodel/prediction';

export interface MadePrediction {
  readonly trace?: Partial<TraceFigures>;
  readonly link?: Partial<LinkFigures>;
  /** Everything else as it is. */
  readonly rest?: Partial<Omit<Prediction, 'trace' | 'link'>>;
}

/** 100 ms with 10 ms lost to the replay and 20 ms to the additive estimate: 10 % and 20 %. */
const REPLAY_CAUSES: Causes = {
  doorbellNs: 1e6,
  fetchNs: 6e6,
  htodNs: 2e6,
  dtohNs: 0,
  peerNs: 0,
  waitNs: 1e6,
};
const ADDITIVE_CAUSES: Causes = {
  doorbellNs: 5e6,
  fetchNs: 10e6,
  htodNs: 3e6,
  dtohNs: 0.5e6,
  peerNs: 0,
  waitNs: 1.5e6,
};
const NO_COPIES = { count: 0, bytes: 0 };

export function madePrediction({ trace, link, rest }: MadePrediction = {}): Prediction {
  return {
    schema: 'dxpu.predict/1',
    trace: {
      file: 'traces/step.json.gz',
      format: 'kineto',
      gpus: ['NVIDIA A100'],
      spanNs: 100e6,
      threads: 2,
      streams: 3,
      hostCalls: 4000,
      kernels: 1500,
      kernelsAtMost10us: 600,
      graphLaunches: 0,
      submissions: 1785,
      hostWaits: 20,
      queries: 7,
      memsets: 5,
      copies: {
        htod: { count: 24, bytes: 63e6 },
        dtoh: { count: 8, bytes: 4096 },
        dtod: NO_COPIES,
        htoh: NO_COPIES,
        ptop: NO_COPIES,
        other: NO_COPIES,
      },
      gpuBusyPct: 72.4,
      submissionsPerS: 17850,
      hostWaitsPerS: 200,
      iterations: 4,
      ...trace,
    },
    link: {
      name: 'dxpu-6.8us',
      nativeRttNs: 1200,
      addedRttNs: 5600,
      rttNs: 6800,
      tags: 140,
      mrrsBytes: 128,
      mpsBytes: 128,
      generation: 3,
      lanes: 16,
      networkGbps: 200,
      sharing: 1,
      fetches: 1,
      nativeReadGbytesPerS: 12.1,
      pooledReadGbytesPerS: 2.64,
      nativeWriteGbytesPerS: 11.76,
      pooledWriteGbytesPerS: 11.76,
      recalled: ['tags', 'mrrsBytes', 'nativeRttNs', 'addedRttNs'],
      ...link,
    },
    additive: { addedNs: 20e6, overheadPct: 20, causes: ADDITIVE_CAUSES },
    replay: {
      nativeSpanNs: 100e6,
      spanNs: 110e6,
      addedNs: 10e6,
      overheadPct: 10,
      selfErrorPct: 0.2,
      residualPct: 1.5,
      violations: 3,
      rangePct: [9, 12],
      unexplainedPct: 4.5,
      confidence: 'medium',
      confidenceReasons: ['12 waits do not say what they waited for: record cuda_sync events'],
      causes: REPLAY_CAUSES,
    },
    verdict: {
      budgetPct: 10,
      within: 'unsure',
      text: 'The replay loses 10 % of the native time, the budget is 10 %.',
    },
    budgets: [
      { overheadPct: 1, additiveMaxRttNs: 1480, replayMaxRttNs: 1760 },
      { overheadPct: 5, additiveMaxRttNs: 2600, replayMaxRttNs: 4000 },
      { overheadPct: 10, additiveMaxRttNs: 4000, replayMaxRttNs: 6800 },
      { overheadPct: 20, additiveMaxRttNs: 6800, replayMaxRttNs: 12400 },
    ],
    causes: REPLAY_CAUSES,
    advice: [
      {
        change: 'graphs',
        text: 'Launch runs of short kernels as graphs: 1,100 submissions become 40.',
        additiveOverheadPct: 9,
        replayOverheadPct: 4,
        savesPct: 6,
      },
      {
        change: 'more-tags',
        text: 'Let the device have 256 reads outstanding.',
        additiveOverheadPct: 18,
        replayOverheadPct: 9,
        savesPct: 1,
      },
    ],
    iterations: {
      label: '4 marked iterations',
      startNs: 10e6,
      endNs: 90e6,
      nativeSpanNs: 80e6,
      submissions: 1600,
      hostWaits: 16,
      additive: { addedNs: 18e6, overheadPct: 22.5 },
      replay: { addedNs: 9e6, overheadPct: 11.25 },
    },
    warnings: [{ code: 'shapes', count: 1, message: 'The trace was taken with shapes.' }],
    ...rest,
  };
}

/** No CPU side: the additive estimate alone. */
export function madeWithoutReplay(made: MadePrediction = {}): Prediction {
  return madePrediction({
    ...made,
    rest: {
      replay: null,
      replayReason: 'the trace has no calls of the host',
      causes: ADDITIVE_CAUSES,
      budgets: [
        {
          overheadPct: 1,
          additiveMaxRttNs: null,
          additiveReason: 'unreachable',
          replayMaxRttNs: null,
          replayReason: 'no-replay',
        },
        {
          overheadPct: 10,
          additiveMaxRttNs: null,
          additiveReason: 'unlimited',
          replayMaxRttNs: null,
          replayReason: 'no-replay',
        },
      ],
      iterations: null,
      ...made.rest,
    },
  });
}
