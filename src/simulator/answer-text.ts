/** The answer in text, for a terminal. */
import { paragraph } from '#report/text-width';
import { type TextColumn, textTable } from '#report/text-table';
import { type AnswerTable, answerTables } from './answer-tables.ts';
import {
  findings,
  inputWords,
  isSynthetic,
  settingLines,
  SYNTHETIC_WORDS,
} from './answer-words.ts';
import type { SimulateResult } from './result.ts';

/** Lines no wider than `width`, or than a table can be made. */
export function answerText(result: SimulateResult, width: number): string[] {
  const seeds = new Set(result.runs.map(({ seed }) => seed));
  const [first, ...others] = seeds;
  const seedWords = others.length === 0 ? `seed ${first}` : `${seeds.size} seeds from ${first}`;
  return [
    ...paragraph(`${inputWords(result).join(', ')}; ${seedWords}`, width, '', '  '),
    ...(isSynthetic(result) ? paragraph(SYNTHETIC_WORDS, width, '', '  ') : []),
    ...answerTables(result).flatMap((table) => ['', table.heading, ...tableLines(table, width)]),
    ...spaced(findings(result).flatMap((text) => paragraph(text, width, '', ''))),
    ...spaced(settingLines(result).flatMap((text) => paragraph(text, width, '', '  '))),
  ];
}

function spaced(lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', ...lines];
}

function tableLines(
  { titles, rows, words, endsInText, optional = [] }: AnswerTable,
  width: number,
): string[] {
  const columns = titles.map((title, at): TextColumn => {
    if (at < words) return { title };
    const isText = endsInText === true && at === titles.length - 1;
    return isText
      ? { title, squeeze: 'wrap', optional: true }
      : { title, align: 'right', optional: optional.includes(title) };
  });
  return textTable(columns, rows, width);
}
