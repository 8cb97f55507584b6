/** Answers as one self-contained page. */
import * as figures from '#report/figures';
import { callout, figure, htmlPage, list, paragraph, type Section, table } from '#report/html-page';
import { linksSection, linkWords } from '#report/link-words';
import { MAX_PLOTTED } from '#report/palette';
import { originWords, verdictTone } from '#report/trace-words';
import type { MicrobenchAnswer, TraceAnswer } from './answer.ts';
import { microbenchPlot, tracePlot } from './answer-plot.ts';
import {
  deviceWords,
  MICROBENCH_TITLES,
  microbenchTable,
  shownTrace,
  spanWords,
  tagWords,
  TLP_TITLES,
  tlpRows,
  verdictWords,
} from './answer-words.ts';

type Answer = TraceAnswer | MicrobenchAnswer;

/** Of one trace over one link or more; `madeBy` says by what, at the foot. */
export function tracePage(answers: readonly TraceAnswer[], madeBy: string): string {
  const [first] = answers;
  if (first === undefined) return '';
  const rows = answers.map(({ link, estimates, native, pooled }) => [
    link.name,
    figures.duration(link.rttNs),
    figures.percentOr(estimates.additiveOverheadPct),
    figures.percentOr(estimates.replayOverheadPct),
    figures.percentOr(estimates.emulatedOverheadPct),
    figures.duration(native.spanNs),
    figures.duration(pooled.spanNs),
  ]);
  const titles = [
    'link',
    'round trip',
    'additive',
    'replay',
    'emulated',
    'emulated natively',
    'emulated pooled',
  ];
  return htmlPage({
    title: `${first.trace}, emulated`,
    subtitle: originWords(shownTrace(first)),
    sections: [
      {
        heading: 'Overhead',
        body: [
          ...answers.map((answer) =>
            callout(verdictOf(answer, answers.length > 1), verdictTone(answer.within)),
          ),
          table(titles, rows, ['word', 'number']),
          figure(
            tracePlot(answers.slice(0, MAX_PLOTTED)),
            'Lines are what the model estimates; dots are what the proxies, the link and the device came to.',
          ),
        ],
      },
      ...answers.map((answer) => passedSection(answer, answers.length > 1)),
      linksAndDevice([first, ...answers.slice(1)]),
    ],
    footer: madeBy,
  });
}

function verdictOf(answer: TraceAnswer, isNamed: boolean): string {
  return `${isNamed ? `${answer.link.name}: ` : ''}${verdictWords(answer)}`;
}

function passedSection(answer: TraceAnswer, isNamed: boolean): Section {
  const { pooled, warnings, link } = answer;
  return {
    heading: `What passed the link${isNamed ? `, ${link.name}` : ''}`,
    body: [
      table([...TLP_TITLES], tlpRows(pooled), ['word', 'number', 'text', 'number']),
      paragraph(`${tagWords(answer)}.`),
      paragraph(`${spanWords(answer)}.`),
      ...(warnings.length === 0 ? [] : [list(warnings)]),
    ],
  };
}

/** The device is the same over all links. */
function linksAndDevice(answers: readonly [Answer, ...Answer[]]): Section {
  const device = paragraph(`Device: ${deviceWords(answers[0].device)}.`);
  return linksSection(
    answers.map(({ link }) => link),
    linkWords,
    [device],
  );
}

export function microbenchPage(answer: MicrobenchAnswer, madeBy: string): string {
  const { titles, rows } = microbenchTable(answer);
  return htmlPage({
    title: MICROBENCH_TITLES[answer.kind],
    subtitle: `dxpu emulate ${answer.kind}`,
    sections: [
      {
        heading: 'By round trip',
        body: [
          figure(microbenchPlot(answer), 'Emulated, TLP by TLP; long copies in bulk once steady.'),
          table(titles, rows, ['word', 'number']),
        ],
      },
      linksAndDevice([answer]),
    ],
    footer: madeBy,
  });
}
