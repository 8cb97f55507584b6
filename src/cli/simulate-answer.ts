/** What `dxpu simulate` and `dxpu simulate merge` print and write. */
import { MAX_PLOTTED } from '#report/palette';
import { answerCsv } from '#simulator/answer-csv';
import { answerText } from '#simulator/answer-text';
import type { SimulateResult } from '#simulator/result';
import { checkPlotted, type FileOptions, writeTargets } from './answer-targets.ts';
import { jsonText, LineWriter, yamlOf } from './output.ts';
import { type AnswerFormat, version } from './program-options.ts';
import { terminal } from './terminal.ts';

/** Fails where a picture would have too many lines, or bars. */
export function checkLines(options: FileOptions, lines: number): void {
  checkPlotted(options, lines, MAX_PLOTTED, 'designs, policies and settings');
}

export async function printAnswer(result: SimulateResult, format: AnswerFormat): Promise<void> {
  const out = new LineWriter(process.stdout);
  for (const line of await linesOf(result, format)) out.line(line);
  await out.flush();
}

async function linesOf(result: SimulateResult, format: AnswerFormat): Promise<string[]> {
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
export function writeAnswer(options: FileOptions, result: SimulateResult): Promise<void> {
  return writeTargets(options, {
    svg: async () => (await import('#simulator/answer-plot')).answerPlot(result),
    page: async () => {
      const { answerPage } = await import('#simulator/answer-page');
      return answerPage(result, `Made by dxpu ${version()} simulate.`);
    },
  });
}
