/** What `dxpu predict` prints, in the form asked for, as answers come in. */
import picocolors from 'picocolors';
import { comparisonText } from '#perfmodel/answer-compare';
import { AnswerCsv } from '#perfmodel/answer-csv';
import { summaryText } from '#perfmodel/answer-summary';
import { answerText, type TextStyle } from '#perfmodel/answer-text';
import type { Prediction } from '#perfmodel/prediction';
import { jsonText, printData, printLine } from './output.ts';
import type { AnswerFormat } from './program-options.ts';
import { type Terminal, terminal } from './terminal.ts';

/** JSON and CSV lines at once; a table and YAML at the end, as they are one thing. */
export class PredictPrinter {
  readonly #format: AnswerFormat;
  readonly #isAlone: boolean;
  readonly #csv = new AnswerCsv();
  readonly #all: Prediction[] = [];

  /** `isAlone`: of one trace, which gets the answer in full. */
  constructor(format: AnswerFormat, isAlone: boolean) {
    this.#format = format;
    this.#isAlone = isAlone;
  }

  /** The predictions of one trace, one for each link. */
  add(predictions: readonly Prediction[]): void {
    this.#all.push(...predictions);
    if (this.#format === 'json') for (const one of predictions) printLine(jsonText(one));
    if (this.#format === 'csv') for (const line of this.#csv.lines(predictions)) printLine(line);
  }

  async end(shown: Terminal = terminal()): Promise<void> {
    const [first] = this.#all;
    if (this.#format === 'yaml') {
      const one = this.#isAlone && this.#all.length === 1;
      await printData(one ? first : this.#all, 'yaml');
    }
    if (this.#format !== 'table' || first === undefined) return;
    for (const line of this.#lines(first, shown)) printLine(line);
  }

  #lines(first: Prediction, { columns, colours }: Terminal): string[] {
    if (!this.#isAlone) return summaryText(this.#all, columns);
    if (this.#all.length > 1) return comparisonText(this.#all, columns);
    return answerText(first, columns, styleOf(colours));
  }
}

function styleOf(isOn: boolean): TextStyle {
  const colours = picocolors.createColors(isOn);
  const tone = { yes: colours.green, no: colours.red, unsure: colours.yellow };
  return {
    heading: colours.bold,
    verdict: (text, within) => colours.bold(tone[within](text)),
  };
}
