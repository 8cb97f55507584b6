/** The picture and the page `dxpu predict` writes. What draws them is slow to load. */
import { MAX_PLOTTED } from '#perfmodel/answer-words';
import type { Prediction } from '#perfmodel/prediction';
import { checkTargets, drawnAs, type FileOptions } from './answer-targets.ts';
import { UsageError } from './output.ts';
import { version } from './program-options.ts';
import { writeWhole } from './whole-file.ts';

/** Before any work: fails with what will not go. `count` is how many predictions there will be. */
export function checkFiles(options: FileOptions, inputs: readonly string[], count: number): void {
  checkTargets(options, inputs);
  if (options.plot !== undefined && count > MAX_PLOTTED) {
    throw new UsageError(
      `--plot draws at most ${MAX_PLOTTED} traces and links together, not ${count}: --html takes any number`,
    );
  }
}

/** `missing` says of each trace without an answer why. Returns what was written. */
export async function writeFiles(
  { plot, html }: FileOptions,
  predictions: readonly Prediction[],
  missing: readonly string[],
): Promise<string[]> {
  if (predictions.length === 0) return [];
  if (plot !== undefined) writeWhole(plot, await picture(plot, predictions));
  if (html !== undefined) {
    const { answerPage } = await import('#perfmodel/answer-page');
    writeWhole(html, answerPage(predictions, `Made by dxpu ${version()} predict.`, missing));
  }
  return [plot, html].flatMap((file) => file ?? []);
}

async function picture(
  file: string,
  predictions: readonly Prediction[],
): Promise<string | Uint8Array> {
  const { answerPlot } = await import('#perfmodel/answer-plot');
  return drawnAs(file, answerPlot(predictions));
}
