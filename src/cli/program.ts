/**
 * The tree of commands. Each action loads its code when it runs, so that help, completion and usage
 * errors come at once.
 */
import { Argument, Command, Option } from 'commander';
import { OUTPUT_FORMATS, UsageError } from './output.ts';
import { addPool, poolCommand } from './program-pool.ts';
import { addEmulate } from './program-emulate.ts';
import { addPredict } from './program-predict.ts';
import { addSimulate } from './program-simulate.ts';
import { addCertificates, addDevice, addTools } from './program-tools.ts';
import { addVm } from './program-vm.ts';
import {
  checkOutputFormat,
  duration,
  examples,
  filled,
  outputFormat,
  processOption,
  several,
  share,
  stateOption,
  version,
  whole,
} from './program-options.ts';
import { USUAL_SIZES } from './pool-words.ts';
import { STATUS_WORDS } from './status-words.ts';

export function buildProgram(): Command {
  const program = new Command('dxpu')
    .description('GPUs decoupled from servers at the PCIe level and pooled')
    .version(version(), '--version')
    .exitOverride()
    .configureHelp({
      showGlobalOptions: true,
      sortSubcommands: false,
      // What a command has in a form of its own is shown there.
      visibleGlobalOptions: ({ options, parent }) =>
        (parent?.parent ?? parent)?.options.filter(({ long }) =>
          options.every((own) => own.long !== long),
        ) ?? [],
    })
    // Usage errors are reported in one place, in the asked form.
    .configureOutput({ outputError: () => {} })
    .addOption(
      new Option('--output <format>', 'how results and errors are printed')
        .choices(OUTPUT_FORMATS)
        .argParser(outputFormat)
        .default('table'),
    )
    .addOption(new Option('--debug', 'show where an error comes from; $DXPU_DEBUG'))
    .hook('preAction', (_program, command) => {
      const own = command.options.find(({ long }) => long === '--output');
      checkOutputFormat(program.opts()['output'], own);
    });
  examples(program, [
    'dxpu up                             # a whole pool on this machine, in the background',
    'dxpu bind --gpus 2 --host h1 --wait # two GPU nodes for host h1',
    'dxpu accel run sgemm --process host-h1 --slot 0',
    'dxpu bandwidth --gen 4 --lanes 16 --rtt 6.8us --tags 140 --mrrs 128',
  ]);
  addWholePool(program);
  addPool(program);
  addProcesses(program);
  addVm(program);
  addControl(program);
  addAccel(program);
  addPredict(program);
  addEmulate(program);
  addSimulate(program);
  addTools(program);
  addDevice(program);
  addCertificates(program);
  program
    .command('completion')
    .description('print a completion script for your shell')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish', 'powershell']))
    .addHelpText('after', '\nExamples:\n  $ source <(dxpu completion bash)')
    .action(async (shell: string) =>
      (await import('./completion.ts')).printCompletionScript(program, shell),
    );
  return program;
}

function addWholePool(program: Command): void {
  examples(
    program
      .command('start')
      .description('a whole pool on this machine, put through its paces, and ended with Ctrl-C')
      .option('--once', 'end after the first results')
      .addOption(stateOption())
      .option('--size <n>', 'rows and columns of the matrices', whole(1, 640), 128)
      .action(async (_options, command: Command) =>
        (await import('./start.ts')).start(command.optsWithGlobals()),
      ),
    ['dxpu start', 'dxpu start --once', 'dxpu start --state ./dxpu-demo'],
  );
  examples(
    program
      .command('up')
      .description('start what does not run of a pool on this machine: a manager, boxes and hosts')
      .addOption(sizeOption('boxes', 'boxes', 1, 64))
      .addOption(sizeOption('gpus', 'GPU nodes in each box', 1, 64))
      .addOption(sizeOption('hosts', 'hosts', 1, 64))
      .addOption(sizeOption('slots', 'virtual slots of each host', 1, 31))
      .addOption(stateOption())
      .action(async (_options, command: Command) =>
        (await import('./commands/up.ts')).up(command.optsWithGlobals()),
      ),
    ['dxpu up', 'dxpu up --boxes 4 --gpus 8 --hosts 3 --slots 8 --state ./lab'],
  );
  examples(
    program
      .command('down')
      .description('end all processes of the pool; what the manager knows stays')
      .option('--purge', 'and remove configurations, certificates, bindings and logs')
      .addOption(stateOption())
      .action(async (_options, command: Command) =>
        (await import('./commands/down.ts')).down(command.optsWithGlobals()),
      ),
    ['dxpu down', 'dxpu down --purge --state ./lab'],
  );
}

