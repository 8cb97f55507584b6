/** The command that simulates clusters, and the one that merges its parts. */
import { type Command, Option } from 'commander';
import {
  answerOptions,
  checked,
  examples,
  filled,
  refuseOptionsAbove,
  several,
  whole,
} from './program-options.ts';
import {
  listOf,
  namesOption,
  numbersOption,
  parseOverheadOf,
  parsePair,
  parsePrice,
  parseSeeds,
  parseShard,
} from './program-simulate-values.ts';
import {
  USUAL_IN_TIME as USUAL,
  USUAL_OF_FEWEST as FEWEST,
  USUAL_OF_JOBS as JOBS,
} from './simulate-words.ts';

/** Of the simulator, which is not loaded for help. */
export const POLICY_NAMES = [
  'random',
  'dot-product',
  'gpu-clustering',
  'gpu-packing',
  'best-fit',
  'fgd',
  'first-fit',
  'placement',
] as const;
export const DESIGN_NAMES = ['server', 'pool'] as const;
export const REACH_NAMES = ['rack', 'pod', 'datacenter'] as const;
export const CONSTRAINT_NAMES = ['any', 'same-box', 'nvlink'] as const;

export function addSimulate(program: Command): void {
  const simulate = program
    .command('simulate')
    .description('what a cluster holds: GPUs fixed into servers, and the same GPUs pooled')
    .option('--nodes <file>', 'machines, CSV: sn, cpu_milli, memory_mib, gpu, model', filled)
    .option(
      '--pods <file>',
      'requests, CSV: name, cpu_milli, memory_mib, num_gpu, gpu_milli',
      filled,
    )
    .option(
      '--jobs <file>',
      'timed jobs in place of requests, CSV: job_id, num_gpu, submit_time, duration (ms)',
      filled,
    )
    .option('--timed', 'run the requests of --pods by their own times')
    .option('--example', 'made-up lists instead of files; with --timed, made-up jobs')
    .addOption(
      namesOption('--policy <names>', 'who goes where', POLICY_NAMES).default(
        ['fgd', 'best-fit'],
        'fgd,best-fit',
      ),
    )
    .addOption(
      namesOption('--design <names>', 'servers, a pool, or both', DESIGN_NAMES).default(
        ['server', 'pool'],
        'server,pool',
      ),
    )
    .addOption(
      new Option('--seeds <range>', 'a run for each, as in 42..51')
        .argParser(checked(parseSeeds))
        .default([42, 43, 44], '42..44'),
    );
  addPoolOptions(simulate);
  addTimeOptions(simulate);
  simulate
    .option('--fewest', 'look for the fewest GPUs and machines that serve the demand, too')
    .addOption(
      numbersOption(
        '--demand <percent>',
        'of --fewest, in % of the GPUs',
        FEWEST.demand,
        [1, 400],
        false,
      ),
    )
    .option(
      '--served <percent>',
      'of --fewest: what every seed must place',
      whole(1, 100),
      FEWEST.served,
    )
    .option(
      '--scan <n>',
      'of --fewest: smaller counts tried after the search',
      whole(0, 1000),
      FEWEST.scan,
    )
    .option(
      '--price <what=amount>',
      'of --fewest: gpu, gpu:MODEL, server, box, port; may be given again',
      several(checked(parsePrice)),
    )
    .option('--shard <k/n>', 'this part of the runs alone, as JSON to merge', checked(parseShard));
  answerOptions(simulate, 'the answer').action(async (_options, command: Command) =>
    (await import('./commands/simulate.ts')).simulate(command.optsWithGlobals()),
  );
  examples(simulate, [
    'dxpu simulate --example             # nothing at hand: synthetic lists',
    'dxpu simulate --nodes nodes.csv --pods pods.csv --policy fgd,best-fit --seeds 42..51',
    'dxpu simulate --nodes nodes.csv --pods pods.csv --reach rack,datacenter --slots 8,16 --fewest',
    'dxpu simulate --nodes nodes.csv --jobs jobs.csv --overhead 0,5,10,20 --plot time.svg',
    'dxpu simulate --nodes n.csv --pods p.csv --shard 3/40 --output json > part3.json',
  ]);
  addMerge(simulate);
}

