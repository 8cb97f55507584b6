/** The commands that emulate: a trace, and the microbenchmarks of the field. */
import { type Command, Option } from 'commander';
import type { Microbench } from '#emulator/microbench';
import { UsageError } from './output.ts';
import {
  answerOptions,
  duration,
  examples,
  filled,
  percent,
  refuseOptionsAbove,
  several,
  whole,
} from './program-options.ts';
import { exampleOption, linkOptions, sharingOption } from './program-trace-options.ts';

/** The module that runs them is not loaded for help. */
const MICROBENCHES = {
  bandwidth: 'rates of copies to and from the device, 4 KiB to 256 MiB, over round trips',
  latency: 'launching an empty kernel and waiting for it, over round trips',
  'launch-rate': 'empty kernels a second from a queue that is never empty, over round trips',
} as const satisfies Record<Microbench, string>;

/** What `dxpu predict` takes and cannot be here: why. Not shown in help. */
const REFUSED = {
  '--fetches <n>':
    'the device fetches by itself here: --prefetch, --fetch-size and --fetches-in-flight say how',
  '--per-iteration': 'a trace is emulated whole here; dxpu predict estimates iterations',
} as const;

export function addEmulate(program: Command): void {
  const emulate = program
    .command('emulate')
    .description('a recorded workload through both proxies and the device, in virtual time')
    .argument('[trace]', 'a trace as dxpu predict reads them, with the CPU side')
    .addOption(exampleOption('a file'));
  linkAndDeviceOptions(emulate)
    .addOption(
      new Option('--peers <where>', 'where GPUs that copy to each other are: box, no other way')
        .argParser((where: string) => {
          if (where === 'box') return where;
          throw new UsageError(
            `--peers ${where}: one GPU is emulated, and its copies to others last as recorded, as in ` +
              'one box; dxpu predict --peers spread estimates the rest',
          );
        })
        .hideHelp(),
    )
    .option('--budget <percent>', 'overhead that is accepted', percent, 10)
    .option('--seed <n>', 'of the virtual network', whole(0, 2 ** 31), 1)
    .option('--whole-copies', 'move long copies TLP by TLP to their end')
    .option('--trace <file>', 'write what happened as a Chrome trace, for Perfetto', filled)
    .option(
      '--trace-detail <n>',
      'bursts of TLPs in it, each way at each end; 0 for none',
      whole(0, 1_000_000),
      10_000,
    )
    .option('--capture <file>', 'write the TLPs of the link, as dxpu capture does', filled);
  answerOptions(emulate, 'the three estimates by round trip').action(
    async (file: string | undefined, _options, command: Command) =>
      (await import('./commands/emulate.ts')).emulate(file, command.optsWithGlobals()),
  );
  examples(emulate, [
    'dxpu emulate --example              # nothing at hand: a synthetic trace',
    'dxpu emulate trace.json.gz --rtt 6.8us',
    'dxpu emulate trace.json.gz --link dxpu-6.8us --link dxpu-4.9us --output json',
    'dxpu emulate trace.json.gz --plot overhead.svg --html answer.html',
    'dxpu emulate trace.json.gz --trace happened.json   # then open it in Perfetto',
    'dxpu emulate trace.json.gz --capture link.pcapng   # then: dxpu decode link.pcapng',
  ]);
  addMicrobench(emulate, 'bandwidth');
  addMicrobench(emulate, 'latency');
  addMicrobench(emulate, 'launch-rate');
}

function addMicrobench(emulate: Command, kind: Microbench): void {
  const command = emulate.command(kind).description(MICROBENCHES[kind]);
  linkAndDeviceOptions(command).option(
    '--at <duration>',
    'a whole round trip instead of the usual ones; may be given again',
    several(duration),
  );
  answerOptions(command, 'it').action(async (_options, own: Command) => {
    refuseOptionsAbove(own, `is of a trace; dxpu emulate ${kind} runs none`);
    const { emulateMicrobench } = await import('./commands/emulate-microbench.ts');
    await emulateMicrobench(kind, own.optsWithGlobals());
  });
  examples(command, [
    `dxpu emulate ${kind}`,
    `dxpu emulate ${kind} --at 1.2us --at 6.8us --tags 256 --plot ${kind}.svg`,
  ]);
}

function linkAndDeviceOptions(command: Command): Command {
  linkOptions(command, 768)
    .addOption(sharingOption())
    .option(
      '--prefetch <n>',
      'commands the device fetches ahead, a power of two to 64',
      whole(1, 64),
    )
    .option('--fetch-size <n>', 'commands that one fetch brings at most', whole(1, 64))
    .option('--fetches-in-flight <n>', 'fetches of a stream under way at once', whole(1, 64));
  for (const [flags, why] of Object.entries(REFUSED)) {
    const [flag = ''] = flags.split(' ');
    command.on(`option:${flag.slice(2)}`, () => {
      throw new UsageError(`${flag}: ${why}`);
    });
    command.addOption(new Option(flags, `not here: ${why}`).hideHelp());
  }
  return command;
}
