/** The pictures of docs/evaluation.md, by file name without its ending. */
import { microbenchAnswer } from '#emulator/emulate-answer';
import { microbenchPlot } from '#emulator/answer-plot';
import type { Microbench, MicrobenchRow } from '#emulator/microbench';
import type { LinkProfile } from '#pcie/link-profile';
import { barPlot, linePlot } from '#report/plot';

export interface EvaluatedTrace {
  readonly name: string;
  /** At each of `addedUs`, percent. */
  readonly estimates: readonly { readonly replay: number; readonly emulated: number }[];
  /** By what is changed, at the default round trip, percent. */
  readonly changed: Readonly<Record<string, number>>;
}

export interface Evaluated {
  readonly traces: readonly EvaluatedTrace[];
  readonly addedUs: readonly number[];
  readonly nativeUs: number;
  /** Of `addedUs`, that of the default link. */
  readonly usual: number;
}

/** Less than this is nothing, and has no place on a logarithmic axis, percent. */
const LEAST_PCT = 0.01;
/** Lines in one picture. */
const MOST_LINES = 8;

export function evaluationPlots(evaluated: Evaluated): Readonly<Record<string, string>> {
  return {
    'evaluation-overhead': overheadPlot(evaluated),
    'evaluation-agreement': agreementPlot(evaluated),
    'evaluation-changes': changesPlot(evaluated),
  };
}

export function benchPlot(
  kind: Microbench,
  profile: LinkProfile,
  rows: readonly MicrobenchRow[],
): Readonly<Record<string, string>> {
  const answer = microbenchAnswer(kind, profile, 1, {}, rows);
  return { [`evaluation-${kind}`]: microbenchPlot(answer) };
}

function emulatedAt({ estimates }: EvaluatedTrace, index: number): number {
  return estimates[index]?.emulated ?? 0;
}

/** Those that lose most at the default round trip, the worst first. */
function worst({ traces, usual }: Evaluated, most: number): EvaluatedTrace[] {
  return traces
    .toSorted((a, b) => emulatedAt(b, usual) - emulatedAt(a, usual))
    .slice(0, most)
    .filter((trace) => emulatedAt(trace, usual) >= LEAST_PCT);
}

function overheadPlot(evaluated: Evaluated): string {
  const { addedUs, nativeUs, usual } = evaluated;
  const shown = worst(evaluated, MOST_LINES);
  return linePlot({
    title: 'Emulated overhead of the public workloads that lose most',
    description: shown
      .map((trace) => `${trace.name}: ${emulatedAt(trace, usual).toFixed(2)} %.`)
      .join(' '),
    x: { label: 'whole round trip, µs', domain: [0, nativeUs + Math.max(...addedUs) + 1] },
    y: { label: 'overhead, %', log: true, domain: [LEAST_PCT, 200] },
    series: shown.map((trace) => ({
      name: fileOf(trace),
      dots: 'too',
      points: addedUs
        .map((us, index) => ({ x: nativeUs + us, y: emulatedAt(trace, index) }))
        .filter(({ y }) => y >= LEAST_PCT),
    })),
    levels: [{ y: 10, label: '10 %' }],
  });
}

function agreementPlot({ traces, addedUs, nativeUs }: Evaluated): string {
  return linePlot({
    title: 'Replay and emulation of every trace and round trip',
    description: 'Dots on the line agree; both axes are logarithmic.',
    x: { label: 'replay, %', log: true, domain: [LEAST_PCT, 200] },
    y: { label: 'emulated, %', log: true, domain: [LEAST_PCT, 200] },
    series: [
      {
        name: 'equal',
        dashed: true,
        colour: 7,
        points: [LEAST_PCT, 200].map((pct) => ({ x: pct, y: pct })),
      },
      ...addedUs.map((us, index) => ({
        name: `${Number((nativeUs + us).toFixed(1))} µs`,
        dots: 'alone' as const,
        colour: index,
        points: traces
          .map(({ estimates }) => ({
            x: estimates[index]?.replay ?? 0,
            y: estimates[index]?.emulated ?? 0,
          }))
          .filter(({ x, y }) => x >= LEAST_PCT && y >= LEAST_PCT),
      })),
    ],
  });
}

/** Of the traces whose overhead can be seen, what of it is left. */
function changesPlot(evaluated: Evaluated): string {
  const shown = worst(evaluated, 4);
  return barPlot({
    title: 'What is left of the overhead at 6.8 µs when one thing is changed',
    description: 'In percent of the overhead of the same trace over the default link.',
    x: { label: '% of the overhead' },
    bars: shown.flatMap((trace, colour) =>
      Object.entries(trace.changed).map(([change, pct]) => ({
        label: `${shortName(trace)}: ${change}`,
        parts: [
          {
            name: fileOf(trace),
            value: (100 * pct) / emulatedAt(trace, evaluated.usual),
            colour,
          },
        ],
      })),
    ),
  });
}

/** `resnet50-train-v100-2021` of `kineto/resnet50-train-v100-2021`. */
function fileOf({ name }: EvaluatedTrace): string {
  return name.replace(/^.*\//, '');
}

/** `resnet50-train-v100` of `kineto/resnet50-train-v100-2021`. */
function shortName(trace: EvaluatedTrace): string {
  return fileOf(trace).split('-').slice(0, 3).join('-');
}
