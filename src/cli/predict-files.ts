/** The picture and the page `dxpu predict` writes. What draws them is slow to load. */
import { MAX_PLOTTED } from '#report/palette';
import type { Prediction } from '#perfmodel/prediction';
import { checkPlotted, checkTargets, type FileOptions, writeTargets } from './answer-targets.ts';
import { version } from './program-options.ts';

/** Before any work: fails with what will not go. `count` is how many predictions there will be. */
export function checkFiles(options: FileOptions, inputs: readonly string[], count: number): void {
  checkTargets(options, inputs);
  checkPlotted(options, count, MAX_PLOTTED, 'traces and links');
}

/** `missing` says of each trace without an answer why. Without any answer nothing is written. */
export async function writeFiles(
  options: FileOptions,
  predictions: readonly Prediction[],
  missing: readonly string[],
): Promise<void> {
  if (predictions.length === 0) return;
  await writeTargets(options, {
    svg: async () => (await import('#perfmodel/answer-plot')).answerPlot(predictions),
    page: async () => {
      const { answerPage } = await import('#perfmodel/answer-page');
      return answerPage(predictions, `Made by dxpu ${version()} predict.`, missing);
    },
  });
}
