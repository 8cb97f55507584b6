/**
 * Every shared trace with a CPU side emulated natively and pooled, as the tables of docs/evaluation.md
 * and its pictures (docs/plots/evaluation-*.svg), which it writes. `npm run bench -- evaluation [FOLDER]`;
 * without FOLDER, `DXPU_DATA` or ../shared/data.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type EmulateOptions, Emulator } from '#emulator/emulate';
import { microbench } from '#emulator/microbench';
import { termsOf } from '#perfmodel/terms';
import { WorkloadModel } from '#perfmodel/workload-model';
import { linkProfile, type LinkProfileInput } from '#pcie/link-profile';
import type { Timeline } from '#trace/timeline';
import { benchPlot, evaluationPlots } from './support/evaluation-plots.ts';
import { ofSharedTraces } from './support/shared-traces.ts';

const ADDED_US = [2, 3.7, 5.6, 20];
const DEFAULT_NS = 5600;
const BEGIN = '<!-- tables: npm run bench -- evaluation -->';

/** What each is worth at the default round trip. */
const CHANGES: Readonly<Record<string, { link?: LinkProfileInput; options?: EmulateOptions }>> = {
  '280 tags': { link: { tags: 280 } },
  'MRRS 256': { link: { mrrsBytes: 256 } },
  'fetch 1': { options: { device: { fetchCommands: 1, fetchesInFlight: 1 } } },
  'half the round trip': { link: { addedRttNs: DEFAULT_NS / 2 } },
};

interface Row {
  readonly name: string;
  readonly nativeErrorPct: number;
  /** At each of `ADDED_US`, percent. */
  readonly estimates: readonly { additive: number; replay: number; emulated: number }[];
  /** For each of `CHANGES`, percent. */
  readonly changed: readonly number[];
}

const MIB64 = 64 * 2 ** 20;
const RTTS_NS = [1200, 2000, 4900, 6800, 10_000, 20_000];
const usualLink = linkProfile({});
const latencies = microbench('latency', usualLink, RTTS_NS);
const rates = microbench('launch-rate', usualLink, RTTS_NS);
const copies = microbench('bandwidth', usualLink, RTTS_NS);

const { rows, refused } = await ofSharedTraces(rowOf);
mkdirSync('docs/plots', { recursive: true });
const plots = {
  ...evaluationPlots({
    traces: rows.map(({ name, estimates, changed }) => ({
      name,
      estimates,
      changed: Object.fromEntries(
        Object.keys(CHANGES).map((change, index) => [change, changed[index] ?? 0]),
      ),
    })),
    addedUs: ADDED_US,
    nativeUs: usualLink.nativeRttNs / 1e3,
    usual: ADDED_US.indexOf(DEFAULT_NS / 1e3),
  }),
  ...benchPlot('latency', usualLink, latencies),
  ...benchPlot('launch-rate', usualLink, rates),
  ...benchPlot('bandwidth', usualLink, copies),
};
for (const [name, svg] of Object.entries(plots)) writeFileSync(`docs/plots/${name}.svg`, svg);
const [before = ''] = readFileSync('docs/evaluation.md', 'utf8').split(BEGIN);
writeFileSync('docs/evaluation.md', `${before}${BEGIN}\n\n${tables()}`);
process.stdout.write(`docs/evaluation.md: ${rows.length} traces, ${refused.length} refused\n`);

function rowOf(timeline: Timeline, name: string): Row {
  const model = new WorkloadModel(timeline);
  const emulator = new Emulator(timeline);
  // The same at every added round trip.
  let nativeErrorPct = Number.NaN;
  const estimates = ADDED_US.map((us) => {
    const profile = linkProfile({ addedRttNs: us * 1000 });
    const terms = termsOf(profile);
    const emulation = emulator.run(profile);
    nativeErrorPct = emulation.nativeErrorPct;
    return {
      additive: model.additiveOverheadPct(terms) ?? Number.NaN,
      replay: model.replayOverheadPct(terms) ?? Number.NaN,
      emulated: emulation.overheadPct,
    };
  });
  const changed = Object.values(CHANGES).map(
    ({ link = {}, options = {} }) =>
      emulator.run(linkProfile({ addedRttNs: DEFAULT_NS, ...link }), options).overheadPct,
  );
  return { name, nativeErrorPct, estimates, changed };
}

