/** The words every form of the answer uses: text, page, plot. */
import * as figures from '#report/figures';
import { linkWords as commonLinkWords, marked, rttWords } from '#report/link-words';
import { plainText } from '#report/text-width';
import type { Budget, Causes, LinkFigures, Prediction } from './prediction.ts';

/** In the order in which they are drawn. */
export const CAUSE_WORDS: readonly { readonly key: keyof Causes; readonly word: string }[] = [
  { key: 'fetchNs', word: 'command fetch' },
  { key: 'doorbellNs', word: 'doorbell' },
  { key: 'htodNs', word: 'HtoD copies' },
  { key: 'dtohNs', word: 'DtoH copies' },
  { key: 'waitNs', word: 'host waits' },
  { key: 'peerNs', word: 'peer copies' },
];

/** What of a link matters most: `dxpu-6.8us: round trip 6.8 µs*, HtoD 2.64 GB/s (native 12.1)`. */
export function shortLinkWords(link: LinkFigures): string {
  const { pooledReadGbytesPerS: pooled, nativeReadGbytesPerS: native } = link;
  const rate = marked(link, ['tags', 'mrrsBytes', 'nativeRttNs'], figures.gbytesPerS(pooled));
  return (
    `${plainText(link.name)}: round trip ${rttWords(link)}, ` +
    `HtoD ${rate} (native ${figures.threeDigits(native)})`
  );
}

/** All parameters of a link. */
export function linkWords(link: LinkFigures): string {
  const { fetches } = link;
  return `${commonLinkWords(link)}${fetches === 1 ? '' : `, ${fetches} fetches a submission`}`;
}

/** The largest round trip of a budget: a time, `none` (nothing keeps it), `any`, or a dash. */
export function maxRttWords(budget: Budget, estimate: 'additive' | 'replay'): string {
  const ns = budget[`${estimate}MaxRttNs`];
  if (ns !== null) return figures.duration(ns);
  switch (budget[`${estimate}Reason`]) {
    case 'unreachable':
      return 'none';
    case 'unlimited':
      return 'any';
    default:
      return '-';
  }
}

/** The overhead the verdict is about. */
export function mainOverheadPct({ additive, replay }: Prediction): number | null {
  return replay === null ? additive.overheadPct : replay.overheadPct;
}

export interface CauseShare {
  readonly word: string;
  readonly ns: number;
  readonly pct: number;
}

/** Causes that cost something, the largest first, as shares of their sum. */
export function causeShares(causes: Causes): CauseShare[] {
  const sum = CAUSE_WORDS.reduce((total, { key }) => total + causes[key], 0);
  return CAUSE_WORDS.map(({ key, word }) => ({
    word,
    ns: causes[key],
    pct: sum > 0 ? (100 * causes[key]) / sum : 0,
  }))
    .filter(({ ns }) => ns > 0)
    .toSorted((a, b) => b.ns - a.ns);
}

/** A share of a whole, to the percent. */
export function shareWords(pct: number): string {
  if (pct > 0 && pct < 0.5) return '<1 %';
  return figures.percent(Math.round(pct));
}

/** The largest cause and its share, `command fetch 61 %`; a dash where nothing is lost. */
export function mainCauseWords(prediction: Prediction): string {
  const [first] = causeShares(prediction.causes);
  return first === undefined ? '-' : `${first.word} ${shareWords(first.pct)}`;
}

/** What kind of workload it is, a name and a value each. */
export function workloadRows({ trace, iterations }: Prediction): (readonly [string, string])[] {
  const { copies, kernels } = trace;
  const share = kernels > 0 ? (100 * trace.kernelsAtMost10us) / kernels : 0;
  const often = (all: number, perS: number | null, inIterations: number | undefined): string => {
    const rate = perS === null ? '' : `, ${figures.threeDigits(perS)} a second`;
    const marks = trace.iterations;
    const each =
      inIterations === undefined || marks === 0
        ? ''
        : `, ${figures.threeDigits(inIterations / marks)} an iteration`;
    return `${figures.count(all)}${rate}${each}`;
  };
  const copied = ({ count, bytes }: { count: number; bytes: number }): string =>
    count === 0
      ? 'none'
      : `${figures.bytes(bytes)} in ${figures.count(count)} ${count === 1 ? 'copy' : 'copies'}`;
  return [
    [
      'kernels',
      kernels === 0 ? '0' : `${figures.count(kernels)}, ${shareWords(share)} of them at most 10 µs`,
    ],
    [
      'submissions',
      often(trace.submissions, trace.submissionsPerS, iterations?.submissions) +
        (trace.graphLaunches === 0 ? '' : `; graphs launched ${times(trace.graphLaunches)}`),
    ],
    ['host waits', often(trace.hostWaits, trace.hostWaitsPerS, iterations?.hostWaits)],
    ['HtoD copies', copied(copies.htod)],
    ['DtoH copies', copied(copies.dtoh)],
    ...(copies.ptop.count === 0 ? [] : [['peer copies', copied(copies.ptop)] as const]),
    ['GPU busy', figures.percentOr(trace.gpuBusyPct)],
    ...(trace.iterations === 0
      ? []
      : [['iterations', `${figures.count(trace.iterations)} marked`] as const]),
  ];
}

function times(count: number): string {
  return count === 1 ? 'once' : `${figures.count(count)} times`;
}
