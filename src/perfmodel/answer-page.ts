/** The answer as one self-contained page. */
import { appendTo } from '#base/append-to';
import * as figures from '#report/figures';
import {
  callout,
  figure,
  htmlPage,
  list,
  type Markup,
  paragraph,
  type Section,
  table,
} from '#report/html-page';
import { linksSection } from '#report/link-words';
import { MAX_PLOTTED } from '#report/palette';
import { originWords, verdictTone, verdictWord } from '#report/trace-words';
import { comparisonRows } from './answer-compare.ts';
import { causesPicture, overheadPicture } from './answer-plot.ts';
import { totalWords } from './answer-summary.ts';
import { linkWords, mainCauseWords, maxRttWords, workloadRows } from './answer-words.ts';
import type { Prediction } from './prediction.ts';

/**
 * A page of all `predictions`, those of one trace together: what several have in common first, then
 * each trace. `madeBy` says by what, at the foot; `missing` says of each trace without an answer why.
 */
export function answerPage(
  predictions: readonly Prediction[],
  madeBy: string,
  missing: readonly string[] = [],
): string {
  const byTrace = groupsOf(predictions);
  const [first] = predictions;
  const isOne = byTrace.length === 1;
  const links = [...new Map(predictions.map(({ link }) => [link.name, link])).values()];
  const subtitle =
    isOne && first !== undefined ? originWords(first.trace) : totalWords(predictions);
  return htmlPage({
    title: isOne ? `What ${first?.trace.file ?? ''} loses` : `What ${byTrace.length} traces lose`,
    subtitle,
    sections: [
      ...(isOne ? [] : [summarySection(predictions)]),
      ...(missing.length === 0 ? [] : [{ heading: 'Without an answer', body: [list(missing)] }]),
      ...byTrace.flatMap((group) => traceSections(group, !isOne)),
      linksSection(links, linkWords),
    ],
    footer: madeBy,
  });
}

function groupsOf(predictions: readonly Prediction[]): Prediction[][] {
  const groups = new Map<string, Prediction[]>();
  for (const one of predictions) appendTo(groups, one.trace.file, one);
  return [...groups.values()];
}

function summarySection(predictions: readonly Prediction[]): Section {
  const rows = predictions.map((one) => [
    one.trace.file,
    one.link.name,
    figures.percentOr(one.replay?.overheadPct),
    figures.percentOr(one.additive.overheadPct),
    verdictWord(one.verdict.within),
    mainCauseWords(one),
  ]);
  const header = ['trace', 'link', 'replay', 'additive', 'verdict', 'lost most by'];
  const pictures =
    predictions.length > MAX_PLOTTED
      ? []
      : [
          figure(overheadPicture(predictions), 'Overhead by round trip'),
          figure(causesPicture(predictions), 'Time lost, by cause'),
        ];
  return {
    heading: 'All traces',
    body: [table(header, rows, ['text', 'word', 'number', 'number', 'word', 'word']), ...pictures],
  };
}

/** All links over one trace. */
function traceSections(predictions: readonly Prediction[], named: boolean): Section[] {
  const [first] = predictions;
  if (first === undefined) return [];
  const verdicts = predictions.map((one) => {
    const link = predictions.length > 1 ? `${one.link.name}: ` : '';
    return callout(
      `${link}${verdictWord(one.verdict.within).toUpperCase()}: ${one.verdict.text}`,
      verdictTone(one.verdict.within),
    );
  });
  const rows = comparisonRows(predictions);
  const figuresTable = table(
    ['', ...predictions.map(({ link }) => link.name)],
    rows.map(([name, cell]) => [name, ...predictions.map(cell)]),
    ['word', predictions.length > 1 ? 'number' : 'word'],
  );
  const drawn = predictions.slice(0, MAX_PLOTTED);
  return [
    {
      heading: named ? first.trace.file : 'Verdict',
      body: [...(named ? [paragraph(originWords(first.trace))] : []), ...verdicts, figuresTable],
    },
    {
      heading: 'How far the GPU may move',
      body: [
        figure(
          overheadPicture(drawn),
          'The replay lets work hide latency; the additive estimate bounds it from above.',
        ),
        ...predictions.map(budgetTable),
      ],
    },
    {
      heading: 'Where the loss comes from',
      body: [figure(causesPicture(drawn), 'Added time by cause.')],
    },
    {
      heading: 'The workload',
      body: [table(['', ''], workloadRows(first), ['word', 'text'])],
    },
    ...predictions.flatMap((one) => helpSection(one, predictions.length > 1)),
    ...predictions.flatMap((one) => iterationSection(one, predictions.length > 1)),
    {
      heading: 'How sure this is',
      body: surenessOf(predictions),
    },
  ];
}

function budgetTable({ budgets, link, replay }: Prediction): Markup {
  const estimates = replay === null ? (['additive'] as const) : (['replay', 'additive'] as const);
  return table(
    [
      `largest round trip, ${link.name}`,
      ...budgets.map(({ overheadPct }) => figures.percent(overheadPct)),
    ],
    estimates.map((estimate) => [
      estimate,
      ...budgets.map((budget) => maxRttWords(budget, estimate)),
    ]),
    ['word', 'number'],
  );
}

function helpSection({ advice, link }: Prediction, named: boolean): Section[] {
  if (advice.length === 0) return [];
  const rows = advice.map((one) => [
    one.text,
    figures.percentOr(one.replayOverheadPct),
    figures.percentOr(one.additiveOverheadPct),
  ]);
  const heading = `What would help${named ? `, ${link.name}` : ''}`;
  return [
    {
      heading,
      body: [table(['change', 'replay then', 'additive then'], rows, ['text', 'number'])],
    },
  ];
}

function iterationSection({ perIteration, link }: Prediction, named: boolean): Section[] {
  if (perIteration === undefined || perIteration.length === 0) return [];
  const rows = perIteration.map((one) => [
    one.label,
    figures.duration(one.nativeSpanNs),
    figures.percentOr(one.replay?.overheadPct),
    figures.percentOr(one.additive.overheadPct),
  ]);
  const heading = `Iterations${named ? `, ${link.name}` : ''}`;
  return [
    {
      heading,
      body: [table(['iteration', 'native', 'replay', 'additive'], rows, ['word', 'number'])],
    },
  ];
}

function surenessOf(predictions: readonly Prediction[]): Markup[] {
  const warned = [
    ...new Set(predictions.flatMap(({ warnings }) => warnings.map(({ message }) => message))),
  ];
  return [
    ...predictions.flatMap((one) => sureness(one, predictions.length > 1)),
    ...(warned.length === 0 ? [] : [paragraph('Warnings:'), list(warned)]),
  ];
}

function sureness({ replay, replayReason, link }: Prediction, named: boolean): Markup[] {
  const who = named ? `${link.name}: ` : '';
  if (replay === null) {
    return [paragraph(`${who}no replay: ${replayReason ?? 'the trace lacks what it needs'}`)];
  }
  const [low, high] = replay.rangePct.map((pct) => figures.percent(pct));
  const range = low === high ? '' : ` ${low} to ${high}, by which inferred dependencies hold;`;
  return [
    paragraph(
      `${who}confidence ${replay.confidence};${range} ${figures.percent(replay.unexplainedPct)} of the ` +
        `critical path is explained by no known dependency; self-replay error ` +
        `${figures.percent(replay.selfErrorPct)}, residual ${figures.percent(replay.residualPct)}.`,
    ),
    ...(replay.confidenceReasons.length === 0 ? [] : [list(replay.confidenceReasons)]),
  ];
}