/** Given or not matters: a pool that is there keeps its sizes. So the usual one is text alone. */
function sizeOption(
  word: keyof typeof USUAL_SIZES,
  text: string,
  low: number,
  high: number,
): Option {
  const usual = `(default: ${USUAL_SIZES[word]}, or as before)`;
  return new Option(`--${word} <n>`, `how many ${text} ${usual}`).argParser(whole(low, high));
}

const PROCESS_TEXTS = {
  manager: 'run a manager: it owns the pool, and decides who gets which GPU nodes',
  box: 'run a box proxy with the devices of its configuration',
  host: 'run a host proxy with a soft host or a VM behind it',
} as const;

function addProcesses(program: Command): void {
  for (const kind of ['manager', 'box', 'host'] as const) {
    const command = program
      .command(kind)
      .description(PROCESS_TEXTS[kind])
      .addOption(configOption(kind))
      .addOption(stateOption())
      .option('--check', 'check the configuration and end')
      .addOption(
        new Option('--log-format <format>', 'text for people, json for machines').choices([
          'text',
          'json',
        ]),
      )
      .addOption(
        new Option('--log-level <level>', 'least severe messages logged; $DXPU_LOG').choices([
          'debug',
          'info',
          'warn',
          'error',
        ]),
      )
      .action(async (options) => {
        switch (kind) {
          case 'manager':
            return (await import('./manager-process.ts')).runManager(options);
          case 'box':
            if (options.config === undefined) {
              throw new UsageError("required option '--config <file>' not specified");
            }
            return (await import('./box-process.ts')).runBox(options);
          case 'host':
            return (await import('./host-process.ts')).runHost(options);
        }
      });
    if (kind === 'host') {
      command
        .option('--qmp <socket>', 'QMP socket of a VM that uses the GPU nodes', filled)
        .option(
          '--slot <port>',
          'root port of the VM that is the next virtual slot',
          several(filled),
        );
    }
    examples(command, [
      `dxpu ${kind} --config ${kind}.yaml`,
      `dxpu ${kind} --config ${kind}.yaml --check`,
      ...(kind === 'manager'
        ? []
        : [`kill -HUP PID     # reads the table of ${kind}.yaml again; so does dxpu reload`]),
      ...(kind === 'box' ? ['dxpu box screenshot 0 screen.png'] : []),
      ...(kind === 'host'
        ? ['dxpu host --config host.yaml --qmp /run/vm.qmp --slot rp0 --slot rp1']
        : []),
    ]);
    if (kind === 'box') addBoxCommands(command);
  }
}

/** What is mandatory of a command is so of those below it: `dxpu box` asks for its own by itself. */
function configOption(kind: keyof typeof PROCESS_TEXTS): Option {
  return new Option('--config <file>', 'configuration in YAML').makeOptionMandatory(kind !== 'box');
}

function addBoxCommands(box: Command): void {
  examples(
    box
      .command('screenshot')
      .description('what the display in a slot of a running box shows, as a PNG file')
      .argument('<slot>', 'slot of the box', whole(0, 65535))
      .argument('<file>', 'PNG file to write')
      .addOption(stateOption())
      .addOption(processOption())
      .action(async (slot: number, file: string, _options, command: Command) =>
        (await import('./commands/box-screenshot.ts')).boxScreenshot(
          slot,
          file,
          command.optsWithGlobals(),
        ),
      ),
    [
      'dxpu box screenshot 0 screen.png',
      'dxpu box screenshot 3 screen.png --process box-b1 --output json',
    ],
  );
}

