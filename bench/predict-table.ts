/**
 * Both estimates over every shared trace, as the tables of docs/predict-traces.md, which it writes.
 * `npm run bench -- predict-table [FOLDER]`; without FOLDER, `DXPU_DATA` or ../shared/data.
 */
import { writeFileSync } from 'node:fs';
import type { LinkProfile } from '#pcie/link-profile';
import { DEFAULT_LINK_PROFILE_NAME, linkProfile } from '#pcie/link-profile';
import { predict } from '#perfmodel/predict';
import type { Prediction } from '#perfmodel/prediction';
import { WorkloadModel } from '#perfmodel/workload-model';
import { edgesAlone } from '#trace/lags';
import type { Timeline } from '#trace/timeline';
import { ofSharedTraces } from './support/shared-traces.ts';

const ADDED_US = [0.5, 2, 3.7, 5.6, 10, 20];
const DEFAULT_US = 5.6;

interface Row {
  readonly name: string;
  /** At each of `ADDED_US`. */
  readonly answers: readonly Prediction[];
  /** Error of the native span when no lags are kept, percent; null without a replay. */
  readonly edgesAlonePct: number | null;
}

const { rows, refused } = await ofSharedTraces(rowOf);
writeFileSync('docs/predict-traces.md', page());
process.stdout.write(`docs/predict-traces.md: ${rows.length} traces, ${refused.length} refused\n`);

function rowOf(timeline: Timeline, name: string, file: string): Row {
  const links = ADDED_US.map(
    (us): LinkProfile => linkProfile({ name: `${us} µs`, addedRttNs: us * 1000 }),
  );
  const answers = predict(timeline, links, { file });
  const { replay, spanNs } = new WorkloadModel(timeline);
  let edgesAlonePct: number | null = null;
  if (replay !== null) {
    replay.replay.lags = edgesAlone(replay.graph, replay.lags);
    edgesAlonePct = (100 * (replay.replay.run(null) - spanNs)) / spanNs;
  }
  return { name, answers, edgesAlonePct };
}

function page(): string {
  const { tags, mrrsBytes, mpsBytes, nativeRttNs, networkGbps } = linkProfile({});
  return `# Predictions for public traces

Written by \`npm run bench -- predict-table\`. The traces are public ones, described in their data set;
they are not part of this repository. Link: \`${DEFAULT_LINK_PROFILE_NAME}\` (${tags} tags, MRRS ${mrrsBytes} B,
MPS ${mpsBytes} B, native round trip ${nativeRttNs / 1000} µs, network ${networkGbps} Gb/s; tags, MRRS and round trips are recalled,
not confirmed) at other added round trips. How the figures come about is in
[predict-model.md](predict-model.md). Whole files, initialisation and all; marked iterations are
reported beside by \`dxpu predict\`.

## How well the replay knows them

- **self**: error of the native replay's span. It is rounding alone, since lags (what the record shows
  beyond the edges) stay as they are; no node is tied to its recorded time.
- **edges alone**: the same error when the lags are left out, so that only edges and recorded
  durations make the span.
- **residual**: all lags of starts and wait ends in sum, as a share of the span. Several streams can be
  late at once, so it may exceed what is missing from the span.
- **violations**: edges that recorded times contradict.
- **unexplained**: share of the predicted critical path, at ${DEFAULT_US} µs added, that no known edge explains.

Where edges alone miss by more than 1 %: event-sync-a100 lasts 0.37 ms, and its waits for a copy and an
event end 17 µs after these in sum. The two decode traces of MI300X begin while the GPU still works on
what was launched before the recording (for 463 ms and 8 ms), so that their first work starts late for
no reason the trace holds. So does work of the two ranks of recsys, by up to 65 ms, but not on the
critical path: hence their residual.

| trace | native span ms | self % | edges alone % | residual % | violations | unexplained % | confidence |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |
${rows.map(evidence).join('\n')}

## What they lose

Overhead in percent as additive / replay at each added round trip in µs, the largest whole round trip
in µs that keeps 10 %, and the change that helps most at ${DEFAULT_US} µs with the points it saves.

| trace | ${ADDED_US.join(' | ')} | 10 % up to | helps most |
| --- | ${ADDED_US.map(() => '---:').join(' | ')} | ---: | --- |
${rows.map(losses).join('\n')}

## Without a replay

${rows
  .filter((row) => at(row).replay === null)
  .map((row) => `- ${row.name}: ${at(row).replayReason ?? 'the trace has no span'}`)
  .join('\n')}

## Refused

${refused.join('\n')}
`;
}

/** The answer at the default link. */
function at(row: Row): Prediction {
  const answer = row.answers[ADDED_US.indexOf(DEFAULT_US)];
  if (answer === undefined) throw new Error(`no answer for ${row.name}`);
  return answer;
}

function evidence(row: Row): string {
  const { trace, replay } = at(row);
  const ms = (trace.spanNs / 1e6).toPrecision(4);
  if (replay === null) return `| ${row.name} | ${Number(ms)} | – | – | – | – | – | – |`;
  const cells = [
    row.name,
    Number(ms),
    percent(Math.abs(replay.selfErrorPct)),
    percent(row.edgesAlonePct),
    percent(replay.residualPct),
    replay.violations,
    percent(replay.unexplainedPct),
    replay.confidence,
  ];
  return `| ${cells.join(' | ')} |`;
}

function losses(row: Row): string {
  const overheads = row.answers.map(
    ({ additive, replay }) => `${percent(additive.overheadPct)} / ${percent(replay?.overheadPct)}`,
  );
  const answer = at(row);
  const ten = answer.budgets.find(({ overheadPct }) => overheadPct === 10);
  const budget = `${micros(ten?.additiveMaxRttNs, ten?.additiveReason)} / ${micros(ten?.replayMaxRttNs, ten?.replayReason)}`;
  const best = answer.advice[0];
  const helps = best === undefined ? '–' : `${best.change} (${percent(best.savesPct)})`;
  return `| ${[row.name, ...overheads, budget, helps].join(' | ')} |`;
}

function percent(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  const text = Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(value < 1 ? 2 : 1);
  return text.replace(/^-(?=0(?:\.0+)?$)/, '');
}

function micros(ns: number | null | undefined, reason: string | undefined): string {
  if (ns === null || ns === undefined) return reason === 'no-replay' ? '–' : (reason ?? '–');
  return String(Number((ns / 1000).toPrecision(3)));
}
