import { readFileSync } from 'node:fs';
import { lineCount } from '#simulator/answer-words';
import { mergeShards, readShard } from '#simulator/shard';
import { checkTargets, type FileOptions } from '../answer-targets.ts';
import { fileProblem } from '../file-problem.ts';
import { checkPlotted, printAnswer, type SimulateFormat, writeAnswer } from '../simulate-answer.ts';

export interface MergeOptions extends FileOptions {
  readonly output: SimulateFormat;
}

export async function mergeParts(files: readonly string[], options: MergeOptions): Promise<void> {
  checkTargets(options, files);
  const result = mergeShards(files.map((file) => readShard(file, read(file))));
  checkPlotted(options, lineCount(result));
  await printAnswer(result, options.output);
  await writeAnswer(options, result);
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw fileProblem('read', file, error);
  }
}
