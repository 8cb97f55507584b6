/** The picture and the page `dxpu predict` writes. What draws them is slow to load. */
import { MAX_PLOTTED } from '#perfmodel/answer-words';
import type { Prediction } from '#perfmodel/prediction';
import { UsageError } from './output.ts';
import { version } from './program-options.ts';
import { checkTarget, writeWhole } from './whole-file.ts';

export interface FileOptions {
  readonly plot?: string;
  readonly html?: string;
}

/** Before any work: fails with what will not go. `count` is how many predictions there will be. */
export function checkFiles(
  { plot, html }: FileOptions,
  inputs: readonly string[],
  count: number,
): void {
  if (plot !== undefined) {
    if (!/\.(?:svg|png)$/i.test(plot)) {
      throw new UsageError(`--plot ${plot}: a name ending in .svg or .png says what to draw`);
    }
    if (count > MAX_PLOTTED) {
      throw new UsageError(
        `--plot draws at most ${MAX_PLOTTED} traces and links together, not ${count}: --html takes any number`,
      );
    }
    checkTarget(plot, inputs);
  }
  if (html !== undefined) {
    if (!/\.html?$/i.test(html)) {
      throw new UsageError(`--html ${html}: the name of a page ends in .html`);
    }
    checkTarget(html, inputs);
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
  const svg = answerPlot(predictions);
  if (!/\.png$/i.test(file)) return svg;
  const { pngOf } = await import('#report/png');
  return pngOf(svg);
}