function addPoolOptions(simulate: Command): void {
  simulate
    .addOption(numbersOption('--slots <list>', 'virtual slots of a host', 16, [1, 1024]))
    .addOption(numbersOption('--box <list>', 'GPUs of a box', 8, [1, 1024]))
    .addOption(
      namesOption('--reach <list>', 'which boxes a host has paths to', REACH_NAMES).default(
        ['datacenter'],
        'datacenter',
      ),
    )
    .addOption(
      namesOption(
        '--constraint <list>',
        'where the GPUs of one request may be',
        CONSTRAINT_NAMES,
      ).default(['any'], 'any'),
    )
    .option('--nvlink <models>', 'models whose boxes have NVLink', listOf(filled))
    .addOption(numbersOption('--rack <list>', 'machines of the list to a rack', 16, [1, 100_000]))
    .addOption(numbersOption('--racks-per-pod <list>', 'racks to a pod', 16, [1, 100_000]))
    .addOption(
      numbersOption(
        '--arrived <list>',
        'requests until so many % of all GPUs',
        130,
        [1, 1000],
        false,
      ),
    );
}

function addTimeOptions(simulate: Command): void {
  const hours = [0, 1e9] as const;
  simulate
    .addOption(
      numbersOption(
        '--overhead <list>',
        'jobs take so many % longer, pooled',
        USUAL.overhead,
        [0, 10_000],
        false,
      ),
    )
    .option(
      '--overhead-of <class=percent>',
      'of one class of job, in place of --overhead; may be given again',
      several(checked(parseOverheadOf)),
    )
    .option(
      '--overhead-from <class=file>',
      'the same, from what dxpu predict --output json said; may be given again',
      several(checked(parsePair)),
    )
    .addOption(
      numbersOption(
        '--backfill <list>',
        'jobs looked at behind the first',
        USUAL.backfill,
        [0, 1e6],
      ),
    )
    .option(
      '--cpu-per-gpu <n>',
      'CPUs a job of --jobs needs for each GPU',
      whole(0, 1024),
      JOBS.cpuPerGpu,
    )
    .option(
      '--memory-per-gpu <n>',
      'GiB a job of --jobs needs for each GPU',
      whole(0, 65_536),
      JOBS.memoryPerGpu,
    )
    .option(
      '--gpus-per-task <n>',
      'larger jobs of --jobs are split',
      whole(1, 999),
      JOBS.gpusPerTask,
    )
    .addOption(
      numbersOption(
        '--gpu-mtbf <list>',
        'hours between failures of a GPU; 0: never',
        USUAL.gpuMtbf,
        hours,
        false,
      ),
    )
    .addOption(
      numbersOption('--server-mtbf <list>', 'of a server or host', USUAL.serverMtbf, hours, false),
    )
    .addOption(numbersOption('--box-mtbf <list>', 'of a box', USUAL.boxMtbf, hours, false))
    .addOption(numbersOption('--repair <list>', 'hours a repair takes', USUAL.repair, hours, false))
    .addOption(
      numbersOption(
        '--checkpoint <list>',
        'minutes between checkpoints; 0: none',
        USUAL.checkpoint,
        hours,
        false,
      ),
    )
    .addOption(
      numbersOption(
        '--rebind <list>',
        'seconds until a job goes on with spares',
        USUAL.rebind,
        hours,
        false,
      ),
    );
}

function addMerge(simulate: Command): void {
  const merge = simulate
    .command('merge')
    .description('the parts of one study, as the answer to the whole')
    .argument('<file...>', 'what dxpu simulate --shard printed, all parts, in any order');
  answerOptions(merge, 'the answer').action(async (files: string[], _options, command: Command) => {
    refuseOptionsAbove(merge, 'is not for merge: the parts say what they are of');
    const { mergeParts } = await import('./commands/simulate-merge.ts');
    return mergeParts(files, command.optsWithGlobals());
  });
  examples(merge, [
    'dxpu simulate merge part*.json',
    'dxpu simulate merge part*.json --output json --plot all.svg --html all.html',
  ]);
}