function tables(): string {
  const lines = [
    '## The three estimates',
    '',
    'Overhead in percent as additive / replay / emulated at each added round trip. **Bold**: emulated is',
    'more than 10 % of the overhead and 0.3 points away from the replay. *native* is the error of the',
    'native emulation against the recorded span.',
    '',
    '![replay against emulation](plots/evaluation-agreement.svg)',
    '',
    `| trace | native % | ${ADDED_US.map((us) => `${us} µs`).join(' | ')} |`,
    `| --- | ---: | ${ADDED_US.map(() => '---:').join(' | ')} |`,
    ...rows.map(({ name, nativeErrorPct, estimates }) => {
      const cells = estimates.map(({ additive, replay, emulated }) => {
        const isApart = Math.abs(emulated - replay) > Math.max(0.3, 0.1 * Math.abs(replay));
        const text = `${pct(additive)} / ${pct(replay)} / ${pct(emulated)}`;
        return isApart ? `**${text}**` : text;
      });
      return `| ${name} | ${nativeErrorPct.toFixed(2)} | ${cells.join(' | ')} |`;
    }),
    '',
    '## Under 10 %',
    '',
    'Emulated overhead in percent at whole round trips of 4.9 and 6.8 µs, whether it stays under 10 %, and',
    'what the overhead at 6.8 µs becomes when one thing is changed.',
    '',
    '![overhead by round trip](plots/evaluation-overhead.svg)',
    '',
    '![what each change leaves](plots/evaluation-changes.svg)',
    '',
    `| trace | 4.9 µs | 6.8 µs | under 10 % | ${Object.keys(CHANGES).join(' | ')} |`,
    `| --- | ---: | ---: | --- | ${Object.keys(CHANGES)
      .map(() => '---:')
      .join(' | ')} |`,
    ...rows.map(({ name, estimates, changed }) => {
      const [at49, at68] = [estimates[1]?.emulated ?? 0, estimates[2]?.emulated ?? 0];
      const answer = at68 < 10 ? 'both' : at49 < 10 ? '4.9 µs alone' : 'neither';
      return `| ${name} | ${pct(at49)} | ${pct(at68)} | ${answer} | ${changed.map(pct).join(' | ')} |`;
    }),
    '',
    '## Microbenchmarks',
    '',
    'Default link. *Launches* is what the device takes from a deep queue, without CPU time.',
    '',
    '| round trip | launch and wait µs | million launches/s | HtoD 64 MiB GB/s | DtoH 64 MiB GB/s |',
    '| --- | ---: | ---: | ---: | ---: |',
    ...microbenchRows(),
    '',
    '![launch and wait](plots/evaluation-latency.svg)',
    '',
    '![launches](plots/evaluation-launch-rate.svg)',
    '',
    '![copies](plots/evaluation-bandwidth.svg)',
    '',
    '## Not emulated',
    '',
    ...refused,
    '',
  ];
  return lines.join('\n');
}

function microbenchRows(): string[] {
  const large = copies.filter(({ bytes }) => bytes === MIB64);
  return RTTS_NS.map((rttNs, index) => {
    const cells = [
      ((latencies[index]?.launchAndWaitNs ?? 0) / 1e3).toFixed(2),
      ((rates[index]?.launchesPerS ?? 0) / 1e6).toFixed(2),
      (large[index]?.htodGbytesPerS ?? 0).toFixed(2),
      (large[index]?.dtohGbytesPerS ?? 0).toFixed(2),
    ];
    return `| ${rttNs / 1e3} µs${rttNs === 1200 ? ', native' : ''} | ${cells.join(' | ')} |`;
  });
}

function pct(value: number): string {
  return value.toFixed(Math.abs(value) < 10 ? 2 : 1);
}
