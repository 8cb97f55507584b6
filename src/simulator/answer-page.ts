/** The answer as one self-contained page. */
import { callout, figure, htmlPage, list, paragraph, table } from '#report/html-page';
import { MAX_PLOTTED } from '#report/palette';
import { pictures } from './answer-plot.ts';
import { type AnswerTable, answerTables, refusedTable } from './answer-tables.ts';
import {
  findings,
  inputWords,
  isSynthetic,
  lineCount,
  settingLines,
  SYNTHETIC_WORDS,
} from './answer-words.ts';
import type { SimulateResult } from './result.ts';

/** `madeBy` says by what, at the foot. */
export function answerPage(result: SimulateResult, madeBy: string): string {
  const found = findings(result);
  const drawn = lineCount(result) <= MAX_PLOTTED ? pictures(result) : [];
  const refused = refusedTable(result);
  const settings = settingLines(result);
  const head = [
    ...(isSynthetic(result) ? [callout(SYNTHETIC_WORDS, 'unsure')] : []),
    ...found.map(paragraph),
  ];
  return htmlPage({
    title: 'Servers and a pool of the same GPUs',
    subtitle: inputWords(result).join(', '),
    sections: [
      ...(head.length === 0 ? [] : [{ heading: 'Finding', body: head }]),
      ...answerTables(result).map(section),
      ...(drawn.length === 0
        ? []
        : [{ heading: 'Pictures', body: drawn.map((svg) => figure(svg, 'Servers are dashed.')) }]),
      ...(refused === undefined ? [] : [section(refused)]),
      ...(settings.length === 0 ? [] : [{ heading: 'Settings', body: [list(settings)] }]),
    ],
    footer: madeBy,
  });
}

function section({ heading, titles, rows, words, endsInText }: AnswerTable): {
  heading: string;
  body: ReturnType<typeof table>[];
} {
  const kinds = titles.map((_, at) => {
    if (at < words) return 'word' as const;
    return endsInText === true && at === titles.length - 1
      ? ('text' as const)
      : ('number' as const);
  });
  return { heading, body: [table(titles, rows, kinds)] };
}
