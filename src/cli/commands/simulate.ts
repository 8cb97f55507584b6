import { Worker } from 'node:worker_threads';
import type { FewestRow, SimulateRun } from '#simulator/result';
import { inShard, type ShardOf, shardResult, wholeResult } from '#simulator/shard';
import { type StudyUnit, type UnitResult, unitsOf } from '#simulator/study';
import { checkTargets, type FileOptions } from '../answer-targets.ts';
import { printNote, UsageError } from '../output.ts';
import { ownFile } from '../own-file.ts';
import type { AnswerFormat } from '../program-options.ts';
import { checkLines, printAnswer, writeAnswer } from '../simulate-answer.ts';
import { listFiles, type ListOptions, needsOf, readLists } from '../simulate-lists.ts';
import { constantsOf, planOf, type StudyOptions, studyId } from '../simulate-study.ts';
import type { SimulateWorkerData } from '../simulate-worker.ts';
import { EXIT_SIGNALS, runWhole, tellsProgress } from '../watched-run.ts';
import type { WorkerLike } from '../worker-pool.ts';

export interface SimulateCommandOptions extends ListOptions, StudyOptions, FileOptions {
  readonly shard?: ShardOf;
  readonly output: AnswerFormat;
}

/** More warnings of one kind than anybody reads. */
const MAX_WARNINGS = 5;

/** `startWorker` is for tests. */
export async function simulate(
  options: SimulateCommandOptions,
  startWorker: (data: SimulateWorkerData) => WorkerLike = newWorker,
): Promise<void> {
  const { shard, output } = options;
  checkShard(options);
  checkTargets(options, listFiles(options));
  const { lists, inputs, warnings } = readLists(options);
  const constants = constantsOf(options, lists);
  const units = unitsOf(planOf(options, lists));
  checkLines(options, linesOf(units));
  warn(warnings);
  const mine = shard === undefined ? units : inShard(units, shard);
  const runs: SimulateRun[] = [];
  const fewest: FewestRow[] = [];
  const { failure, signalled } = await runWhole<UnitResult>(mine, {
    start: () => startWorker({ lists, constants }),
    nameOf: (job) => unitName(mine[job]),
    isWatched: tellsProgress(options.example === true, output),
    onResult: (result) => {
      if ('run' in result) runs.push(result.run);
      else fewest.push(result.fewest);
    },
  });
  if (failure !== undefined) throw failure;
  if (signalled !== undefined) {
    printNote(`dxpu: interrupted; ${runs.length + fewest.length} of ${mine.length} were done`);
    process.exitCode = EXIT_SIGNALS[signalled];
    return;
  }
  const answers = {
    inputs,
    runs,
    fewest: options.fewest === true ? fewest : undefined,
    prices: constants.prices,
  };
  if (shard === undefined) {
    const result = wholeResult(answers);
    await printAnswer(result, output);
    await writeAnswer(options, result);
    return;
  }
  const ofFewest = units.filter(({ kind }) => kind === 'fewest').length;
  const about = {
    ...shard,
    study: studyId(inputs, needsOf(options), constants, units),
    runs: units.length - ofFewest,
    fewest: options.fewest === true ? ofFewest : null,
  };
  await printAnswer(shardResult(answers, about), output);
}

function checkShard({ shard, output, plot, html }: SimulateCommandOptions): void {
  if (shard === undefined) return;
  if (output !== 'json') {
    throw new UsageError('--shard prints what dxpu simulate merge reads: add --output json');
  }
  if (plot !== undefined || html !== undefined) {
    throw new UsageError('--plot and --html are of the whole: give them to dxpu simulate merge');
  }
}

function warn(warnings: readonly string[]): void {
  for (const line of warnings.slice(0, MAX_WARNINGS)) printNote(`dxpu: ${line}`);
  const more = warnings.length - MAX_WARNINGS;
  if (more > 0) printNote(`dxpu: and ${more} more such requests; they count as not placed`);
}

/** Lines or bars of a picture. */
function linesOf(units: readonly StudyUnit[]): number {
  const names = (fewest: boolean): number =>
    new Set(
      units
        .filter(({ kind }) => (kind === 'fewest') === fewest)
        .map(({ design, policy, setting }) => JSON.stringify([design, policy, setting])),
    ).size;
  return Math.max(names(true), names(false));
}

function unitName(unit: StudyUnit | undefined): string {
  if (unit === undefined) return '';
  const { design, policy, seeds } = unit;
  return `${design} ${policy}${seeds.length === 1 ? `, seed ${seeds[0]}` : ''}`;
}

function newWorker(data: SimulateWorkerData): WorkerLike {
  return new Worker(ownFile('simulate-worker.js'), { workerData: data });
}
