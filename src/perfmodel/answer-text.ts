/** The answer as text that a person takes in within ten seconds: the verdict first, reasons below. */
import * as figures from '#report/figures';
import { recalledWords } from '#report/link-words';
import { bar } from '#report/text-bar';
import { type TextColumn, LEAST_WIDTH, textTable } from '#report/text-table';
import { displayWidth, padEnd, padStart, paragraph, plainText } from '#report/text-width';
import { originLines, verdictWord } from '#report/trace-words';
import {
  causeShares,
  linkWords,
  maxRttWords,
  shareWords,
  shortLinkWords,
  workloadRows,
} from './answer-words.ts';
import type { Advice, Prediction, WindowFigures } from './prediction.ts';

const INDENT = '  ';
/** Beyond this, lines are harder to read, not easier. */
const MOST_WIDTH = 100;

/** How parts of the text are set off; each returns its text with nothing visible added. */
export interface TextStyle {
  readonly heading: (text: string) => string;
  readonly verdict: (text: string, within: Prediction['verdict']['within']) => string;
}

const PLAIN: TextStyle = { heading: (text) => text, verdict: (text) => text };

/** One trace and one link. No line is wider than `width`, or `LEAST_WIDTH` where that is more. */
export function answerText(
  prediction: Prediction,
  width: number,
  style: TextStyle = PLAIN,
): string[] {
  const room = Math.max(LEAST_WIDTH, Math.min(width, MOST_WIDTH));
  const { link, verdict, advice } = prediction;
  const parts: readonly (readonly [heading: string, body: readonly string[]])[] = [
    ['Overhead, of the native time', overheadLines(prediction, room)],
    ['Largest whole round trip that keeps', budgetLines(prediction, room)],
    causesPart(prediction, room),
    ['The workload', pairs(workloadRows(prediction), room)],
    ['What would help, and the overhead it leaves', adviceLines(advice, room)],
    ['Iterations', iterationLines(prediction, room)],
    ['How sure this is', reasonLines(prediction, room)],
    ['The link', linkLines(link, room)],
    [
      'Warnings',
      items(
        prediction.warnings.map(({ message }) => message),
        room,
      ),
    ],
  ];
  return [
    ...originLines(prediction.trace, room),
    ...paragraph(`over ${shortLinkWords(link)}`, room, '', INDENT),
    '',
    ...paragraph(`${verdictWord(verdict.within).toUpperCase()}: ${verdict.text}`, room).map(
      (line) => style.verdict(line, verdict.within),
    ),
    ...parts.flatMap(([heading, body]) =>
      body.length === 0
        ? []
        : ['', ...paragraph(heading, room).map((line) => style.heading(line)), ...body],
    ),
  ];
}

/** Bars to one scale, each with a note behind it, or below all where there is no room. */
function overheadLines(prediction: Prediction, room: number): string[] {
  const rows = overheadRows(prediction);
  const most = Math.max(...rows.map(([, value]) => value ?? 0));
  const notes = Math.max(...rows.map(([, , note]) => displayWidth(note)));
  const left = room - 4 * INDENT.length - OVERHEAD_WORD - OVERHEAD_PCT;
  const isBeside = left - notes >= LEAST_BAR;
  const wide = Math.min(MOST_BAR, isBeside ? left - notes : left);
  const lines = rows.map(([word, value, note]) =>
    [
      `${INDENT}${padEnd(word, OVERHEAD_WORD)}`,
      padStart(figures.percentOr(value), OVERHEAD_PCT),
      padEnd(bar(value ?? 0, most, wide), wide),
      isBeside ? note : '',
    ]
      .join(INDENT)
      .trimEnd(),
  );
  const below = rows.flatMap(([word, , note]) =>
    isBeside || note === '' ? [] : paragraph(`${word}: ${note}`, room, INDENT, INDENT + INDENT),
  );
  return [...lines, ...below, ...windowLines(prediction.iterations, room)];
}

const OVERHEAD_WORD = 8;
const OVERHEAD_PCT = 7;
const LEAST_BAR = 12;
const MOST_BAR = 30;

function overheadRows({
  additive,
  replay,
  verdict,
}: Prediction): (readonly [string, number | null, string])[] {
  const rows = [
    ['additive', additive.overheadPct, 'if nothing hides'],
    ['budget', verdict.budgetPct, ''],
  ] as const;
  if (replay === null) return [...rows];
  const [low, high] = replay.rangePct.map(figures.percent);
  const range = low === high ? '' : `${low} to ${high}, `;
  return [['replay', replay.overheadPct, `${range}confidence ${replay.confidence}`], ...rows];
}

