/** What `dxpu simulate` and `dxpu simulate merge` print and write. */
import { answerCsv } from '#simulator/answer-csv';
import { answerText } from '#simulator/answer-text';
import { MAX_LINES } from '#simulator/answer-words';
import type { SimulateResult } from '#simulator/result';
import { drawnAs, type FileOptions } from './answer-targets.ts';
import {
  jsonText,
  LineWriter,
  type OutputFormat,
  printNote,
  UsageError,
  yamlOf,
} from './output.ts';
import { version } from './program-options.ts';
import { terminal } from './terminal.ts';
import { writeWhole } from './whole-file.ts';

export type SimulateFormat = OutputFormat | 'csv';

/** Fails before the work where the picture would hold more than can be told apart. */
export function checkPlotted({ plot }: FileOptions, lines: number): void {
  if (plot === undefined || lines <= MAX_LINES) return;
  throw new UsageError(
    `--plot draws at most ${MAX_LINES} designs, policies and settings together, not ${lines}: --html takes any number`,
  );
}

export async function printAnswer(result: SimulateResult, format: SimulateFormat): Promise<void> {
  const out = new LineWriter(process.stdout);
  for (const line of await linesOf(result, format)) out.line(line);
  await out.flush();
}

async function linesOf(result: SimulateResult, format: SimulateFormat): Promise<string[]> {
  switch (format) {
    case 'json':
      return [jsonText(result)];
    case 'yaml':
      return [(await yamlOf(result)).trimEnd()];
    case 'csv':
      return answerCsv(result);
    case 'table':
      return answerText(result, terminal().columns);
  }
}

/** The picture and the page; says what was written. */
export async function writeAnswer(
  { plot, html }: FileOptions,
  result: SimulateResult,
): Promise<void> {
  if (plot !== undefined) {
    const { answerPlot } = await import('#simulator/answer-plot');
    writeWhole(plot, await drawnAs(plot, answerPlot(result)));
    printNote(`wrote ${plot}`);
  }
  if (html !== undefined) {
    const { answerPage } = await import('#simulator/answer-page');
    writeWhole(html, answerPage(result, `Made by dxpu ${version()} simulate.`));
    printNote(`wrote ${html}`);
  }
}
