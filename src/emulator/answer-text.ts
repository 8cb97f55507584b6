/** Answers as text for a terminal. */
import { LEAST_WIDTH, textTable } from '#report/text-table';
import { paragraph, plainText } from '#report/text-width';
import type { MicrobenchAnswer, TraceAnswer } from './answer.ts';
import {
  isRecalled,
  linkWords,
  MARK_WORDS,
  MICROBENCH_TITLES,
  microbenchTable,
  originWords,
  percentOr,
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
    plainText(answer.trace),
    originWords(answer),
    ...paragraph(`over ${plainText(link.name)}: ${linkWords(link)}`, room, '', '  '),
    '',
    verdictWords(answer),
    '',
    'Overhead, of the native time',
    ...textTable(
      [{ title: '' }, { title: '', align: 'right' }, { title: '', squeeze: 'wrap' }],
      [
        ['  additive', percentOr(estimates.additiveOverheadPct), 'if nothing hides'],
        ['  replay', percentOr(estimates.replayOverheadPct), 'dependencies run again'],
        ['  emulated', percentOr(estimates.emulatedOverheadPct), 'proxies, link and device run'],
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
    ...warnings.flatMap((warning) => paragraph(`note: ${warning}`, room, '', '  ')),
    ...(isRecalled(answer) ? ['', ...paragraph(MARK_WORDS, room, '', '  ')] : []),
  ];
}

export function microbenchText(answer: MicrobenchAnswer, width: number): string[] {
  const room = Math.max(LEAST_WIDTH, width);
  const { titles, rows } = microbenchTable(answer);
  const { link, kind } = answer;
  return [
    MICROBENCH_TITLES[kind],
    ...paragraph(`over ${plainText(link.name)}: ${deviceOnly(linkWords(link))}`, room, '', '  '),
    '',
    ...textTable(
      titles.map((title, index) => ({ title, align: index === 0 ? 'left' : 'right' })),
      rows,
      room,
    ),
    ...(isRecalled(answer) ? ['', ...paragraph(MARK_WORDS, room, '', '  ')] : []),
  ];
}

/** Each row has a round trip of its own. */
function deviceOnly(words: string): string {
  return words.replace(/^round trip [^,]*, of it /, '');
}
