/** How far an answer is to be trusted, by stated rules. */
import type { Timeline } from '#trace/timeline';
import type { CONFIDENCE } from './prediction.ts';

export interface Evidence {
  readonly selfErrorPct: number;
  readonly residualPct: number;
  readonly unexplainedPct: number;
  /** Of all edges, percent. */
  readonly violationsPct: number;
  /** Of all work, percent: launched outside the trace, or never joined. */
  readonly unlaunchedPct: number;
  /** Of all events, percent: dropped in reading. */
  readonly droppedPct: number;
  readonly rangePct: readonly [number, number];
  readonly hasStacks: boolean;
}

/** Warnings of readers that count places where events are missing. */
const LOSSES: readonly string[] = ['truncated', 'damaged'];

type Grade = (typeof CONFIDENCE)[number];

interface Rule {
  readonly figure: (evidence: Evidence) => number;
  /** Above the first the answer is no longer high, above the second it is low. */
  readonly limits: readonly [number, number];
  readonly text: (value: string) => string;
}

/** The table in docs/predict-model.md says the same. */
const RULES: readonly Rule[] = [
  {
    figure: ({ selfErrorPct }) => Math.abs(selfErrorPct),
    limits: [1, 5],
    text: (value) => `the replay misses the recorded native span by ${value} %`,
  },
  {
    figure: ({ unexplainedPct }) => unexplainedPct,
    limits: [15, 40],
    text: (value) =>
      `no known edge explains ${value} % of the critical path: record synchronisation too (for Kineto enable_cuda_sync_events, for nsys --cuda-event-trace=true)`,
  },
  {
    figure: ({ residualPct }) => residualPct,
    limits: [50, 200],
    text: (value) =>
      `starts and wait ends lie after their latest predecessor by ${value} % of the span in sum`,
  },
  {
    figure: ({ violationsPct }) => violationsPct,
    limits: [2, 10],
    text: (value) => `recorded times contradict ${value} % of the edges`,
  },
  {
    figure: ({ unlaunchedPct }) => unlaunchedPct,
    limits: [5, 50],
    text: (value) =>
      `${value} % of the GPU work has no launch in the trace: begin recording before the work is launched`,
  },
  {
    figure: ({ droppedPct }) => droppedPct,
    limits: [0.1, 5],
    text: (value) => `${value} % of the events were dropped in reading`,
  },
  {
    figure: ({ rangePct: [low, high] }) => ((high - low) / Math.max(5, high)) * 100,
    limits: [20, 60],
    text: (value) =>
      `inferred dependencies move the answer by ${value} % of itself: record synchronisation too (for Kineto enable_cuda_sync_events, for nsys --cuda-event-trace=true)`,
  },
];

/** The worst grade of any rule, and the rules that lowered it, the worst first. */
export function gradeOf(evidence: Evidence): {
  readonly confidence: Grade;
  readonly confidenceReasons: string[];
} {
  const low: string[] = [];
  const medium: string[] = [];
  for (const { figure, limits, text } of RULES) {
    const value = figure(evidence);
    if (value > limits[1]) low.push(text(rounded(value)));
    else if (value > limits[0]) medium.push(text(rounded(value)));
  }
  if (evidence.hasStacks) {
    medium.push(
      'stacks or shapes were recorded, which inflates the gaps between calls: record without them',
    );
  }
  const confidence = low.length > 0 ? 'low' : medium.length > 0 ? 'medium' : 'high';
  return { confidence, confidenceReasons: [...low, ...medium] };
}

/** Of all events read, percent. */
export function droppedPct(timeline: Timeline): number {
  const dropped = timeline.warnings
    .filter(({ code }) => code.startsWith('dropped') || LOSSES.includes(code))
    .reduce((sum, { count }) => sum + count, 0);
  const kept = timeline.calls.count + timeline.work.count;
  return dropped === 0 ? 0 : (100 * dropped) / (dropped + kept);
}

function rounded(value: number): string {
  return value >= 10 ? value.toFixed(0) : value.toFixed(1);
}
