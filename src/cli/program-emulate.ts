/** The commands that emulate: a trace, and the microbenchmarks of the field. */
import type { Command } from 'commander';
import type { Microbench } from '#emulator/microbench';
import { duration, examples, filled, several, whole } from './program-options.ts';
import { exampleOption, linkOptions } from './program-trace-options.ts';

/** The module that runs them is not loaded for help. */
const MICROBENCHES = {
  bandwidth: 'rates of copies to and from the device, 4 KiB to 256 MiB, over round trips',
  latency: 'launching an empty kernel and waiting for it, over round trips',
  'launch-rate': 'empty kernels a second from a queue that is never empty, over round trips',
} as const satisfies Record<Microbench, string>;

export function addEmulate(program: Command): void {
  const emulate = program
    .command('emulate')
    .description('a recorded workload through both proxies and the device, in virtual time')
    .argument('[trace]', 'a trace as dxpu predict reads them, with the CPU side')
    .addOption(exampleOption('a file'));
  linkAndDeviceOptions(emulate)
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
  addMicrobench(emulate, 'bandwidth');
  addMicrobench(emulate, 'latency');
  addMicrobench(emulate, 'launch-rate');
}

function addMicrobench(emulate: Command, kind: Microbench): void {
  const command = emulate.command(kind).description(MICROBENCHES[kind]);
  linkAndDeviceOptions(command)
    .option(
      '--at <duration>',
      'a whole round trip instead of the usual ones; may be given again',
      several(duration),
    )
    .option('--plot <file>', 'draw it, as .svg or .png', filled)
    .action(async (_options, own: Command) =>
      (await import('./commands/emulate.ts')).emulateMicrobench(kind, own.optsWithGlobals()),
    );
  examples(command, [
    `dxpu emulate ${kind}`,
    `dxpu emulate ${kind} --at 1.2us --at 6.8us --tags 256 --plot ${kind}.svg`,
  ]);
}

function linkAndDeviceOptions(command: Command): Command {
  return linkOptions(command, 768)
    .option(
      '--prefetch <n>',
      'commands the device fetches ahead, a power of two to 64',
      whole(1, 64),
    )
    .option('--fetch-size <n>', 'commands that one fetch brings at most', whole(1, 64))
    .option('--fetches-in-flight <n>', 'fetches of a stream under way at once', whole(1, 64));
}