function addControl(program: Command): void {
  examples(
    poolCommand(program, 'status')
      .description('the pool in numbers, and what the running processes do: slots, links, counters')
      .addOption(processOption())
      .action(async (_options, command: Command) =>
        (await import('./commands/status.ts')).status(command.optsWithGlobals()),
      ),
    ['dxpu status', 'dxpu status --process host-h1 --output json'],
  ).addHelpText('after', STATUS_WORDS);
  examples(
    program
      .command('tables')
      .description('the mapping tables in force')
      .addOption(stateOption())
      .addOption(processOption())
      .action(async (_options, command: Command) =>
        (await import('./commands/status.ts')).tables(command.optsWithGlobals()),
      ),
    ['dxpu tables', 'dxpu tables --output json'],
  );
  for (const [name, text] of [
    ['reload', 'have running processes read their tables again'],
    ['stop', 'end running processes, and wait until they are gone'],
  ] as const) {
    examples(
      program
        .command(name)
        .description(text)
        .addOption(stateOption())
        .addOption(processOption())
        .action(async (_options, command: Command) =>
          (await import('./commands/lifecycle.ts'))[name](command.optsWithGlobals()),
        ),
      [`dxpu ${name}`, `dxpu ${name} --process box-b1`],
    );
  }
  examples(
    program
      .command('capture')
      .description('record the TLPs of a slot of a running proxy as a pcapng file')
      .argument('<slot>', 'virtual slot of a host, or slot of a box', whole(0, 65535))
      .requiredOption('-o, --out <file>', 'pcapng file to write, - for stdout')
      .option('--count <n>', 'end after this many TLPs', whole(1, Number.MAX_SAFE_INTEGER))
      .option('--for <duration>', 'end after this time, as in 10s', duration)
      .addOption(stateOption())
      .addOption(processOption())
      .action(async (slot: number, _options, command: Command) =>
        (await import('./commands/capture.ts')).capture(slot, command.optsWithGlobals()),
      ),
    [
      'dxpu capture 0 -o sgemm.pcapng      # until Ctrl-C; meanwhile: dxpu accel run sgemm --slot 0',
      'dxpu capture 0 -o - --count 100 | dxpu decode -',
    ],
  );
  const fault = program.command('fault').description('make faults on purpose');
  examples(
    fault
      .command('link')
      .description('disturb the links of the processes running in a state folder')
      .option('--cut <duration>', 'close every connection and open none for this time', duration)
      .option('--delay <duration>', 'hold every frame for this time, in each direction', duration)
      .option('--drop <share>', 'lose this share of the frames, in each direction', share)
      .option('--clear', 'end all faults')
      .addOption(stateOption())
      .addOption(processOption())
      .action(async (_options, command: Command) =>
        (await import('./commands/fault.ts')).faultLink(command.optsWithGlobals()),
      ),
    [
      'dxpu fault link --cut 2s            # shorter than the resume window: nothing is lost',
      'dxpu fault link --delay 50us',
      'dxpu fault link --drop 1%',
      'dxpu fault link --clear',
    ],
  );
}

function addAccel(program: Command): void {
  const accel = program
    .command('accel')
    .description('work with the accelerators of a running host');
  examples(
    accel
      .command('run')
      .description('run a kernel through the fabric and check its result')
      .addArgument(new Argument('<kernel>').choices(['sgemm', 'saxpy']))
      .option('--slot <slot>', 'virtual slot of the accelerator', whole(0, 30), 0)
      .option('--size <n>', 'rows and columns (sgemm) or elements (saxpy)', whole(1, 2 ** 26))
      .option('-m <rows>', 'rows of A and C', whole(1, 4096))
      .option('-n <columns>', 'columns of B and C', whole(1, 4096))
      .option('-k <depth>', 'columns of A, rows of B', whole(1, 4096))
      .option('--seed <seed>', 'of the operands', whole(0, Number.MAX_SAFE_INTEGER), 1)
      .option('--iterations <n>', 'how often', whole(1, 1e9), 1)
      .addOption(stateOption())
      .addOption(processOption())
      .action(async (kernel: string, _options, command: Command) =>
        (await import('./commands/accel-run.ts')).accelRun(kernel, command.optsWithGlobals()),
      ),
    [
      'dxpu accel run sgemm --size 256',
      'dxpu accel run sgemm --slot 1 -m 64 -n 32 -k 128 --seed 7',
      'dxpu accel run saxpy --size 100000 --iterations 10 --output json',
    ],
  );
}
