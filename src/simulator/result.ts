/** What a simulation answers, as JSON: `dxpu.simulate/1`. Shares are in percent of GPU capacity. */
import { z } from 'zod';
import { appendTo } from '#base/append-to';
import { noneUnplaced } from './design.ts';
import type { FillResult } from './fill.ts';
import { spreadOf } from './statistics.ts';
import type { TimedResult } from './timed-book.ts';

export const RESULT_SCHEMA = 'dxpu.simulate/1';

const count = z.int().nonnegative();
const percent = z.number().nonnegative();
const design = z.enum(['server', 'pool']);

const curvePoint = z.strictObject({ arrivedPct: percent, allocatedPct: percent });

const unplaced = z.strictObject({
  model: count,
  'no-cpu-beside-gpu': count,
  'no-slot': count,
  fragmentation: count,
  'no-gpu-beside-cpu': count,
});

/** What of a run is not in its seed: reach, slots per host, overhead, whatever a sweep varies. */
const setting = z.record(z.string(), z.union([z.string(), z.number()]));

/** Of jobs in time, as `TimedResult` says it; times in seconds. */
const timed = z.strictObject({
  jobs: count,
  impossible: count,
  waitMeanS: z.number().nonnegative(),
  waitMedianS: z.number().nonnegative(),
  wait95S: z.number().nonnegative(),
  waitMaxS: z.number().nonnegative(),
  turnaroundMeanS: z.number().nonnegative(),
  makespanS: z.number().nonnegative(),
  utilisationPct: percent,
  failures: count,
  restarts: count,
  rebinds: count,
  lostGpuHours: z.number().nonnegative(),
  overTime: z.array(
    z.strictObject({
      atS: z.number().nonnegative(),
      allocatedPct: percent,
      queued: z.number().nonnegative(),
    }),
  ),
});

const run = z.strictObject({
  design,
  policy: z.string(),
  seed: z.int(),
  setting,
  gpus: count,
  servers: count,
  requests: count,
  placed: count,
  unplaced,
  curve: z.array(curvePoint),
  timed: timed.optional(),
});

const summaryRow = z.strictObject({
  design,
  policy: z.string(),
  setting,
  seeds: count,
  arrivedPct: percent,
  allocatedPctMean: percent,
  allocatedPctStdev: percent,
});

const amount = z.number().nonnegative();

/** Of one unit each, in any one currency; the text of the option says what each holds. */
const prices = z.strictObject({
  gpu: amount.optional().describe('Of models that have no price of their own.'),
  models: z.record(z.string(), amount),
  server: amount.describe('A machine without its GPUs, as a server or as a host.'),
  box: amount.describe('Without its GPUs.'),
  port: amount.describe('On the network of the pool: one a host and one a box.'),
});

const cost = z.strictObject({
  gpus: amount,
  servers: amount,
  boxes: amount,
  ports: amount,
  total: amount,
});

/** The smallest hardware with which every seed places the share of the demand. */
const fewest = z.strictObject({
  design,
  policy: z.string(),
  setting,
  seeds: count,
  demandGpus: z.number().nonnegative(),
  sharePct: percent,
  gpus: count.nullable().describe('null: not even four times the hardware of the list serves it.'),
  servers: count.nullable(),
  boxes: count.optional().describe('Of a pool.'),
  gpusByModel: z.record(z.string(), count).optional(),
  cost: cost.optional().describe('With prices.'),
});

/** How much longer jobs may take in a pool until it saves nothing. */
const breakEven = z.strictObject({
  by: z.enum(['gpus', 'cost', 'wait']),
  policy: z.string().describe('Of the pool, as setting is.'),
  setting,
  server: z
    .strictObject({ policy: z.string(), setting })
    .describe('The servers that do best under the same settings.'),
  seeds: count,
  overheadPct: z
    .number()
    .nullable()
    .describe('Of waits a mean over seeds that have one, else null. Below 0: it saves nothing.'),
  overheadPctStdev: z.number().nonnegative().nullable().optional().describe('Of waits.'),
  sweptPct: z.strictObject({ least: percent, most: percent }).optional().describe('Of waits.'),
  none: count.optional().describe('Seeds whose jobs wait longer even at the least overhead swept.'),
  beyond: count.optional().describe('Seeds whose jobs wait no longer even at the most.'),
});

/** A list that was read: `sha256` of its bytes, and how many entries it has. */
const input = z.strictObject({
  role: z.enum(['nodes', 'pods', 'jobs']),
  name: z.string(),
  sha256: z.string(),
  entries: count,
  synthetic: z.boolean().describe('Made up: no cluster has such a list.'),
});

