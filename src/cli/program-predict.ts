/** The command that reads traces. */
import { type Command, Option } from 'commander';
import { DxpuError } from '#base/errors';
import { linkProfileNames } from '#pcie/link-profile';
import type { SyntheticName } from '#trace/synthetic';
import {
  answerOptions,
  checked,
  duration,
  examples,
  filled,
  rate,
  several,
  size,
  whole,
} from './program-options.ts';

/** Of `syntheticTrace`, which is not loaded for help; the first is the usual one. */
export const EXAMPLES: readonly SyntheticName[] = [
  'training',
  'inference',
  'graph-decode',
  'copy-loader',
];

const percent = checked((text: string): number => {
  const match = /^\s*(\d+(?:\.\d+)?)\s*%?\s*$/.exec(text);
  const value = Number(match?.[1] ?? Number.NaN);
  if (value > 0 && value <= 1e6) return value;
  throw new DxpuError(
    'invalid_argument',
    `${JSON.stringify(text)} is not a share above 0: write percent, as in 10 or 2.5%`,
  );
});

export const networkRate = (text: string): number => (text === 'none' ? Infinity : rate(text));

export function addPredict(program: Command): void {
  const predict = program
    .command('predict')
    .description('what a workload will lose when its GPU moves away, from traces of it')
    .argument(
      '[trace...]',
      'PyTorch (Kineto) JSON, Nsight Systems sqlite or nvprof CSV; recognised by content',
    )
    .addOption(
      new Option('--example [name]', 'a made-up trace instead of files')
        .choices(EXAMPLES)
        .preset(EXAMPLES[0]),
    )
    .option(
      '--link <name|file>',
      `a link profile: ${linkProfileNames().join(', ')}, or a file; give it again to compare`,
      several(filled),
    )
    .option('--rtt <duration>', 'whole round trip of a DMA read, as in 6.8us', duration)
    .option('--added-rtt <duration>', 'what the fabric adds to the native round trip', duration)
    .option('--native-rtt <duration>', 'round trip on a host that has the GPU inside', duration)
    .option('--tags <n>', 'reads the device has outstanding', whole(1, 1024))
    .option('--mrrs <bytes>', 'maximum read request size', size)
    .option('--mps <bytes>', 'maximum payload size', size)
    .option('--gen <n>', 'PCIe generation, 1 to 6', whole(1, 6))
    .option('--lanes <n>', '1, 2, 4, 8, 12, 16 or 32', whole(1, 32))
    .option('--network <rate>', 'bit rate of the network, as in 200Gbit/s, or none', networkRate)
    .option('--sharing <n>', 'GPUs that share the path', whole(1, 100_000), 1)
    .option('--fetches <n>', 'DMA reads a submission needs in turn', whole(0, 1000), 1)
    .addOption(
      new Option('--peers <where>', 'where GPUs that copy to each other are')
        .choices(['box', 'spread'])
        .default('box'),
    )
    .option('--budget <percent>', 'overhead that is accepted', percent, 10)
    .option('--per-iteration', 'each iteration the trace marks, too');
  answerOptions(predict, 'overhead and causes').action(
    async (files: string[], _options, command: Command) =>
      (await import('./commands/predict.ts')).predict(files, command.optsWithGlobals()),
  );
  examples(predict, [
    'dxpu predict --example              # nothing at hand: a synthetic trace',
    'dxpu predict trace.json.gz',
    'dxpu predict trace.json.gz --rtt 4us --tags 256 --budget 5%',
    'dxpu predict trace.json.gz --link dxpu-6.8us --link dxpu-4.9us --link lab.yaml',
    'dxpu predict trace.json.gz --plot overhead.svg --html answer.html',
    'dxpu predict rank*.json.gz --output csv > ranks.csv',
  ]);
}
