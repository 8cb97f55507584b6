/** What `dxpu emulate` prints, in the form asked for, as answers come in. */
import { microbenchCsv, TRACE_CSV_HEADER, traceCsvLine } from '#emulator/answer-csv';
import { microbenchText, traceText } from '#emulator/answer-text';
import type { MicrobenchAnswer, TraceAnswer } from '#emulator/answer';
import { jsonText, printData, printLine } from './output.ts';
import type { AnswerFormat } from './program-options.ts';
import { terminal } from './terminal.ts';

/** An answer a link: all forms at once, but YAML, which is one thing, at the end. */
export class TracePrinter {
  readonly #format: AnswerFormat;
  readonly #all: TraceAnswer[] = [];

  constructor(format: AnswerFormat) {
    this.#format = format;
  }

  add(answer: TraceAnswer): void {
    const isFirst = this.#all.length === 0;
    this.#all.push(answer);
    switch (this.#format) {
      case 'json':
        printLine(jsonText(answer));
        break;
      case 'csv':
        if (isFirst) printLine(TRACE_CSV_HEADER);
        printLine(traceCsvLine(answer));
        break;
      case 'table':
        if (!isFirst) printLine('');
        for (const line of traceText(answer, terminal().columns)) printLine(line);
        break;
      case 'yaml':
    }
  }

  async end(): Promise<void> {
    if (this.#format !== 'yaml' || this.#all.length === 0) return;
    await printData(this.#all.length === 1 ? this.#all[0] : this.#all, 'yaml');
  }
}

export async function printMicrobench(
  answer: MicrobenchAnswer,
  format: AnswerFormat,
): Promise<void> {
  switch (format) {
    case 'csv':
      for (const line of microbenchCsv(answer)) printLine(line);
      break;
    case 'table':
      for (const line of microbenchText(answer, terminal().columns)) printLine(line);
      break;
    default:
      await printData(answer, format);
  }
}
