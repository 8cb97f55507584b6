/**
 * What the model answers, as the schema that machines read (`dxpu.predict/1`): one object for each
 * trace and link. Times are nanoseconds, rates GB/s (10^9), shares percent; a figure that could not be
 * given is null, and a field beside it says why.
 *
 * Changes that only add fields keep the number; all others raise it.
 */
import { z } from 'zod';

export const PREDICTION_SCHEMA = 'dxpu.predict/1';

const ns = z.number();
const count = z.int().min(0);
const percent = z.number();

const copies = z.object({
  count,
  bytes: z.number().min(0),
});

/** What the file holds: all of it, whichever window the overhead is taken over. */
export const traceFigures = z.object({
  /** The file as the user named it. */
  file: z.string(),
  format: z.enum(['kineto', 'nsys', 'nvprof', 'tensorflow', 'synthetic']),
  /** Names of the GPUs, as far as the trace tells. */
  gpus: z.array(z.string()),
  /** From the first to the last event of host API or GPU work. */
  spanNs: ns,
  /** Host threads that call the API. */
  threads: count,
  /** Streams with work. */
  streams: count,
  hostCalls: count,
  kernels: count,
  /** Kernels of at most 10 µs, as a count. */
  kernelsAtMost10us: count,
  /** Graph launch calls. */
  graphLaunches: count,
  /** GPU work under one launch call and its correlation id; see `WorkColumns.submission`. */
  submissions: count,
  /** Device, context, stream and event synchronises, blocking copies, async DtoH copies into pageable memory. */
  hostWaits: count,
  /** Event and stream queries. */
  queries: count,
  memsets: count,
  copies: z.object({
    htod: copies,
    dtoh: copies,
    dtod: copies,
    htoh: copies,
    ptop: copies,
    other: copies,
  }),
  /** Share of the GPU span (first to last work of a device) in which it works, averaged over devices; null without work. */
  gpuBusyPct: percent.nullable(),
  submissionsPerS: z.number().nullable(),
  hostWaitsPerS: z.number().nullable(),
  /** Iterations the trace marks. */
  iterations: count,
});

export const linkFigures = z.object({
  name: z.string(),
  nativeRttNs: ns,
  addedRttNs: ns,
  /** Native and added. */
  rttNs: ns,
  tags: count,
  mrrsBytes: count,
  mpsBytes: count,
  generation: count,
  lanes: count,
  /** Null: no network, or one that does not limit. */
  networkGbps: z.number().nullable(),
  /** GPUs that share the path. */
  sharing: count,
  /** DMA reads a submission needs, one after another. */
  fetches: count,
  /** Payload rate of long copies, natively and pooled. */
  nativeReadGbytesPerS: z.number(),
  pooledReadGbytesPerS: z.number(),
  nativeWriteGbytesPerS: z.number(),
  pooledWriteGbytesPerS: z.number(),
  /** Fields whose value is recalled rather than confirmed. */
  recalled: z.array(z.string()),
});

/** Added time by cause; the parts sum to `addedNs` of the additive estimate. */
export const causes = z.object({
  /** Half an added round trip a submission, for the doorbell. */
  doorbellNs: ns,
  /** Command fetches. */
  fetchNs: ns,
  /** HtoD copies: the round trip each and the slower rate. */
  htodNs: ns,
  dtohNs: ns,
  /** Peer copies across boxes; 0 unless asked for. */
  peerNs: ns,
  /** Half an added round trip a host wait. */
  waitNs: ns,
});

export const additive = z.object({
  addedNs: ns,
  /** Of the native span. */
  overheadPct: percent.nullable(),
  causes,
});

export const CONFIDENCE = ['high', 'medium', 'low'] as const;

