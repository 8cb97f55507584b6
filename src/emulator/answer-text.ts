/** Answers as text for a terminal. */
import * as figures from '#report/figures';
import type { LinkFigures } from '#report/link-figures';
import { linkWords, linkWordsWithoutRtt, recalledWords } from '#report/link-words';
import { LEAST_WIDTH, textTable } from '#report/text-table';
import { paragraph, plainText } from '#report/text-width';
import { originLines } from '#report/trace-words';
import type { MicrobenchAnswer, TraceAnswer } from './answer.ts';
import {
  MICROBENCH_TITLES,
  microbenchTable,
  shownTrace,
  spanWords,
  tagWords,
  TLP_TITLES,
  tlpRows,
  verdictWords,
} from './answer-words.ts';

/** Lines of one trace over one link, none wider than `width` where words allow. */
export function traceText(answer: TraceAnswer, width: number): string[] {
  const room = Math.max(LEAST_WIDTH, width);
  const { link, estimates, pooled, warnings } = answer;
  const [tlpTitle, ...titles] = TLP_TITLES;
  return [
    ...originLines(shownTrace(answer), room),
    ...paragraph(`over ${plainText(link.name)}: ${linkWords(link)}`, room, '', '  '),
    '',
    verdictWords(answer),
    '',
    'Overhead, of the native time',
    ...textTable(
      [{ title: '' }, { title: '', align: 'right' }, { title: '', squeeze: 'wrap' }],
      [
        ['  additive', figures.percentOr(estimates.additiveOverheadPct), 'if nothing hides'],
        ['  replay', figures.percentOr(estimates.replayOverheadPct), 'dependencies run again'],
        [
          '  emulated',
          figures.percentOr(estimates.emulatedOverheadPct),
          'proxies, link and device run',
        ],
      ],
      room,
    ),
    '',
    ...paragraph(spanWords(answer), room, '', '  '),
    '',
    ...textTable(
      [
        { title: tlpTitle },
        { title: titles[0] ?? '', align: 'right' },
        { title: titles[1] ?? '', squeeze: 'wrap' },
        { title: titles[2] ?? '', align: 'right' },
        { title: titles[3] ?? '', align: 'right' },
      ],
      tlpRows(pooled),
      room,
    ),
    ...paragraph(tagWords(answer), room, '', '  '),
    ...warnings.flatMap((warning) => paragraph(plainText(`note: ${warning}`), room, '', '  ')),
    ...markLines(link, room),
  ];
}

export function microbenchText(answer: MicrobenchAnswer, width: number): string[] {
  const room = Math.max(LEAST_WIDTH, width);
  const { titles, rows } = microbenchTable(answer);
  const { link, kind } = answer;
  return [
    MICROBENCH_TITLES[kind],
    ...paragraph(`over ${plainText(link.name)}: ${linkWordsWithoutRtt(link)}`, room, '', '  '),
    '',
    ...textTable(
      titles.map((title, index) => ({ title, align: index === 0 ? 'left' : 'right' })),
      rows,
      room,
    ),
    ...markLines(link, room),
  ];
}

function markLines(link: LinkFigures, room: number): string[] {
  const words = recalledWords([link]);
  return words === '' ? [] : ['', ...paragraph(words, room, '', '  ')];
}