/** Runs of one part of a study, to be merged with the others: it has no summary. */
const shard = z.strictObject({
  part: z.int().positive(),
  of: z.int().positive(),
  study: z.string().describe('The same for all parts of one study, and for nothing else.'),
  runs: count.describe('Of the whole study.'),
  fewest: count.nullable().describe('Of the whole study; null if not asked for.'),
});

export const simulateResult = z.strictObject({
  schema: z.literal(RESULT_SCHEMA),
  shard: shard.optional(),
  inputs: z.array(input).optional(),
  runs: z.array(run),
  summary: z.array(summaryRow),
  fewest: z.array(fewest).optional(),
  prices: prices.optional(),
  breakEven: z.array(breakEven).optional(),
});

export type SimulateResult = z.infer<typeof simulateResult>;
export type SimulateRun = z.infer<typeof run>;
export type SummaryRow = z.infer<typeof summaryRow>;
export type FewestRow = z.infer<typeof fewest>;
export type Prices = z.infer<typeof prices>;
export type Cost = z.infer<typeof cost>;
export type BreakEvenRow = z.infer<typeof breakEven>;
export type InputRow = z.infer<typeof input>;

/** What names a run: those that differ in seed alone are averaged. */
export interface RunName {
  readonly design: SimulateRun['design'];
  readonly policy: string;
  readonly setting: SimulateRun['setting'];
}

/** A run of arrivals without departures, rounded to what is worth printing. */
export function fillRun(
  name: RunName,
  seed: number,
  hardware: { readonly gpus: number; readonly servers: number },
  filled: FillResult,
): SimulateRun {
  const { requests, placed, unplaced: refused, curve } = filled;
  return {
    ...name,
    seed,
    gpus: hardware.gpus,
    servers: hardware.servers,
    requests,
    placed,
    unplaced: { ...refused },
    curve: curve.map(({ arrivedPct, allocatedPct }) => ({
      arrivedPct,
      allocatedPct: rounded(allocatedPct),
    })),
  };
}

/** A run of jobs in time: it has no curve, and what could never run counts as not placed. */
export function timedRun(
  name: RunName,
  seed: number,
  hardware: { readonly gpus: number; readonly servers: number },
  result: TimedResult,
): SimulateRun {
  const seconds = (ms: number): number => rounded(ms / 1000);
  const { jobs, impossible, failures, restarts, rebinds } = result;
  return {
    ...name,
    seed,
    gpus: hardware.gpus,
    servers: hardware.servers,
    requests: jobs + impossible,
    placed: jobs,
    unplaced: noneUnplaced(),
    curve: [],
    timed: {
      jobs,
      impossible,
      waitMeanS: seconds(result.waitMeanMs),
      waitMedianS: seconds(result.waitMedianMs),
      wait95S: seconds(result.wait95Ms),
      waitMaxS: seconds(result.waitMaxMs),
      turnaroundMeanS: seconds(result.turnaroundMeanMs),
      makespanS: seconds(result.makespanMs),
      utilisationPct: rounded(result.utilisationPct),
      failures,
      restarts,
      rebinds,
      lostGpuHours: rounded(result.lostGpuHours),
      overTime: result.overTime.map(({ atMs, allocatedPct, queued }) => ({
        atS: seconds(atMs),
        allocatedPct: rounded(allocatedPct),
        queued: rounded(queued),
      })),
    },
  };
}

/** Four decimals. */
export function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}

/** Mean and spread over the seeds, at each arrived share that all seeds reach. */
export function summarise(runs: readonly SimulateRun[]): SummaryRow[] {
  const groups = new Map<string, SimulateRun[]>();
  for (const each of runs) {
    const key = JSON.stringify([each.design, each.policy, settingKey(each.setting)]);
    appendTo(groups, key, each);
  }
  return [...groups.values()].flatMap((group) => summariseGroup(group));
}

/** The same for equal settings, whatever the order of their keys. */
function settingKey(under: SimulateRun['setting']): string {
  return Object.keys(under)
    .toSorted()
    .map((key) => `${key}=${under[key]}`)
    .join(';');
}

function summariseGroup(group: readonly SimulateRun[]): SummaryRow[] {
  const first = group[0];
  if (first === undefined) return [];
  const byPct = new Map<number, number[]>();
  for (const { curve } of group) {
    for (const { arrivedPct, allocatedPct } of curve) {
      appendTo(byPct, arrivedPct, allocatedPct);
    }
  }
  const { design: of, policy, setting: under } = first;
  return [...byPct]
    .toSorted(([a], [b]) => a - b)
    .flatMap(([arrivedPct, values]) => {
      if (values.length < group.length) return [];
      const { mean, stdev } = spreadOf(values);
      const figures = { allocatedPctMean: rounded(mean), allocatedPctStdev: rounded(stdev) };
      return [{ design: of, policy, setting: under, seeds: group.length, arrivedPct, ...figures }];
    });
}
