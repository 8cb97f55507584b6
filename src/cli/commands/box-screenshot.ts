import { callProcess, findProcess } from '../control-client.ts';
import { type OutputFormat, printData, printLine } from '../output.ts';
import { stateFolder } from '../state-folder.ts';
import type { ProcessSelection } from '../status-report.ts';
import type { ScreenshotResult } from '../take-screenshot.ts';
import { checkTarget, writeWhole } from '../whole-file.ts';

export interface BoxScreenshotOptions extends ProcessSelection {
  readonly output: OutputFormat;
}

/** A large picture takes a while to compress. */
const WITHIN_MS = 30_000;

export async function boxScreenshot(
  slot: number,
  file: string,
  options: BoxScreenshotOptions,
): Promise<void> {
  checkTarget(file, []);
  const box = await findProcess(stateFolder(options.state), options.process, 'box');
  const answer = await callProcess(box, 'screenshot', { slot }, { withinMs: WITHIN_MS });
  const { width, height, png } = answer as ScreenshotResult;
  writeWhole(file, Buffer.from(png, 'base64'));
  if (options.output !== 'table') {
    await printData({ process: box.name, slot, width, height, file }, options.output);
  } else printLine(`${box.name} slot ${slot}: ${width} x ${height} pixels in ${file}`);
}
