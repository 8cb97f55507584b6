import { lineCount } from '#simulator/answer-words';
import { mergeShards, readShard } from '#simulator/shard';
import { checkTargets, type FileOptions } from '../answer-targets.ts';
import type { AnswerFormat } from '../program-options.ts';
import { checkLines, printAnswer, writeAnswer } from '../simulate-answer.ts';
import { readWholeText } from '../whole-file.ts';

const TOO_LARGE = 'make more parts, with a larger N in --shard K/N';

export interface MergeOptions extends FileOptions {
  readonly output: AnswerFormat;
}

export async function mergeParts(files: readonly string[], options: MergeOptions): Promise<void> {
  checkTargets(options, files);
  const result = mergeShards(files.map((file) => readShard(file, readWholeText(file, TOO_LARGE))));
  checkLines(options, lineCount(result));
  await printAnswer(result, options.output);
  await writeAnswer(options, result);
}
