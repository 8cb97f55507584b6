/** What the options of `dxpu simulate` ask for, as a study. */
import { createHash } from 'node:crypto';
import { DxpuError } from '#base/errors';
import type { JobNeeds } from '#simulator/job-list';
import type { InputRow, Prices } from '#simulator/result';
import {
  hasPolicy,
  type StudyAxes,
  type StudyConstants,
  type StudyLists,
  type StudyPlan,
  type StudyUnit,
} from '#simulator/study';
import { UsageError } from './output.ts';
import { version } from './program-options.ts';
import { USUAL_IN_TIME, USUAL_OF_FEWEST } from './simulate-words.ts';
import { readWhole } from './whole-file.ts';

/** Begins the name of the price of one model. */
const GPU_OF = 'gpu:';

export interface StudyOptions {
  readonly policy: readonly string[];
  readonly design: StudyPlan['designs'];
  readonly seeds: readonly number[];
  readonly slots: readonly number[];
  readonly box: readonly number[];
  readonly reach: StudyAxes['reach'];
  readonly constraint: StudyAxes['constraint'];
  readonly nvlink?: readonly string[];
  readonly rack: readonly number[];
  readonly racksPerPod: readonly number[];
  readonly arrived: readonly number[];
  readonly overhead: readonly number[];
  readonly overheadOf?: readonly { readonly name: string; readonly pct: number }[];
  readonly overheadFrom?: readonly { readonly name: string; readonly value: string }[];
  readonly backfill: readonly number[];
  readonly gpuMtbf: readonly number[];
  readonly serverMtbf: readonly number[];
  readonly boxMtbf: readonly number[];
  readonly repair: readonly number[];
  readonly checkpoint: readonly number[];
  readonly rebind: readonly number[];
  readonly fewest?: boolean;
  readonly demand: readonly number[];
  readonly served: number;
  readonly scan: number;
  readonly price?: readonly { readonly name: string; readonly amount: number }[];
}

/** Throws `UsageError` for what does not go together, `DxpuError` for a file of overheads. */
export function planOf(options: StudyOptions, lists: StudyLists): StudyPlan {
  const { policy, design, seeds, fewest, constraint, nvlink } = options;
  for (const name of policy) {
    if (design.some((one) => hasPolicy(one, name))) continue;
    throw new UsageError(`--policy ${name} is for a pool: add pool to --design`);
  }
  for (const one of design) {
    if (policy.some((name) => hasPolicy(one, name))) continue;
    throw new UsageError(`--design ${one} has none of the policies named: add one to --policy`);
  }
  if (constraint.includes('nvlink') && nvlink === undefined) {
    throw new UsageError('--constraint nvlink needs --nvlink: the models whose boxes have it');
  }
  const models = modelsOf(lists.machines);
  const unknown = nvlink?.find((name) => !models.includes(name));
  if (unknown !== undefined) {
    const known = models.join(', ');
    throw new UsageError(`--nvlink ${unknown}: no machine has this model; there are ${known}`);
  }
  const inTime = lists.jobs !== undefined;
  if (inTime && fewest === true) {
    throw new UsageError(
      '--fewest is for requests without times: leave it out, or --timed and --jobs',
    );
  }
  const timed = inTime ? undefined : timedOption(options);
  if (timed !== undefined) {
    throw new UsageError(`${timed} is of jobs in time: add --timed, or give --jobs for --pods`);
  }
  const ofFewest = fewest === true ? undefined : fewestOption(options);
  if (ofFewest !== undefined) {
    throw new UsageError(`${ofFewest} is of the fewest hardware: add --fewest`);
  }
  return {
    designs: design,
    policies: policy,
    seeds,
    axes: axesOf(options),
    inTime,
    fewest: fewest === true,
  };
}

/** An option that asks of jobs in time for something else than usual: requests without times have none of it. */
function timedOption(options: StudyOptions): string | undefined {
  const isUnusual = (name: keyof typeof USUAL_IN_TIME): boolean =>
    options[name].some((value) => value !== USUAL_IN_TIME[name]);
  const given = {
    '--overhead': isUnusual('overhead'),
    '--overhead-of': options.overheadOf !== undefined,
    '--overhead-from': options.overheadFrom !== undefined,
    '--backfill': isUnusual('backfill'),
    '--gpu-mtbf': isUnusual('gpuMtbf'),
    '--server-mtbf': isUnusual('serverMtbf'),
    '--box-mtbf': isUnusual('boxMtbf'),
    '--repair': isUnusual('repair'),
    '--checkpoint': isUnusual('checkpoint'),
    '--rebind': isUnusual('rebind'),
  };
  return Object.entries(given).find(([, isGiven]) => isGiven)?.[0];
}

