/**
 * A study: lists of machines and requests, and what is to be run on them. It falls into units that know
 * nothing of each other, so that they can run anywhere and in any order.
 */
import { Prng } from '#base/prng';
import { costOf, poolHardware, serverHardware } from './bill.ts';
import { gpusOf, type Machine, WHOLE_GPU } from './demand.ts';
import type { Design } from './design.ts';
import { fewestPooled, fewestServers } from './fewest.ts';
import { fill } from './fill.ts';
import type { Job } from './job-list.ts';
import { POOL_POLICIES, PoolDesign } from './pool-design.ts';
import { placed, type PoolShape, type Reach, takeApart, type Together } from './pool-hardware.ts';
import {
  type FewestRow,
  fillRun,
  type Prices,
  rounded,
  type SimulateRun,
  timedRun,
} from './result.ts';
import { SERVER_POLICIES, ServerDesign } from './server-design.ts';
import { runTimed, type TimedOptions } from './timed.ts';
import { drawArrivals, type Workload } from './workload.ts';

/** Read and checked. Demands of jobs are those of `workload.kinds`, the same objects. */
export interface StudyLists {
  readonly machines: readonly Machine[];
  readonly workload: Workload;
  /** Timed jobs: with them the study runs in time. */
  readonly jobs?: readonly Job[];
}

/** What holds for all units. */
export interface StudyConstants {
  readonly nvlinkModels: readonly string[];
  /** Percent, by class of job, in place of what is swept. */
  readonly overheadOf: Readonly<Record<string, number>>;
  /** Of the demand, what every seed must place for hardware to count as enough. */
  readonly servedPct: number;
  /** Smaller hardware tried after the bisection. */
  readonly scan: number;
  /** Of the fewest; every model of the list has one. */
  readonly prices?: Prices;
}

/** Values a sweep goes over, each with each. Of times 0 means never, and of checkpoints none. */
export interface StudyAxes {
  readonly untilPct: readonly number[];
  readonly demandPct: readonly number[];
  readonly reach: readonly Reach[];
  readonly slots: readonly number[];
  readonly box: readonly number[];
  readonly constraint: readonly Together[];
  readonly rack: readonly number[];
  readonly racksPerPod: readonly number[];
  readonly overheadPct: readonly number[];
  readonly backfill: readonly number[];
  readonly gpuMtbfH: readonly number[];
  readonly serverMtbfH: readonly number[];
  readonly boxMtbfH: readonly number[];
  readonly repairH: readonly number[];
  readonly checkpointMin: readonly number[];
  readonly rebindS: readonly number[];
}
type AxisName = keyof StudyAxes;

export interface StudyPlan {
  readonly designs: readonly ('server' | 'pool')[];
  readonly policies: readonly string[];
  readonly seeds: readonly number[];
  readonly axes: StudyAxes;
  readonly inTime: boolean;
  readonly fewest: boolean;
}

export interface StudyUnit {
  readonly kind: 'fill' | 'timed' | 'fewest';
  readonly design: 'server' | 'pool';
  readonly policy: string;
  readonly setting: Readonly<Record<string, string | number>>;
  /** One, except where the fewest are looked for. */
  readonly seeds: readonly number[];
}

export type UnitResult = { readonly run: SimulateRun } | { readonly fewest: FewestRow };

const POOL_AXES = ['reach', 'slots', 'box', 'constraint', 'rack', 'racksPerPod'] as const;
const TIME_AXES = ['backfill', 'gpuMtbfH', 'serverMtbfH', 'repairH', 'checkpointMin'] as const;
const POOL_TIME_AXES = ['overheadPct', 'boxMtbfH', 'rebindS'] as const;

/** Whether the design has a policy of this name. */
export function hasPolicy(design: StudyUnit['design'], policy: string): boolean {
  return Object.hasOwn(design === 'server' ? SERVER_POLICIES : POOL_POLICIES, policy);
}

/**
 * The units of a plan, runs first, always in the same order. What does not bear on a design is not
 * in its settings, so a sweep of it does not run it again.
 */
export function unitsOf(plan: StudyPlan): StudyUnit[] {
  const kinds: StudyUnit['kind'][] = [plan.inTime ? 'timed' : 'fill'];
  if (plan.fewest) kinds.push('fewest');
  return kinds.flatMap((kind) =>
    plan.designs.flatMap((design) =>
      plan.policies
        .filter((policy) => hasPolicy(design, policy))
        .flatMap((policy) =>
          settingsOf(plan.axes, axesOf(kind, design)).flatMap((setting) => {
            const unit = { kind, design, policy, setting };
            if (kind === 'fewest') return [{ ...unit, seeds: plan.seeds }];
            return plan.seeds.map((seed) => ({ ...unit, seeds: [seed] }));
          }),
        ),
    ),
  );
}

function axesOf(kind: StudyUnit['kind'], design: StudyUnit['design']): AxisName[] {
  const isPool = design === 'pool';
  const shape = isPool ? POOL_AXES : [];
  if (kind === 'fill') return ['untilPct', ...shape];
  if (kind === 'fewest') return ['demandPct', ...shape];
  return [...shape, ...TIME_AXES, ...(isPool ? POOL_TIME_AXES : [])];
}

