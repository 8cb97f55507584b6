/** The answer as text that a person takes in within ten seconds: the verdict first, reasons below. */
import * as figures from '#report/figures';
import { bar } from '#report/text-bar';
import { type TextColumn, LEAST_WIDTH, textTable } from '#report/text-table';
import {
  displayWidth,
  padEnd,
  padStart,
  paragraph,
  plainText,
  withoutMiddle,
} from '#report/text-width';
import {
  causeShares,
  linkWords,
  maxRttWords,
  originWords,
  percentOr,
  recalledWords,
  verdictWord,
  workloadRows,
} from './answer-words.ts';
import type { Advice, Prediction, WindowFigures } from './prediction.ts';

const INDENT = '  ';
/** Beyond this, lines are harder to read, not easier. */
const MOST_WIDTH = 100;

/** One trace and one link. No line is wider than `width`, or `LEAST_WIDTH` where that is more. */
export function answerText(prediction: Prediction, width: number): string[] {
  const room = Math.max(LEAST_WIDTH, Math.min(width, MOST_WIDTH));
  return [
    ...headingLines(prediction, room),
    ...paragraph(`${prediction.link.name}: ${linkWords(prediction.link)}`, room, '', INDENT),
    ...paragraph(recalledWords([prediction.link]), room, '', INDENT).filter((line) => line !== ''),
    '',
    ...paragraph(`${verdictWord(prediction).toUpperCase()}: ${prediction.verdict.text}`, room),
    '',
    ...overheadLines(prediction, room),
    ...budgetLines(prediction, room),
    ...causeLines(prediction, room),
    ...workloadLines(prediction, room),
    ...adviceLines(prediction.advice, room),
    ...iterationLines(prediction, room),
    ...reasonLines(prediction, room),
    ...warningLines(prediction, room),
  ];
}

/** The trace: its file and where it comes from. */
export function headingLines({ trace }: Prediction, room: number): string[] {
  return [
    withoutMiddle(plainText(trace.file), room),
    ...paragraph(plainText(originWords(trace)), room, '', INDENT),
  ];
}

function overheadLines(
  { additive, replay, verdict, iterations }: Prediction,
  room: number,
): string[] {
  const { budgetPct } = verdict;
  const rows: [string, number | null, string][] = [];
  if (replay !== null) {
    const [low, high] = replay.rangePct;
    const range =
      figures.percent(low) === figures.percent(high)
        ? ''
        : `${figures.percent(low)} to ${figures.percent(high)}, `;
    rows.push(['replay', replay.overheadPct, `${range}confidence ${replay.confidence}`]);
  }
  rows.push([
    'additive',
    additive.overheadPct,
    replay === null ? 'nothing hides anything' : 'bound of the replay',
  ]);
  rows.push(['budget', budgetPct, '']);
  const most = Math.max(...rows.map(([, value]) => value ?? 0));
  const notes = Math.max(...rows.map(([, , note]) => displayWidth(note)));
  const wide = room - INDENT.length - 8 - 2 - 8 - 2 - 2 - notes;
  const lines = rows.map(([word, value, note]) => {
    const head = `${INDENT}${padEnd(word, 8)}${INDENT}${padStart(percentOr(value), 8)}${INDENT}`;
    const drawn =
      wide < 6
        ? ''
        : `${padEnd(bar(value ?? 0, most, Math.min(30, wide)), Math.min(30, wide))}${INDENT}`;
    return `${head}${drawn}${note}`.trimEnd();
  });
  return ['Overhead, of the native time', ...lines, ...windowLines(iterations, room), ''];
}

/** The marked iterations beside the whole trace, whose beginning may be long. */
function windowLines(window: WindowFigures | null, room: number): string[] {
  if (window === null) return [];
  const { replay, additive } = window;
  const parts = [
    ...(replay === null ? [] : [`replay ${percentOr(replay.overheadPct)}`]),
    `additive ${percentOr(additive.overheadPct)}`,
  ];
  return paragraph(`${window.label} alone: ${parts.join(', ')}`, room, INDENT, INDENT + INDENT);
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
  return ['Largest whole round trip that keeps', ...table.map(indented), ''];
}

function causeLines({ causes, replay }: Prediction, room: number): string[] {
  const shares = causeShares(causes);
  if (shares.length === 0) return ['Nothing is lost.', ''];
  const total = shares.reduce((sum, { ns }) => sum + ns, 0);
  const estimate = replay === null ? 'additive' : 'replay';
  const wide = Math.min(30, room - 2 - 13 - 2 - 6 - 2 - 8 - 2);
  const lines = shares.map(({ word, ns, pct }) =>
    [
      `${INDENT}${padEnd(word, 13)}`,
      padStart(figures.percent(Math.round(pct)), 6),
      padStart(figures.duration(ns), 8),
      ...(wide < 6 ? [] : [bar(pct, 100, wide)]),
    ]
      .join(INDENT)
      .trimEnd(),
  );
  return [
    ...paragraph(`Where ${figures.duration(total)} are lost (${estimate})`, room),
    ...lines,
    '',
  ];
}

function workloadLines(prediction: Prediction, room: number): string[] {
  return ['The workload', ...pairs(workloadRows(prediction), room), ''];
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
  if (advice.length === 0) return [];
  const lines = advice.flatMap((one, index) => {
    const pct = one.replayOverheadPct ?? one.additiveOverheadPct;
    const number = `${index + 1}.`;
    const left = `${INDENT}${padEnd(number, 2)} ${padStart(percentOr(pct), 6)}${INDENT}`;
    return paragraph(plainText(one.text), room, left, ' '.repeat(displayWidth(left)));
  });
  return ['What would help, and the overhead it leaves', ...lines, ''];
}

function iterationLines({ perIteration }: Prediction, room: number): string[] {
  if (perIteration === undefined) return [];
  if (perIteration.length === 0) return ['The trace marks no iterations.', ''];
  const rows = perIteration.map((one) => [
    plainText(one.label),
    figures.duration(one.nativeSpanNs),
    percentOr(one.replay?.overheadPct),
    percentOr(one.additive.overheadPct),
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
  return [...textTable(columns, rows, room), ''];
}

/** Why the replay is graded as it is, or missing. */
function reasonLines({ replay, replayReason }: Prediction, room: number): string[] {
  if (replay === null) {
    const reason = replayReason ?? 'the trace lacks what it needs';
    return [...paragraph(`No replay: ${plainText(reason)}`, room, '', INDENT), ''];
  }
  const measured =
    `Confidence ${replay.confidence}: ${figures.percent(replay.unexplainedPct)} of the critical path ` +
    `explained by no known dependency, self-replay error ${figures.percent(replay.selfErrorPct)}, ` +
    `residual ${figures.percent(replay.residualPct)}`;
  return [
    ...paragraph(measured, room, '', INDENT),
    ...replay.confidenceReasons.flatMap((reason) =>
      paragraph(plainText(reason), room, `${INDENT}- `, INDENT + INDENT),
    ),
    '',
  ];
}

function warningLines({ warnings }: Prediction, room: number): string[] {
  if (warnings.length === 0) return [];
  const lines = warnings.flatMap(({ message }) =>
    paragraph(plainText(message), room, `${INDENT}- `, INDENT + INDENT),
  );
  return ['Warnings', ...lines, ''];
}

function indented(line: string): string {
  return `${INDENT}${line}`;
}