/** The same of what `--fewest` alone looks at. */
function fewestOption({ demand, served, scan, price }: StudyOptions): string | undefined {
  if (price !== undefined) return '--price';
  if (demand.some((one) => one !== USUAL_OF_FEWEST.demand)) return '--demand';
  if (served !== USUAL_OF_FEWEST.served) return '--served';
  return scan === USUAL_OF_FEWEST.scan ? undefined : '--scan';
}

function axesOf(options: StudyOptions): StudyAxes {
  return {
    untilPct: options.arrived,
    demandPct: options.demand,
    reach: options.reach,
    slots: options.slots,
    box: options.box,
    constraint: options.constraint,
    rack: options.rack,
    racksPerPod: options.racksPerPod,
    overheadPct: options.overhead,
    backfill: options.backfill,
    gpuMtbfH: options.gpuMtbf,
    serverMtbfH: options.serverMtbf,
    boxMtbfH: options.boxMtbf,
    repairH: options.repair,
    checkpointMin: options.checkpoint,
    rebindS: options.rebind,
  };
}

/** Throws `UsageError` for what may be given again, and has one name twice. */
function checkOnce(option: string, given: readonly { readonly name: string }[]): void {
  const names = given.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) < at);
  if (twice !== undefined) throw new UsageError(`${option} ${twice} is there twice: give it once`);
}

/** Throws `UsageError` for prices that are there twice, of unknown models, or of too few. */
function pricesOf(
  { price }: Pick<StudyOptions, 'price'>,
  { machines }: StudyLists,
): Prices | undefined {
  if (price === undefined) return undefined;
  checkOnce('--price', price);
  const given = new Map(price.map(({ name, amount }) => [name, amount]));
  const known = modelsOf(machines);
  const models: Record<string, number> = {};
  for (const [name, amount] of given) {
    if (!name.startsWith(GPU_OF)) continue;
    const model = name.slice(GPU_OF.length);
    if (!known.includes(model)) {
      const there = known.join(', ');
      throw new UsageError(`--price ${name}: no machine has this model; there are ${there}`);
    }
    models[model] = amount;
  }
  const gpu = given.get('gpu');
  const without = known.find((model) => models[model] === undefined);
  if (gpu === undefined && without !== undefined) {
    throw new UsageError(`--price has none of ${without}: add gpu:${without}=N, or gpu=N for all`);
  }
  return {
    ...(gpu === undefined ? {} : { gpu }),
    models,
    server: given.get('server') ?? 0,
    box: given.get('box') ?? 0,
    port: given.get('port') ?? 0,
  };
}

function modelsOf(machines: StudyLists['machines']): string[] {
  return [...new Set(machines.map(({ model }) => model).filter((name) => name !== ''))];
}

export function constantsOf(options: StudyOptions, lists: StudyLists): StudyConstants {
  const prices = pricesOf(options, lists);
  const { overheadOf = [], overheadFrom = [] } = options;
  checkOnce('the overhead of', [...overheadOf, ...overheadFrom]);
  const given = [
    ...overheadOf,
    ...overheadFrom.map(({ name, value }) => ({ name, pct: predictedPct(value) })),
  ];
  return {
    nvlinkModels: options.nvlink ?? [],
    overheadOf: Object.fromEntries(given.map(({ name, pct }) => [name, pct])),
    servedPct: options.served,
    scan: options.scan,
    ...(prices === undefined ? {} : { prices }),
  };
}

/** The overhead of the one prediction in `file`: that of the replay, or the additive one without it. */
function predictedPct(file: string): number {
  const lines = readWhole(file)
    .toString()
    .split('\n')
    .filter((line) => line.trim() !== '');
  const wrong = (what: string): DxpuError =>
    new DxpuError('invalid_argument', `${file}: ${what}`, { details: { file } });
  if (lines.length !== 1) {
    throw wrong(`${lines.length} lines, where one of dxpu predict --output json is needed`);
  }
  let value: Readonly<Record<string, { readonly overheadPct?: unknown } | null | string>>;
  try {
    value = JSON.parse(lines[0] ?? '');
  } catch {
    throw wrong('it is no JSON; make it with dxpu predict --output json');
  }
  if (value['schema'] !== 'dxpu.predict/1') throw wrong('it is no answer of dxpu predict');
  const { replay, additive } = value;
  for (const estimate of [replay, additive]) {
    if (typeof estimate !== 'object' || estimate === null) continue;
    const { overheadPct } = estimate;
    if (typeof overheadPct === 'number' && overheadPct >= 0) return overheadPct;
  }
  throw wrong('it has no overhead');
}

/** Tells studies apart: by lists and what they leave open, units, constants and version. */
export function studyId(
  inputs: readonly InputRow[],
  needs: JobNeeds,
  constants: StudyConstants,
  units: readonly StudyUnit[],
): string {
  const lists = inputs.map(({ role, sha256, entries }) => [role, sha256, entries]);
  const all = JSON.stringify([version(), lists, needs, constants, units]);
  return createHash('sha256').update(all).digest('hex').slice(0, 16);
}