export const replay = z.object({
  /** Span of the replay at the native round trip. */
  nativeSpanNs: ns,
  /** Span of the replay on the link. */
  spanNs: ns,
  addedNs: ns,
  overheadPct: percent,
  /** (nativeSpanNs − trace.spanNs) ÷ trace.spanNs. */
  selfErrorPct: percent,
  /** Time by which starts and wait ends lie after their latest predecessor, as a share of the span. */
  residualPct: percent,
  /** Edges that recorded times contradict. */
  violations: count,
  /** Overhead without and with inferred dependencies, the lower first. */
  rangePct: z.tuple([percent, percent]),
  /** Share of the predicted critical path that no known edge explains. */
  unexplainedPct: percent,
  confidence: z.enum(CONFIDENCE),
  /** The rules that lowered the confidence, and what to record next time. */
  confidenceReasons: z.array(z.string()),
  /** Added time by cause along the critical path. */
  causes,
});

export const budget = z.object({
  overheadPct: percent,
  /** The largest whole round trip that keeps the overhead; null when unreachable or unlimited. */
  additiveMaxRttNs: ns.nullable(),
  replayMaxRttNs: ns.nullable(),
  /** Why a figure is null. */
  additiveReason: z.enum(['unreachable', 'unlimited', 'no-span']).optional(),
  replayReason: z.enum(['unreachable', 'unlimited', 'no-replay']).optional(),
});

export const advice = z.object({
  /** Stable, for machines: `graphs`, `pinned-copies`, `fewer-waits`, `more-tags`, `larger-reads`, `nearer-path`, … */
  change: z.string(),
  /** What to do, for people. */
  text: z.string(),
  /** Overhead with the change, measured by running the model again. */
  additiveOverheadPct: percent.nullable(),
  replayOverheadPct: percent.nullable(),
  /** Points of overhead it saves, of the replay where there is one. */
  savesPct: percent,
});

export const warning = z.object({ code: z.string(), count, message: z.string() });

/** Overhead over a part of the trace: the marked iterations together, or one of them. */
export const windowFigures = z.object({
  label: z.string(),
  startNs: ns,
  endNs: ns,
  nativeSpanNs: ns,
  submissions: count,
  hostWaits: count,
  additive: z.object({ addedNs: ns, overheadPct: percent.nullable() }),
  replay: z.object({ addedNs: ns, overheadPct: percent }).nullable(),
});

/** The same trace at another round trip of the same link, for plots. */
export const curvePoint = z.object({
  /** Whole round trip. */
  rttNs: ns,
  additiveOverheadPct: percent.nullable(),
  replayOverheadPct: percent.nullable(),
});

export const prediction = z.object({
  schema: z.literal(PREDICTION_SCHEMA),
  trace: traceFigures,
  link: linkFigures,
  additive,
  /** Null where the trace lacks what replay needs; `replayReason` says what. */
  replay: replay.nullable(),
  replayReason: z.string().optional(),
  /** Against the budget asked for, by the replay where there is one. */
  verdict: z.object({
    budgetPct: percent,
    /** Whether the overhead is within the budget; `unsure` when the two estimates or the range disagree. */
    within: z.enum(['yes', 'no', 'unsure']),
    text: z.string(),
  }),
  budgets: z.array(budget),
  /** Same as `replay.causes` where there is a replay, else `additive.causes`. */
  causes,
  advice: z.array(advice),
  /** All marked iterations together; null where none are marked. */
  iterations: windowFigures.nullable(),
  /** Each of them, when asked for. */
  perIteration: z.array(windowFigures).optional(),
  /** By rising round trip, when asked for. */
  curve: z.array(curvePoint).optional(),
  warnings: z.array(warning),
});

export type Prediction = z.infer<typeof prediction>;
export type Causes = z.infer<typeof causes>;
export type TraceFigures = z.infer<typeof traceFigures>;
export type LinkFigures = z.infer<typeof linkFigures>;
export type WindowFigures = z.infer<typeof windowFigures>;
export type Advice = z.infer<typeof advice>;
export type Budget = z.infer<typeof budget>;
