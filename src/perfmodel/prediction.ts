/**
 * What the model answers, as the schema that machines read (`dxpu.predict/1`): one object for each
 * trace and link. Times are nanoseconds, rates GB/s (10^9), shares percent; a figure that could not be
 * given is null, and a field beside it says why.
 *
 * Changes that only add fields keep the number; all others raise it.
 */
import { z } from 'zod';
import { linkSchema } from '#report/link-figures';
import { TRACE_FORMATS } from '#trace/timeline';

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
  file: z.string().describe('The file as the user named it.'),
  format: z.enum(TRACE_FORMATS),
  gpus: z.array(z.string()).describe('Names of the GPUs, as far as the trace tells.'),
  spanNs: ns.describe('From the first to the last event of host API or GPU work.'),
  threads: count.describe('Host threads that call the API.'),
  streams: count.describe('Streams with work.'),
  hostCalls: count,
  kernels: count,
  kernelsAtMost10us: count.describe('Kernels of at most 10 µs, as a count.'),
  graphLaunches: count.describe('Graph launch calls.'),
  submissions: count.describe(
    'Pieces of GPU work under one launch call and its correlation id: a kernel, copy or memset, or all of a graph launch.',
  ),
  hostWaits: count.describe(
    'Device, context, stream and event synchronises, blocking copies, async DtoH copies into pageable memory.',
  ),
  queries: count.describe('Event and stream queries.'),
  memsets: count,
  copies: z.object({
    htod: copies,
    dtoh: copies,
    dtod: copies,
    htoh: copies,
    ptop: copies,
    other: copies,
  }),
  gpuBusyPct: percent
    .nullable()
    .describe(
      'Share of the GPU span (first to last work of a device) in which it works, averaged over devices; null without work.',
    ),
  submissionsPerS: z.number().nullable(),
  hostWaitsPerS: z.number().nullable(),
  iterations: count.describe('Iterations the trace marks.'),
});

export const linkFigures = linkSchema.extend({
  fetches: count.describe('DMA reads a submission needs, one after another.'),
  nativeReadGbytesPerS: z.number().describe('Payload rate of long HtoD copies, natively.'),
  pooledReadGbytesPerS: z.number().describe('Payload rate of long HtoD copies over the link.'),
  nativeWriteGbytesPerS: z.number().describe('Payload rate of long DtoH copies, natively.'),
  pooledWriteGbytesPerS: z.number().describe('Payload rate of long DtoH copies over the link.'),
});

/** Added time by cause; the parts sum to `addedNs` of the additive estimate. */
export const causes = z.object({
  doorbellNs: ns.describe('Half an added round trip a submission, for the doorbell.'),
  fetchNs: ns.describe('Command fetches.'),
  htodNs: ns.describe('HtoD copies: the round trip each and the slower rate.'),
  dtohNs: ns,
  peerNs: ns.describe('Peer copies across boxes; 0 unless asked for.'),
  waitNs: ns.describe('Half an added round trip a host wait.'),
});

export const additive = z.object({
  addedNs: ns,
  overheadPct: percent.nullable().describe('Of the native span.'),
  causes,
});

export const CONFIDENCE = ['high', 'medium', 'low'] as const;

export const replay = z.object({
  nativeSpanNs: ns.describe('Span of the replay at the native round trip.'),
  spanNs: ns.describe('Span of the replay on the link.'),
  addedNs: ns,
  overheadPct: percent,
  selfErrorPct: percent.describe('(nativeSpanNs − trace.spanNs) ÷ trace.spanNs.'),
  residualPct: percent.describe(
    'Time by which starts and wait ends lie after their latest predecessor, as a share of the span.',
  ),
  violations: count.describe('Edges that recorded times contradict.'),
  rangePct: z
    .tuple([percent, percent])
    .describe('Overhead without and with inferred dependencies, the lower first.'),
  unexplainedPct: percent.describe(
    'Share of the predicted critical path that no known edge explains.',
  ),
  confidence: z.enum(CONFIDENCE),
  confidenceReasons: z
    .array(z.string())
    .describe('The rules that lowered the confidence, and what to record next time.'),
  causes: causes.describe('Added time by cause along the critical path; sums to addedNs.'),
});

export const budget = z.object({
  overheadPct: percent,
  additiveMaxRttNs: ns
    .nullable()
    .describe(
      'The largest whole round trip that keeps the overhead; null when unreachable or unlimited.',
    ),
  replayMaxRttNs: ns.nullable(),
  additiveReason: z
    .enum(['unreachable', 'unlimited', 'no-span'])
    .optional()
    .describe('Why a figure is null.'),
  replayReason: z.enum(['unreachable', 'unlimited', 'no-replay']).optional(),
});

export const advice = z.object({
  change: z
    .string()
    .describe(
      'Stable, for machines: `graphs`, `pinned-copies`, `fewer-waits`, `more-tags`, `larger-reads`, `nearer-path`, …',
    ),
  text: z.string().describe('What to do, for people.'),
  additiveOverheadPct: percent
    .nullable()
    .describe('Overhead with the change, measured by running the model again.'),
  replayOverheadPct: percent.nullable(),
  savesPct: percent.describe('Points of overhead it saves, of the replay where there is one.'),
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
  rttNs: ns.describe('Whole round trip.'),
  additiveOverheadPct: percent.nullable(),
  replayOverheadPct: percent.nullable(),
});

export const prediction = z.object({
  schema: z.literal(PREDICTION_SCHEMA),
  trace: traceFigures,
  link: linkFigures,
  additive,
  replay: replay
    .nullable()
    .describe('Null where the trace lacks what replay needs; `replayReason` says what.'),
  replayReason: z.string().optional(),
  /** Against the budget asked for, by the replay where there is one. */
  verdict: z.object({
    budgetPct: percent,
    within: z
      .enum(['yes', 'no', 'unsure'])
      .describe(
        'Whether the overhead is within the budget; `unsure` when the two estimates or the range disagree.',
      ),
    text: z.string(),
  }),
  budgets: z.array(budget),
  causes: causes.describe('Those of the replay where there is one, else of the additive estimate.'),
  advice: z.array(advice),
  iterations: windowFigures
    .nullable()
    .describe('All marked iterations together; null where none are marked.'),
  perIteration: z.array(windowFigures).optional().describe('Each of them, when asked for.'),
  curve: z.array(curvePoint).optional().describe('By rising round trip, when asked for.'),
  warnings: z.array(warning),
});

export type Prediction = z.infer<typeof prediction>;
export type Causes = z.infer<typeof causes>;
export type TraceFigures = z.infer<typeof traceFigures>;
export type LinkFigures = z.infer<typeof linkFigures>;
export type WindowFigures = z.infer<typeof windowFigures>;
export type Advice = z.infer<typeof advice>;
export type Budget = z.infer<typeof budget>;
