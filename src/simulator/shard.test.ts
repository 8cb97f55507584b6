import { describe, expect, it } from 'vitest';
import { exampleNodes, examplePods } from './example-lists.ts';
import { readNodes } from './node-list.ts';
import { readPods } from './pod-list.ts';
import type { FewestRow, SimulateRun } from './result.ts';
import {
  inShard,
  mergeShards,
  readShard,
  type ShardFile,
  shardResult,
  wholeResult,
} from './shard.ts';
import {
  runUnit,
  type StudyAxes,
  type StudyConstants,
  type StudyPlan,
  type StudyUnit,
  unitsOf,
} from './study.ts';
import { workloadOf } from './workload.ts';

const machines = readNodes('nodes.csv', exampleNodes());
const workload = workloadOf(readPods('pods.csv', examplePods()).map(({ demand }) => demand));
const lists = { machines, workload };
const constants: StudyConstants = { nvlinkModels: [], overheadOf: {}, servedPct: 99, scan: 1 };
const axes: StudyAxes = {
  untilPct: [130],
  demandPct: [60],
  reach: ['rack', 'datacenter'],
  slots: [8, 16],
  box: [8],
  constraint: ['any'],
  rack: [16],
  racksPerPod: [16],
  overheadPct: [0, 5],
  backfill: [100],
  gpuMtbfH: [0],
  serverMtbfH: [0],
  boxMtbfH: [0],
  repairH: [24],
  checkpointMin: [30],
  rebindS: [60],
};
const plan: StudyPlan = {
  designs: ['server', 'pool'],
  policies: ['best-fit', 'placement'],
  seeds: [1, 2],
  axes,
  inTime: false,
  fewest: false,
};

describe('the units of a study', () => {
  it('are each design, policy, setting and seed, without what does not bear on them', () => {
    const units = unitsOf(plan);
    // Servers: best-fit alone, 2 seeds. Pool: 2 policies, 2 reaches, 2 slot counts, 2 seeds.
    expect(units).toHaveLength(2 + 2 * 2 * 2 * 2);
    expect(units[0]).toEqual({
      kind: 'fill',
      design: 'server',
      policy: 'best-fit',
      setting: { untilPct: 130 },
      seeds: [1],
    });
    expect(units.at(-1)?.setting).toMatchObject({ reach: 'datacenter', slots: 16 });
  });

  it('of a sweep of overheads run servers once', () => {
    const units = unitsOf({ ...plan, policies: ['fgd'], seeds: [1], inTime: true });
    expect(units.filter(({ design }) => design === 'server')).toHaveLength(1);
    expect(units.filter(({ design }) => design === 'pool')).toHaveLength(2 * 2 * 2);
  });

  it('look for the fewest once for all seeds, after the runs', () => {
    const units = unitsOf({ ...plan, designs: ['server'], policies: ['fgd'], fewest: true });
    expect(units.map(({ kind, seeds }) => [kind, seeds])).toEqual([
      ['fill', [1]],
      ['fill', [2]],
      ['fewest', [1, 2]],
    ]);
  });
});

const small: StudyPlan = {
  ...plan,
  policies: ['best-fit', 'first-fit'],
  axes: { ...axes, reach: ['rack'], slots: [16] },
  fewest: true,
};
const units = unitsOf(small);
const done = new Map(units.map((unit) => [unit, runUnit(lists, constants, unit)]));

function answersOf(some: readonly StudyUnit[]) {
  const runs: SimulateRun[] = [];
  const fewest: FewestRow[] = [];
  for (const unit of some) {
    const result = done.get(unit)!;
    if ('run' in result) runs.push(result.run);
    else fewest.push(result.fewest);
  }
  return { inputs: [], runs, fewest };
}

/** 8 runs (2 designs, 2 policies, 2 seeds), and the fewest for 2 designs and 2 policies. */
function shards(of: number, study = 'a'): ShardFile[] {
  return Array.from({ length: of }, (_, i) => {
    const answers = answersOf(inShard(units, { part: i + 1, of }));
    const about = { part: i + 1, of, study, runs: 8, fewest: 4 };
    const text = JSON.stringify(shardResult(answers, about));
    return readShard(`${study}${i + 1}.json`, text);
  });
}

describe('parts of a study', () => {
  const whole = JSON.stringify(wholeResult(answersOf(units)));

  it.each([1, 2, 3, 5, 12, 20])('merge to the bytes of the whole: %i, in any order', (of) => {
    expect(JSON.stringify(mergeShards(shards(of).toReversed()))).toBe(whole);
  });

  it('are refused by name where they are none', () => {
    expect(() => readShard('x.json', '{"schema":')).toThrow(
      /^x\.json cannot be merged: it is no JSON/,
    );
    expect(() => readShard('x.json', '{"schema":"dxpu.predict/1"}')).toThrow(
      /^x\.json cannot be merged: it is no dxpu\.simulate\/1 at schema/,
    );
    expect(() => mergeShards([readShard('whole.json', whole)])).toThrow(
      'whole.json cannot be merged: it is a whole answer, not a part of one',
    );
  });

  it('are refused by name where they are foreign, double, missing or damaged', () => {
    const [one, two, three] = shards(3) as [ShardFile, ShardFile, ShardFile];
    const [, foreign] = shards(3, 'b') as [ShardFile, ShardFile];
    expect(() => mergeShards([one, foreign, three])).toThrow(
      /^b2\.json cannot be merged: it is of another study than a1\.json/,
    );
    expect(() => mergeShards([one, two, three, { ...two, name: 'copy.json' }])).toThrow(
      'copy.json cannot be merged: it is part 2/3, as a2.json is',
    );
    expect(() => mergeShards([two])).toThrow('1/3, 3/3 are missing');
    expect(() => mergeShards([one, shards(4)[1]!])).toThrow(
      /a2\.json .* part 2\/4, a1\.json is one of 3/,
    );
    const short = { ...two, result: { ...two.result, runs: two.result.runs.slice(1) } };
    expect(() => mergeShards([one, short, three])).toThrow(
      'a2.json cannot be merged: it is damaged: 2 runs, of a part of 3',
    );
  });
});
