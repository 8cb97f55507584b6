/**
 * The simulator: the published study on servers as `dxpu simulate` runs it, and single runs on pools of
 * 1,000, 10,000 and 100,000 GPUs with ten requests a GPU.
 *
 *     npm run bench -- simulate [--output json] [--only study|pool] [--policies fgd,best-fit,placement]
 *
 * The lists are those of Alibaba's openb data where they are at hand (DXPU_DATA or ../shared/data), made-up
 * ones elsewhere: figures of the two are not to be compared.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { EXAMPLE_LISTS } from '#simulator/example-lists';
import { POOL_POLICIES } from '#simulator/pool-design';
import { type Figure, printFigures } from './support/figures.ts';
import type { SideResult } from './support/simulate-side.ts';
import { now, Spent } from './support/spent.ts';

const STUDY_POLICIES = 'random,dot-product,gpu-clustering,gpu-packing,best-fit,fgd';
const STUDY_SEEDS = '42..51';
const STUDY_GOAL_S = 180;
const SIZES = [1000, 10_000, 100_000];
const POOL_GOAL_S = 120;
const POOL_GOAL_GB = 2;

const { values: options } = parseArgs({
  options: {
    output: { type: 'string', default: 'text' },
    only: { type: 'string' },
    policies: { type: 'string', default: 'fgd,best-fit,placement' },
  },
});
const policies = options.policies.split(',');
const unknown = policies.find((name) => !Object.hasOwn(POOL_POLICIES, name));
if (unknown !== undefined) {
  note(`--policies ${unknown}: takes ${Object.keys(POOL_POLICIES).join(', ')}`);
  process.exit(2);
}

function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

function script(place: string): string {
  return fileURLToPath(new URL(place, import.meta.url));
}

function node(...args: string[]): string {
  return execFileSync(process.execPath, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 2 ** 30,
  });
}

interface Lists {
  readonly name: string;
  readonly nodes: string;
  readonly pods: string;
}

function lists(folder: string): Lists {
  const data = process.env['DXPU_DATA'] ?? path.resolve('../shared/data');
  const nodes = path.join(data, 'cluster/openb/openb_node_list_gpu_node.csv');
  const pods = path.join(data, 'cluster/openb/openb_pod_list_default.csv');
  if (existsSync(nodes) && existsSync(pods)) return { name: 'openb default', nodes, pods };
  const made = (['nodes', 'pods'] as const).map((kind) => {
    const file = path.join(folder, EXAMPLE_LISTS[kind].name);
    writeFileSync(file, EXAMPLE_LISTS[kind].text());
    return file;
  });
  note('no openb lists at hand: made-up ones');
  return { name: 'made-up lists', nodes: made[0] ?? '', pods: made[1] ?? '' };
}

function study({ name, nodes, pods }: Lists): Figure[] {
  const cli = script('../../dist/cli/main.js');
  const run = (args: readonly string[]): number => {
    const spent = new Spent();
    const begin = now();
    node(cli, 'simulate', '--nodes', nodes, '--pods', pods, '--design', 'server', ...args);
    spent.since(begin);
    return (spent.ms[0] ?? Number.NaN) / 1e3;
  };
  note(`${name}: six policies, ten seeds, on servers`);
  // One run of the cheapest policy: start of the command, reading both lists, and the answer.
  const start = run(['--policy', 'first-fit', '--seeds', '42', '--output', 'json']);
  const all = run(['--policy', STUDY_POLICIES, '--seeds', STUDY_SEEDS, '--output', 'json']);
  return [
    {
      name: `60 runs on servers, ${name}, against one first-fit run`,
      value: all,
      baseline: start,
      unit: 's',
      ratio: all / start,
      goal: `value ≤ ${STUDY_GOAL_S} s`,
    },
  ];
}

function pool({ name, nodes, pods }: Lists): Figure[] {
  return policies.flatMap((policy) =>
    SIZES.flatMap((gpus): Figure[] => {
      note(`${name}: pooled ${policy}, ${gpus} GPUs`);
      const side = script('./support/simulate-side.js');
      const output = node('--max-old-space-size=4096', side, policy, String(gpus), nodes, pods);
      const result = JSON.parse(output) as SideResult;
      const seconds = result.ms / 1e3;
      const gigabytes = result.peakRssBytes / 1e9;
      note(
        `  ${result.hosts} hosts, ${result.requests} requests, ${result.placed} placed: ` +
          `${seconds.toFixed(2)} s, CPU ${(result.cpuNs / 1e9).toFixed(2)} s, ` +
          `peak ${gigabytes.toFixed(2)} GB`,
      );
      const each = (result.ms * 1e3) / result.requests;
      const scan = result.scanNs / 1e3;
      const figures: Figure[] = [
        {
          name: `${policy}, ${gpus} GPUs: a request against a scan of all hosts`,
          value: each,
          baseline: scan,
          unit: 'µs',
          ratio: each / scan,
          cpuNs: result.cpuNs / result.requests,
        },
      ];
      if (gpus !== SIZES.at(-1)) return figures;
      return [
        ...figures,
        {
          name: `${policy}, ${gpus} GPUs, ${result.requests} requests: time`,
          value: seconds,
          baseline: POOL_GOAL_S,
          unit: 's',
          ratio: seconds / POOL_GOAL_S,
          goal: 'ratio ≤ 1.0',
        },
        {
          name: `${policy}, ${gpus} GPUs, ${result.requests} requests: peak memory`,
          value: gigabytes,
          baseline: POOL_GOAL_GB,
          unit: 'GB',
          ratio: gigabytes / POOL_GOAL_GB,
          goal: 'ratio ≤ 1.0',
        },
      ];
    }),
  );
}

const folder = mkdtempSync(path.join(tmpdir(), 'dxpu-bench-'));
try {
  const given = lists(folder);
  const figures = [
    ...(options.only === 'pool' ? [] : study(given)),
    ...(options.only === 'study' ? [] : pool(given)),
  ];
  printFigures('simulate', figures, options.output === 'json');
} finally {
  rmSync(folder, { recursive: true, force: true });
}
