/** Options of the commands that run traces over links. */
import { type Command, Option } from 'commander';
import { linkProfileNames } from '#pcie/link-profile';
import type { SyntheticName } from '#trace/synthetic';
import { duration, filled, rate, several, size, whole } from './program-options.ts';

/** Of `syntheticTrace`, which is not loaded for help; the first is the usual one. */
export const EXAMPLES: readonly SyntheticName[] = [
  'training',
  'inference',
  'graph-decode',
  'copy-loader',
];

const networkRate = (text: string): number => (text === 'none' ? Infinity : rate(text));

/** `inPlaceOf`: what a made-up trace replaces. */
export function exampleOption(inPlaceOf: string): Option {
  return new Option('--example [name]', `a made-up trace instead of ${inPlaceOf}`)
    .choices(EXAMPLES)
    .preset(EXAMPLES[0]);
}

export function sharingOption(): Option {
  return new Option('--sharing <n>', 'GPUs that share the path')
    .argParser(whole(1, 100_000))
    .default(1);
}

/** `LinkOptions` of trace-links.ts. */
export function linkOptions(command: Command, mostTags: number): Command {
  return command
    .option(
      '--link <name|file>',
      `a link profile: ${linkProfileNames().join(', ')}, or a file; give it again to compare`,
      several(filled),
    )
    .option('--rtt <duration>', 'whole round trip of a DMA read, as in 6.8us', duration)
    .option('--added-rtt <duration>', 'what the fabric adds to the native round trip', duration)
    .option('--native-rtt <duration>', 'round trip on a host that has the GPU inside', duration)
    .option('--tags <n>', 'reads the device has outstanding', whole(1, mostTags))
    .option('--mrrs <bytes>', 'maximum read request size', size)
    .option('--mps <bytes>', 'maximum payload size', size)
    .option('--gen <n>', 'PCIe generation, 1 to 6', whole(1, 6))
    .option('--lanes <n>', '1, 2, 4, 8, 12, 16 or 32', whole(1, 32))
    .option('--network <rate>', 'bit rate of the network, as in 200Gbit/s, or none', networkRate);
}
