/**
 * One side of the predict benchmark, in a process of its own so that its peak memory is its own:
 *
 *     node predict-side.js parse|read|ingest|predict FILE
 *
 * Prints one line of JSON, a `SideResult`.
 */
import { readFileSync } from 'node:fs';
import { DEFAULT_LINK_PROFILE_NAME, namedLinkProfile } from '#pcie/link-profile';
import { predict } from '#perfmodel/predict';
import { bytesOfFile } from '#trace/bytes-of-file';
import { readKineto } from '#trace/kineto';
import { readTrace } from '#trace/read-trace';
import { now, Spent } from './spent.ts';

export type Side = 'parse' | 'read' | 'ingest' | 'predict';

export interface SideResult {
  readonly ms: number;
  readonly cpuNs: number;
  readonly peakRssBytes: number;
  /** Of the file, for `parse`; kept in the timeline, for `ingest` and `predict`. */
  readonly events: number;
}

const SIDES: Readonly<Record<string, (file: string) => number | Promise<number>>> = {
  /** The whole file into one string and one parse of it. */
  parse: (file) => {
    const trace = JSON.parse(readFileSync(file, 'utf8')) as { readonly traceEvents: unknown[] };
    return trace.traceEvents.length;
  },
  /** Its bytes, touched once each. */
  read: async (file) => {
    let sum = 0;
    for await (const piece of bytesOfFile(file)) {
      for (let i = 0; i < piece.length; i += 1) sum += piece[i] as number;
    }
    return sum > 0 ? 1 : 0;
  },
  ingest: async (file) => {
    const timeline = await readKineto(bytesOfFile(file), { file });
    return timeline.calls.count + timeline.work.count;
  },
  /** What `dxpu predict` does for one file and the default link, up to the JSON it prints. */
  predict: async (file) => {
    const timeline = await readTrace(file);
    const predictions = predict(timeline, [namedLinkProfile(DEFAULT_LINK_PROFILE_NAME)], { file });
    if (JSON.stringify(predictions).length < 100) throw new Error('there is no prediction');
    return timeline.calls.count + timeline.work.count;
  },
};

const [name = '', file = ''] = process.argv.slice(2);
const side = SIDES[name];
if (side === undefined) throw new Error(`no side ${name}`);
const spent = new Spent();
const begin = now();
const events = await side(file);
spent.since(begin);
const result: SideResult = {
  ms: spent.ms[0] ?? Number.NaN,
  cpuNs: spent.cpuNs[0] ?? Number.NaN,
  peakRssBytes: process.resourceUsage().maxRSS * 1024,
  events,
};
console.log(JSON.stringify(result));
