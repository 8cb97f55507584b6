/** The commands that emulate: a trace, and the microbenchmarks of the field. */
import { type Command, Option } from 'commander';
import { linkProfileNames } from '#pcie/link-profile';
import { EXAMPLES, networkRate } from './program-predict.ts';
import { duration, examples, filled, several, size, whole } from './program-options.ts';

/** Kinds of microbenchmark: the module that runs them is not loaded for help. */
const MICROBENCHES = {
  bandwidth: 'rates of copies to and from the device, 4 KiB to 256 MiB, over round trips',
  latency: 'launching an empty kernel and waiting for it, over round trips',
  'launch-rate': 'empty kernels a second from a queue that is never empty, over round trips',
} as const;

export function addEmulate(program: Command): void {
  const emulate = program
    .command('emulate')
    .description('a recorded workload through both proxies and the device, in virtual time')
    .argument('[trace]', 'a trace as dxpu predict reads them, with the CPU side')
    .addOption(
      new Option('--example [name]', 'a made-up trace instead of a file')
        .choices(EXAMPLES)
        .preset(EXAMPLES[0]),
    );
  linkOptions(emulate)
    .option('--seed <n>', 'of the virtual network', whole(0, 2 ** 31), 1)
    .option('--whole-copies', 'move long copies TLP by TLP to their end')
    .option('--trace <file>', 'write what happened as a Chrome trace, for Perfetto', filled)
    .action(async (file: string | undefined, _options, command: Command) =>
      (await import('./commands/emulate.ts')).emulate(file, command.optsWithGlobals()),
    );
  examples(emulate, [
    'dxpu emulate --example              # nothing at hand: a synthetic trace',
    'dxpu emulate trace.json.gz --rtt 6.8us',
    'dxpu emulate trace.json.gz --link dxpu-6.8us --link dxpu-4.9us --output json',
    'dxpu emulate trace.json.gz --trace happened.json   # then open it in Perfetto',
  ]);
  for (const kind of ['bandwidth', 'latency', 'launch-rate'] as const) addMicrobench(emulate, kind);
}

function addMicrobench(emulate: Command, kind: keyof typeof MICROBENCHES): void {
  const command = emulate.command(kind).description(MICROBENCHES[kind]);
  linkOptions(command)
    .option(
      '--at <duration>',
      'a whole round trip instead of the usual ones; may be given again',
      several(duration),
    )
    .option('--plot <file>', 'draw it, as .svg', filled)
    .action(async (_options, own: Command) =>
      (await import('./commands/emulate.ts')).emulateMicrobench(kind, own.optsWithGlobals()),
    );
  examples(command, [
    `dxpu emulate ${kind}`,
    `dxpu emulate ${kind} --at 1.2us --at 6.8us --tags 256 --plot ${kind}.svg`,
  ]);
}

function linkOptions(command: Command): Command {
  return command
    .option(
      '--link <name|file>',
      `a link profile: ${linkProfileNames().join(', ')}, or a file; give it again to compare`,
      several(filled),
    )
    .option('--rtt <duration>', 'whole round trip of a DMA read, as in 6.8us', duration)
    .option('--added-rtt <duration>', 'what the fabric adds to the native round trip', duration)
    .option('--native-rtt <duration>', 'round trip on a host that has the GPU inside', duration)
    .option('--tags <n>', 'reads the device has outstanding', whole(1, 768))
    .option('--mrrs <bytes>', 'maximum read request size', size)
    .option('--mps <bytes>', 'maximum payload size', size)
    .option('--gen <n>', 'PCIe generation, 1 to 6', whole(1, 6))
    .option('--lanes <n>', '1, 2, 4, 8, 12, 16 or 32', whole(1, 32))
    .option('--network <rate>', 'bit rate of the network, as in 200Gbit/s, or none', networkRate)
    .option(
      '--prefetch <n>',
      'commands the device fetches ahead, a power of two to 64',
      whole(1, 64),
    )
    .option('--fetch-size <n>', 'commands that one fetch brings at most', whole(1, 64))
    .option('--fetches-in-flight <n>', 'fetches of a stream under way at once', whole(1, 64));
}
