import { lineCount } from '#simulator/answer-words';
import { mergeShards, readShard } from '#simulator/shard';
import { checkTargets, type FileOptions } from '../answer-targets.ts';
import type { AnswerFormat } from '../program-options.ts';
import { checkLines, printAnswer, writeAnswer } from '../simulate-answer.ts';
import { readWhole } from '../whole-file.ts';

export interface MergeOptions extends FileOptions {
  readonly output: AnswerFormat;
}

export async function mergeParts(files: readonly string[], options: MergeOptions): Promise<void> {
  checkTargets(options, files);
  const result = mergeShards(files.map((file) => readShard(file, readWhole(file).toString())));
  checkLines(options, lineCount(result));
  await printAnswer(result, options.output);
  await writeAnswer(options, result);
}