/** The marked iterations beside the whole trace, whose beginning may be long. */
function windowLines(window: WindowFigures | null, room: number): string[] {
  if (window === null) return [];
  const { replay, additive } = window;
  const parts = [
    ...(replay === null ? [] : [`replay ${figures.percentOr(replay.overheadPct)}`]),
    `additive ${figures.percentOr(additive.overheadPct)}`,
  ];
  return paragraph(
    `${plainText(window.label)} alone: ${parts.join(', ')}`,
    room,
    INDENT,
    INDENT + INDENT,
  );
}

function budgetLines({ budgets, replay }: Prediction, room: number): string[] {
  const columns: TextColumn[] = [
    { title: '' },
    ...budgets.map(({ overheadPct }) => ({
      title: figures.percent(overheadPct),
      align: 'right' as const,
    })),
  ];
  const row = (estimate: 'replay' | 'additive'): string[] => [
    padEnd(estimate, 8),
    ...budgets.map((budget) => maxRttWords(budget, estimate)),
  ];
  const rows = [...(replay === null ? [] : [row('replay')]), row('additive')];
  const table = textTable(columns, rows, room - INDENT.length);
  return table.map((line) => `${INDENT}${line}`);
}

/** Where the loss comes from, by the estimate that decides. */
function causesPart({ causes, replay }: Prediction, room: number): [string, string[]] {
  const shares = causeShares(causes);
  const total = shares.reduce((sum, { ns }) => sum + ns, 0);
  const estimate = replay === null ? 'additive' : 'replay';
  const wide = Math.min(MOST_BAR, room - 2 - 13 - 2 - 6 - 2 - 8 - 2);
  const lines = shares.map(({ word, ns, pct }) =>
    [
      `${INDENT}${padEnd(word, 13)}`,
      padStart(shareWords(pct), 6),
      padStart(figures.duration(ns), 8),
      ...(wide < 6 ? [] : [bar(pct, 100, wide)]),
    ]
      .join(INDENT)
      .trimEnd(),
  );
  return [`Where ${figures.duration(total)} are lost (${estimate})`, lines];
}

/** Names and values below each other. */
function pairs(rows: readonly (readonly [string, string])[], room: number): string[] {
  const widest = Math.max(...rows.map(([name]) => displayWidth(name)));
  return rows.flatMap(([name, value]) =>
    paragraph(
      value,
      room,
      `${INDENT}${padEnd(name, widest)}${INDENT}`,
      ' '.repeat(widest + 2 * INDENT.length),
    ),
  );
}

function adviceLines(advice: readonly Advice[], room: number): string[] {
  return advice.flatMap((one) => {
    const pct = one.replayOverheadPct ?? one.additiveOverheadPct;
    const left = `${INDENT}${padStart(figures.percentOr(pct), 7)}${INDENT}`;
    return paragraph(plainText(one.text), room, left, ' '.repeat(displayWidth(left)));
  });
}

function iterationLines({ perIteration }: Prediction, room: number): string[] {
  if (perIteration === undefined) return [];
  if (perIteration.length === 0) return [`${INDENT}The trace marks none.`];
  const rows = perIteration.map((one) => [
    plainText(one.label),
    figures.duration(one.nativeSpanNs),
    figures.percentOr(one.replay?.overheadPct),
    figures.percentOr(one.additive.overheadPct),
    figures.count(one.submissions),
    figures.count(one.hostWaits),
  ]);
  const columns: TextColumn[] = [
    { title: 'iteration', squeeze: 'middle', least: 8 },
    ...['native', 'replay', 'additive', 'submissions', 'waits'].map((title) => ({
      title,
      align: 'right' as const,
    })),
  ];
  return textTable(columns, rows, room - INDENT.length).map((line) => `${INDENT}${line}`);
}

/** Why the replay is graded as it is, or missing. */
function reasonLines({ replay, replayReason }: Prediction, room: number): string[] {
  if (replay === null) {
    const reason = plainText(replayReason ?? 'the trace lacks what it needs');
    return paragraph(`No replay: ${reason}`, room, INDENT);
  }
  const measured = pairs(
    [
      ['confidence', replay.confidence],
      ['unexplained', `${figures.percent(replay.unexplainedPct)} of the critical path`],
      ['self-replay', `${figures.percent(replay.selfErrorPct)} off the recorded span`],
      ['residual', `${figures.percent(replay.residualPct)} of the span`],
    ],
    room,
  );
  return [...measured, ...items(replay.confidenceReasons, room)];
}

function linkLines(link: Prediction['link'], room: number): string[] {
  const recalled = recalledWords([link]);
  return [
    ...paragraph(`${plainText(link.name)}: ${linkWords(link)}`, room, INDENT, INDENT + INDENT),
    ...(recalled === '' ? [] : paragraph(recalled, room, INDENT, INDENT + INDENT)),
  ];
}

function items(texts: readonly string[], room: number): string[] {
  return texts.flatMap((text) => paragraph(plainText(text), room, `${INDENT}- `, INDENT + INDENT));
}
