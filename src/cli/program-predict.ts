/** The command that reads traces. */
import { type Command, Option } from 'commander';
import { DxpuError } from '#base/errors';
import { answerOptions, checked, examples, whole } from './program-options.ts';
import { exampleOption, linkOptions } from './program-trace-options.ts';

const percent = checked((text: string): number => {
  const match = /^\s*(\d+(?:\.\d+)?)\s*%?\s*$/.exec(text);
  const value = Number(match?.[1] ?? Number.NaN);
  if (value > 0 && value <= 1e6) return value;
  throw new DxpuError(
    'invalid_argument',
    `${JSON.stringify(text)} is not a share above 0: write percent, as in 10 or 2.5%`,
  );
});

export function addPredict(program: Command): void {
  const predict = program
    .command('predict')
    .description('what a workload will lose when its GPU moves away, from traces of it')
    .argument(
      '[trace...]',
      'PyTorch (Kineto) JSON, Nsight Systems sqlite or nvprof CSV; recognised by content',
    )
    .addOption(exampleOption('files'));
  linkOptions(predict, 1024)
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
