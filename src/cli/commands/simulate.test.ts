import { EventEmitter } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { exampleJobs, exampleNodes, examplePods } from '#simulator/example-lists';
import { REACHES, TOGETHER } from '#simulator/pool-hardware';
import { POOL_POLICIES } from '#simulator/pool-design';
import { simulateResult } from '#simulator/result';
import { runUnit, type StudyUnit } from '#simulator/study';
import { printed, type Printed } from '#testkit/printed';
import { errorObject, UsageError } from '../output.ts';
import { buildProgram } from '../program.ts';
import { CONSTRAINT_NAMES, POLICY_NAMES, REACH_NAMES } from '../program-simulate.ts';
import { parseSeeds } from '../program-simulate-values.ts';
import type { SimulateWorkerData } from '../simulate-worker.ts';
import type { WorkerLike } from '../worker-pool.ts';
import { simulate, type SimulateCommandOptions } from './simulate.ts';
import { mergeParts } from './simulate-merge.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-simulate-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string): string => path.join(folder, name);

beforeAll(() => {
  writeFileSync(at('nodes.csv'), exampleNodes());
  writeFileSync(at('pods.csv'), examplePods());
  writeFileSync(at('jobs.csv'), exampleJobs());
});
afterEach(() => {
  process.exitCode = undefined;
});

/** A worker without a thread: what it does is the same. */
class NearWorker extends EventEmitter {
  readonly #data: SimulateWorkerData;

  constructor(data: SimulateWorkerData) {
    super();
    this.#data = structuredClone(data);
  }

