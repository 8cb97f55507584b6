/**
 * The tree of commands. Each action loads its code when it runs, so that help, completion and usage
 * errors come at once.
 */
import { Argument, Command, Option } from 'commander';
import { OUTPUT_FORMATS } from './output.ts';
import {
  duration,
  examples,
  processOption,
  rate,
  several,
  share,
  size,
  stateOption,
  version,
  whole,
} from './program-options.ts';
import { STATUS_WORDS } from './status-words.ts';

/** More than any authority lives; what is left of it is checked where it is known. */
const MAX_DAYS = 100_000;

export function buildProgram(): Command {
  const program = new Command('dxpu')
    .description('GPUs decoupled from servers at the PCIe level and pooled')
    .version(version(), '--version')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    // Usage errors are reported in one place, in the asked form.
    .configureOutput({ outputError: () => {} })
    .addOption(
      new Option('--output <format>', 'how results and errors are printed')
        .choices(OUTPUT_FORMATS)
        .default('text'),
    )
    .addOption(new Option('--debug', 'show where an error comes from; $DXPU_DEBUG'));
  examples(program, [
    'dxpu start                          # a box with two accelerators and a host, on this machine',
    'dxpu accel run sgemm --size 256     # on the running host',
    'dxpu bandwidth --gen 4 --lanes 16 --rtt 6.8us --tags 140 --mrrs 128',
  ]);
  addProcesses(program);
  addControl(program);
  addAccel(program);
  addTools(program);
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

function addProcesses(program: Command): void {
  examples(
    program
      .command('start')
      .description('start a box and a host on this machine, and run an sgemm on each accelerator')
      .option('--once', 'end after the first results')
      .addOption(stateOption())
      .option('--size <n>', 'rows and columns of the matrices', whole(1, 640), 128)
      .action(async (_options, command: Command) =>
        (await import('./start.ts')).start(command.optsWithGlobals()),
      ),
    ['dxpu start', 'dxpu start --once', 'dxpu start --state ./dxpu-demo'],
  );
  for (const kind of ['box', 'host'] as const) {
    examples(
      program
        .command(kind)
        .description(
          kind === 'box'
            ? 'run a box proxy with the devices of its configuration'
            : 'run a host proxy with a soft host behind it',
        )
        .requiredOption('--config <file>', 'configuration in YAML')
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
        .action(async (options) =>
          kind === 'box'
            ? (await import('./box-process.ts')).runBox(options)
            : (await import('./host-process.ts')).runHost(options),
        ),
      [
        `dxpu ${kind} --config ${kind}.yaml`,
        `dxpu ${kind} --config ${kind}.yaml --check`,
        `kill -HUP PID     # reads the table of ${kind}.yaml again; so does dxpu reload`,
      ],
    );
  }
}

function addControl(program: Command): void {
  examples(
    program
      .command('status')
      .description('what the running processes do: slots, links, counters, round trips')
      .addOption(stateOption())
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

function addTools(program: Command): void {
  examples(
    program
      .command('bandwidth')
      .description('what a PCIe link can carry, and what a round trip leaves of it')
      .option('--gen <n>', 'generation, 1 to 6', whole(1, 6), 3)
      .option('--lanes <n>', '1, 2, 4, 8, 12, 16 or 32', whole(1, 32), 16)
      .option('--mps <bytes>', 'maximum payload size', size, 256)
      .option('--mrrs <bytes>', 'maximum read request size', size, 512)
      .option('--rcb <bytes>', 'read completion boundary', size, 64)
      .addOption(
        new Option('--address-bits <bits>', 'of memory requests')
          .choices(['32', '64'])
          .default('64'),
      )
      .option('--ecrc', 'an end-to-end CRC in each TLP')
      .option('--split-at-rcb', 'completions in pieces of RCB, not of MPS')
      .option(
        '--transfer <bytes>',
        'a transfer size instead of the usual ones; may be given again',
        several(size),
      )
      .option('--tags <n>', 'reads a device has outstanding', whole(1, 1024))
      .option('--rtt <duration>', 'round trip of a read, as in 1.2us', duration)
      .option('--network <rate>', 'bit rate of the network between, as in 100Gbit/s', rate)
      .action(async (_options, command: Command) =>
        (await import('./commands/bandwidth.ts')).bandwidth(command.optsWithGlobals()),
      ),
    [
      'dxpu bandwidth --gen 4 --lanes 16',
      'dxpu bandwidth --gen 3 --lanes 16 --mrrs 128 --tags 140 --rtt 6.8us',
      'dxpu bandwidth --gen 5 --lanes 16 --mps 512 --mrrs 4096 --transfer 1MiB --output json',
      'dxpu bandwidth --network 100Gbit/s --transfer 64 --transfer 4KiB',
    ],
  );
  examples(
    program
      .command('decode')
      .description('TLPs as an engineer reads them, a line each')
      .argument('<file>', 'pcapng capture, or hex strings one a line; - reads stdin')
      .action(async (file: string, _options, command: Command) =>
        (await import('./commands/decode.ts')).decode(file, command.optsWithGlobals()),
      ),
    [
      'dxpu decode sgemm.pcapng',
      'echo 05000001ca9a5c0ff74807a4 | dxpu decode -',
      'dxpu decode sgemm.pcapng --output json | head',
    ],
  );
  examples(
    program
      .command('replay')
      .description(
        'give captured requests to a fresh device model, and show what it answers else; ' +
          'holds the capture in memory',
      )
      .argument('<file>', 'pcapng capture of one slot')
      .addOption(new Option('--device <kind>', 'device model').choices(['accel']).default('accel'))
      .option('--memory <bytes>', 'its memory, where the capture does not show it', size)
      .option('--uuid <uuid>', 'its UUID, where the capture does not show it')
      .action(async (file: string, _options, command: Command) =>
        (await import('./commands/replay.ts')).replay(file, command.optsWithGlobals()),
      ),
    ['dxpu replay sgemm.pcapng', 'dxpu replay sgemm.pcapng --memory 256MiB --output json'],
  );
}

function addCertificates(program: Command): void {
  const cert = program
    .command('cert')
    .description('the certificate authority of a pool and the certificates of its hosts and boxes');
  examples(
    cert
      .command('init')
      .description('make a certificate authority')
      .option('--dir <folder>', 'where ca.pem and ca-key.pem go', 'certs')
      .option('--name <name>', 'its name', 'dxpu pool')
      .option('--force', 'replace one that is there')
      .action(async (_options, command: Command) =>
        (await import('./commands/cert.ts')).certInit(command.optsWithGlobals()),
      ),
    ['dxpu cert init', 'dxpu cert init --dir /etc/dxpu/certs --name "pool of room 4"'],
  );
  examples(
    cert
      .command('issue')
      .description('issue a certificate to a host or a box')
      .addArgument(new Argument('<kind>').choices(['host', 'box']))
      .argument('<id>', 'its id, as its configuration has it')
      .option('--dir <folder>', 'where ca.pem and ca-key.pem are', 'certs')
      .option(
        '--days <n>',
        'how long it is valid; at most as long as the authority',
        whole(1, MAX_DAYS),
        365,
      )
      .option('--force', 'replace one that is there')
      .action(async (kind: 'host' | 'box', id: string, _options, command: Command) =>
        (await import('./commands/cert.ts')).certIssue(kind, id, command.optsWithGlobals()),
      ),
    ['dxpu cert issue host h1', 'dxpu cert issue box b1 --days 30'],
  );
}