function settingsOf(axes: StudyAxes, names: readonly AxisName[]): StudyUnit['setting'][] {
  return names.reduce<StudyUnit['setting'][]>(
    (settings, name) =>
      settings.flatMap((setting) =>
        [...new Set<string | number>(axes[name])].map((value) => ({ ...setting, [name]: value })),
      ),
    [{}],
  );
}

/** The same answer wherever and whenever it runs. Throws `invalid_argument` for lists that ask for no GPU. */
export function runUnit(lists: StudyLists, constants: StudyConstants, unit: StudyUnit): UnitResult {
  if (unit.kind === 'fewest') return { fewest: fewestOf(lists, constants, unit) };
  const { machines, workload, jobs = [] } = lists;
  const { design, policy, setting, seeds } = unit;
  const [seed = 0] = seeds;
  const hardware = { gpus: gpusOf(machines), servers: machines.length };
  const name = { design, policy, setting };
  const prng = new Prng(seed);
  if (unit.kind === 'timed') {
    const built = designOf(lists, constants, unit, prng.fork());
    const result = runTimed(built, jobs, timedOptions(constants, unit), prng.fork());
    return { run: timedRun(name, seed, hardware, result) };
  }
  const capacityMilli = hardware.gpus * WHOLE_GPU;
  const until = numberOf(setting, 'untilPct');
  const arrivals = drawArrivals(workload, prng.fork(), capacityMilli, until);
  const built = designOf(lists, constants, unit, prng.fork());
  return { run: fillRun(name, seed, hardware, fill(built, workload.kinds, arrivals)) };
}

function designOf(
  { machines, workload }: StudyLists,
  constants: StudyConstants,
  { design, policy, setting }: StudyUnit,
  prng: Prng,
): Design {
  if (design === 'server') {
    return new ServerDesign(machines, workload, known(SERVER_POLICIES[policy]), prng);
  }
  const here = placed(machines);
  const hardware = takeApart(here, here, shapeOf(setting, constants));
  return new PoolDesign(hardware, workload, known(POOL_POLICIES[policy]), prng);
}

function fewestOf(
  { machines, workload }: StudyLists,
  constants: StudyConstants,
  { design, policy, setting, seeds }: StudyUnit,
): FewestRow {
  const { servedPct: sharePct, scan, prices } = constants;
  const demandPct = numberOf(setting, 'demandPct');
  const input = { machines, workload, seeds, demandPct, sharePct, scan };
  const shape = shapeOf(setting, constants);
  const found =
    design === 'server'
      ? fewestServers(input, known(SERVER_POLICIES[policy]))
      : fewestPooled(input, known(POOL_POLICIES[policy]), shape);
  const asked = {
    design,
    policy,
    setting: { ...setting },
    seeds: seeds.length,
    demandGpus: rounded((gpusOf(machines) * demandPct) / 100),
    sharePct,
  };
  if (found === undefined) return { ...asked, gpus: null, servers: null };
  const { gpus, servers } = found;
  const hardware =
    design === 'server' ? serverHardware(machines, found) : poolHardware(machines, found, shape);
  const cost = prices === undefined ? {} : { cost: costOf(prices, servers, hardware) };
  return { ...asked, gpus, servers, ...hardware, ...cost };
}

function shapeOf(setting: StudyUnit['setting'], { nvlinkModels }: StudyConstants): PoolShape {
  return {
    reach: setting['reach'] as Reach,
    slotsPerHost: numberOf(setting, 'slots'),
    gpusPerBox: numberOf(setting, 'box'),
    machinesPerRack: numberOf(setting, 'rack'),
    racksPerPod: numberOf(setting, 'racksPerPod'),
    together: setting['constraint'] as Together,
    nvlinkModels,
  };
}

function timedOptions(
  { overheadOf }: StudyConstants,
  { design, setting }: StudyUnit,
): TimedOptions {
  const orNever = (name: AxisName): number => numberOf(setting, name) || Infinity;
  const swept = numberOf(setting, 'overheadPct');
  return {
    overheadPct: (workClass) => (design === 'server' ? 0 : (overheadOf[workClass] ?? swept)),
    backfillDepth: numberOf(setting, 'backfill'),
    failures: {
      gpuMtbfH: orNever('gpuMtbfH'),
      serverMtbfH: orNever('serverMtbfH'),
      boxMtbfH: orNever('boxMtbfH'),
      repairH: numberOf(setting, 'repairH'),
    },
    checkpointMs: orNever('checkpointMin') * 60_000,
    rebindMs: numberOf(setting, 'rebindS') * 1000,
  };
}

function numberOf(setting: StudyUnit['setting'], name: AxisName): number {
  return Number(setting[name] ?? 0);
}

function known<T>(policy: T | undefined): T {
  if (policy === undefined) throw new Error('a unit of a policy its design does not have');
  return policy;
}