  postMessage(unit: StudyUnit): void {
    setImmediate(() => {
      let message: unknown;
      try {
        message = { kind: 'done', result: runUnit(this.#data.lists, this.#data.constants, unit) };
      } catch (error) {
        message = { kind: 'failed', error: errorObject(error) };
      }
      this.emit('message', message);
    });
  }

  terminate(): void {
    this.emit('exit', 1);
  }
}

/** As the command line parses them, so that the defaults are its own. */
async function optionsOf(...argv: string[]): Promise<SimulateCommandOptions> {
  const program = buildProgram();
  const command = program.commands.find((one) => one.name() === 'simulate')!;
  let options: SimulateCommandOptions | undefined;
  command.action((_options, self) => {
    options = self.optsWithGlobals();
  });
  await program.parseAsync(['simulate', ...argv], { from: 'user' });
  return options!;
}

async function run(...argv: string[]): Promise<Printed> {
  const options = await optionsOf(...argv);
  return printed(() => simulate(options, (data) => new NearWorker(data) as unknown as WorkerLike));
}

const LISTS = (): string[] => ['--nodes', at('nodes.csv'), '--pods', at('pods.csv')];

describe('simulate', () => {
  it('knows the names the simulator has', () => {
    expect([...POLICY_NAMES]).toEqual(Object.keys(POOL_POLICIES));
    expect(REACH_NAMES).toEqual(REACHES);
    expect(CONSTRAINT_NAMES).toEqual(TOGETHER);
  });

  it('says of an example that it is made up, in every form', async () => {
    const few = ['--example', '--policy', 'best-fit', '--seeds', '1'];
    expect((await run(...few)).stdout).toMatch(/^SYNTHETIC: made-up lists/m);
    const json = simulateResult.parse(JSON.parse((await run(...few, '--output', 'json')).stdout));
    expect(json.inputs?.map(({ synthetic }) => synthetic)).toEqual([true, true]);
    expect(json.inputs?.every(({ name }) => name.startsWith('synthetic-'))).toBe(true);
    await run(...few, '--plot', at('e.svg'), '--html', at('e.html'));
    expect(readFileSync(at('e.svg'), 'utf8')).toContain('SYNTHETIC');
    expect(readFileSync(at('e.html'), 'utf8')).toContain('SYNTHETIC: made-up lists');
  });

  it('has a run for each design, policy and seed, by the schema', async () => {
    const { stdout, stderr } = await run(...LISTS(), '--seeds', '42..43', '--output', 'json');
    const { runs, summary } = simulateResult.parse(JSON.parse(stdout));
    expect(runs.map(({ design, policy, seed }) => `${design} ${policy} ${seed}`)).toEqual([
      'server fgd 42',
      'server fgd 43',
      'server best-fit 42',
      'server best-fit 43',
      'pool fgd 42',
      'pool fgd 43',
      'pool best-fit 42',
      'pool best-fit 43',
    ]);
    expect(summary[0]).toMatchObject({ design: 'server', policy: 'fgd', seeds: 2 });
    expect(stderr).toBe('');
  });

  it('merges parts to the bytes of the whole', async () => {
    const args = [...LISTS(), '--policy', 'best-fit', '--slots', '4,16', '--output', 'json'];
    const whole = await run(...args);
    const files = await Promise.all(
      [1, 2, 3].map((part) => optionsOf(...args, '--shard', `${part}/3`)),
    ).then(async (all) => {
      const names: string[] = [];
      for (const [index, options] of all.entries()) {
        const { stdout } = await printed(() =>
          simulate(options, (data) => new NearWorker(data) as unknown as WorkerLike),
        );
        writeFileSync(at(`part${index}.json`), stdout);
        names.push(at(`part${index}.json`));
      }
      return names;
    });
    const merged = await printed(() => mergeParts(files, { output: 'json' }));
    expect(merged.stdout).toBe(whole.stdout);
    const { thrown } = await printed(() => mergeParts(files.slice(1), { output: 'json' }));
    expect(errorObject(thrown).message).toBe('1/3 is missing');
  });

  // The id of a study left them out: such parts made one answer of different jobs.
  it.each([
    ['--cpu-per-gpu', '4'],
    ['--memory-per-gpu', '16'],
    ['--gpus-per-task', '4'],
  ])('merges no parts of which one was made with another %s', async (flag, value) => {
    const args = ['--nodes', at('nodes.csv'), '--jobs', at('jobs.csv'), '--policy', 'best-fit'];
    const partOf = async (shard: string, ...more: string[]): Promise<string> => {
      const own = ['--seeds', '1', '--output', 'json', '--shard', shard, ...more];
      const file = at(`job-part${shard[0]}.json`);
      writeFileSync(file, (await run(...args, ...own)).stdout);
      return file;
    };
    const files = [await partOf('1/2'), await partOf('2/2', flag, value)];
    const { thrown } = await printed(() => mergeParts(files, { output: 'json' }));
    expect(errorObject(thrown).message).toMatch(/part2\.json .* it is of another study than/);
  });

  it('runs jobs in time, with overheads of classes and of predictions', async () => {
    writeFileSync(
      at('predicted.json'),
      '{"schema":"dxpu.predict/1","replay":null,"additive":{"overheadPct":100}}\n',
    );
    const args = ['--nodes', at('nodes.csv'), '--jobs', at('jobs.csv'), '--seeds', '1'];
    const classes = ['resnet50', 'vgg16', 'gpt2'].flatMap((name) => [
      '--overhead-from',
      `${name}=${at('predicted.json')}`,
    ]);
    const read = async (...more: string[]) => {
      const { stdout } = await run(...args, '--policy', 'best-fit', '--output', 'json', ...more);
      return simulateResult.parse(JSON.parse(stdout)).runs;
    };
    const [server, pool] = await read(...classes);
    // All classes take twice as long.
    const [, twice] = await read('--overhead', '100');
    expect(pool?.timed).toEqual(twice?.timed);
    expect(server?.timed?.jobs).toBe(400);
    expect(pool!.timed!.makespanS).toBeGreaterThan(server!.timed!.makespanS);
  });

  it('has what the fewest hardware costs, and the break-even, in every form and from parts', async () => {
    const prices = ['gpu=10', 'gpu:T4=5', 'server=7', 'box=2', 'port=1'];
    const priced = prices.flatMap((price) => ['--price', price]);
    const fast = ['--example', '--seeds', '1', '--policy', 'first-fit', '--arrived', '20'];
    const args = [...fast, '--fewest', '--demand', '20', '--scan', '0', ...priced];
    const whole = await run(...args, '--output', 'json');
    const { prices: told, fewest = [], breakEven } = simulateResult.parse(JSON.parse(whole.stdout));
    expect(told).toEqual({ gpu: 10, models: { T4: 5 }, server: 7, box: 2, port: 1 });
    for (const row of fewest) {
      const { gpusByModel = {}, gpus, servers, boxes = 0, cost, design } = row;
      expect(Object.values(gpusByModel).reduce((sum, count) => sum + count, 0)).toBe(gpus);
      const ports = design === 'pool' ? servers! + boxes : 0;
      const ofGpus = 10 * gpus! - 5 * (gpusByModel['T4'] ?? 0);
      expect(cost?.total).toBe(ofGpus + 7 * servers! + 2 * boxes + ports);
    }
    const [server, pool] = fewest;
    const even = (server!.cost!.total / pool!.cost!.total - 1) * 100;
    expect(breakEven?.map(({ by }) => by)).toEqual(['gpus', 'cost']);
    expect(breakEven?.[1]?.overheadPct).toBeCloseTo(even, 3);
    const parts: string[] = [];
    for (const part of [1, 2]) {
      const file = at(`priced${part}.json`);
      const { stdout } = await run(...args, '--output', 'json', '--shard', `${part}/2`);
      writeFileSync(file, stdout);
      parts.push(file);
    }
    const merged = await printed(() => mergeParts(parts, { output: 'json' }));
    expect(merged.stdout).toBe(whole.stdout);
    const { stdout } = await printed(() =>
      mergeParts(parts, { output: 'csv', html: at('p.html') }),
    );
    expect(stdout).toMatch(/^break-even,pool,first-fit,/m);
    const page = readFileSync(at('p.html'), 'utf8');
    expect(page).toContain('Break-even: how much longer');
    expect(page).toContain('What the fewest hardware costs');
    expect(page).toContain('prices: GPU 10, T4 5, server or host 7, box 2, port 1');
  });

  it('has rows for spreadsheets', async () => {
    const { stdout } = await run('--example', '--seeds', '1', '--policy', 'fgd', '--output', 'csv');
    const [header, first] = stdout.split('\n');
    expect(header).toMatch(/^kind,design,policy,untilPct,reach,slots,box,/);
    expect(first).toMatch(/^allocated,server,fgd,/);
  });
});

describe('wrong usage of simulate', () => {
  it.each([
    [[], /name the machines with --nodes, or try made-up lists with --example/],
    [['--nodes', 'n.csv'], /name requests with --pods, or timed jobs with --jobs/],
    [['--nodes', 'n', '--pods', 'p', '--jobs', 'j'], /--pods and --jobs exclude each other/],
    [['--example', '--nodes', 'n.csv'], /--example has lists of its own/],
    [['--example', '--policy', 'placement', '--design', 'server'], /placement is for a pool/],
    [['--example', '--policy', 'placement'], /--design server has none of the policies/],
    [['--example', '--constraint', 'nvlink'], /needs --nvlink/],
    [['--example', '--nvlink', 'H100'], /no machine has this model; there are V100, T4, P100/],
    [['--example', '--timed', '--fewest'], /--fewest is for requests without times/],
    // What follows was left out without a word.
    [['--example', '--overhead', '0,5'], /--overhead is of jobs in time: add --timed/],
    [['--example', '--overhead-of', 'vgg16=4'], /--overhead-of is of jobs in time/],
    [['--example', '--gpu-mtbf', '2000'], /--gpu-mtbf is of jobs in time/],
    [['--example', '--backfill', '0'], /--backfill is of jobs in time/],
    [['--example', '--repair', '24,48'], /--repair is of jobs in time/],
    [['--example', '--checkpoint', '0'], /--checkpoint is of jobs in time/],
    [['--example', '--rebind', '5'], /--rebind is of jobs in time/],
    [['--example', '--price', 'gpu=1'], /--price is of the fewest hardware: add --fewest/],
    [['--example', '--demand', '80'], /--demand is of the fewest hardware: add --fewest/],
    [['--example', '--served', '95'], /--served is of the fewest hardware/],
    [['--example', '--scan', '0'], /--scan is of the fewest hardware/],
    [['--example', '--cpu-per-gpu', '4'], /--cpu-per-gpu is of --jobs/],
    [['--nodes', 'n', '--pods', 'p', '--gpus-per-task', '4'], /--gpus-per-task is of --jobs/],
    [['--example', '--fewest', '--price', 'gpu:T4=1'], /--price has none of V100/],
    [['--example', '--fewest', '--price', 'gpu:H9=1'], /no machine has this model; there are/],
    // The last of them was taken without a word.
    [
      ['--example', '--fewest', '--price', 'gpu=1', '--price', 'gpu=2'],
      /--price gpu is there twice/,
    ],
    [
      ['--example', '--timed', '--overhead-of', 'gpt2=4', '--overhead-from', 'gpt2=none.json'],
      /the overhead of gpt2 is there twice/,
    ],
    [['--example', '--shard', '1/2'], /add --output json/],
    [['--example', '--shard', '1/2', '--output', 'json', '--plot', 'x.svg'], /of the whole/],
    [['--example', '--plot', 'x.pdf'], /a name ending in \.svg or \.png/],
    [['--example', '--slots', '1,2,3,4,5,6', '--plot', 'x.svg'], /at most 8 .* not 14/],
  ])('%j', async (argv, message) => {
    const { thrown, stdout } = await run(...argv);
    expect(thrown).toBeInstanceOf(UsageError);
    expect(errorObject(thrown).message).toMatch(message);
    expect(stdout).toBe('');
    expect(existsSync('x.svg')).toBe(false);
  });

  it.each([
    ['--policy', 'fdg', /"fdg" is none of random,/],
    ['--slots', '16,x', /"x" is not a whole number from 1 to 1024/],
    ['--seeds', '51..42', /no seed and no range/],
    ['--shard', '4/3', /is no part of a whole/],
    ['--overhead-of', 'vgg16', /is not NAME=VALUE/],
    ['--price', 'cpu=4', /"cpu" has no price: gpu, gpu:MODEL,/],
    ['--price', 'gpu=-4', /"-4" is no price/],
  ])('%s %s', async (flag, value, message) => {
    await expect(optionsOf('--example', flag, value)).rejects.toThrow(message);
  });

  it('names file, line and column of a list', async () => {
    writeFileSync(at('bad.csv'), 'sn,cpu_milli,memory_mib,gpu,model\na,96,1024,8,V100\n');
    const { thrown } = await run('--nodes', at('bad.csv'), '--pods', at('pods.csv'));
    expect(errorObject(thrown).message).toMatch(/bad\.csv:2:3: cpu_milli 96 is less than one CPU/);
    const missing = await run('--nodes', at('none.csv'), '--pods', at('pods.csv'));
    expect(errorObject(missing.thrown)).toMatchObject({ code: 'not_found' });
  });

  it('options of a study are not for merge', async () => {
    const argv = ['simulate', 'merge', 'a.json', '--seeds', '1'];
    await expect(buildProgram().parseAsync(argv, { from: 'user' })).rejects.toThrow(
      '--seeds is not for merge',
    );
  });
});

describe('seeds', () => {
  it('are ranges and lists, each once', () => {
    expect(parseSeeds('42..44,7,43')).toEqual([42, 43, 44, 7]);
  });
});
