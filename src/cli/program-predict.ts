/** The command that reads traces. */
import { type Command, Option } from 'commander';
import { answerOptions, examples, percent, whole } from './program-options.ts';
import { exampleOption, linkOptions, sharingOption } from './program-trace-options.ts';

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
    .addOption(sharingOption())
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
