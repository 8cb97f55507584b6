/**
 * What happened in an emulation as a Chrome trace (JSON), which Perfetto and chrome://tracing open: host
 * threads with their calls; kernels and copies by stream, as recorded; the device's rings with their
 * commands and fetches; TLPs each way at both ends of the path, in bursts; how busy the device's link is.
 */
import { count } from '#report/figures';
import { Opcode } from '#host/accel-layout';
import type { LinkProfile } from '#pcie/link-profile';
import type { Timeline } from '#trace/timeline';
import { WORK_KIND } from '#trace/timeline';
import type { Burst, BurstTrack } from './burst-track.ts';
import { linkBytesPerNs } from './device-link.ts';
import type { LinkLog } from './link-log.ts';
import type { RunLog } from './run-log.ts';
import type { WorkloadRun } from './run-workload.ts';

const COMMAND_NAMES: Readonly<Record<number, string>> = {
  [Opcode.NOP]: 'busy or pause',
  [Opcode.EVENT_SIGNAL]: 'event signal',
  [Opcode.EVENT_WAIT]: 'event wait',
  [Opcode.COPY_HTOD]: 'copy HtoD',
  [Opcode.COPY_DTOH]: 'copy DtoH',
};

/** Processes of the trace, in the order in which they are shown. */
const PROCESSES = ['host', 'GPU work', 'accelerator', 'TLPs', 'device link'] as const;
const pidOf = (name: (typeof PROCESSES)[number]): number => PROCESSES.indexOf(name) + 1;
const [HOST, WORK, DEVICE, TLPS, LOAD] = PROCESSES.map(pidOf) as [
  number,
  number,
  number,
  number,
  number,
];
/** Threads of a ring in the trace: its commands, and as many fetches as may be under way at once. */
const RING_THREADS = 65;

export interface HappenedRun {
  readonly timeline: Timeline;
  readonly profile: LinkProfile;
  readonly run: WorkloadRun;
  readonly log: RunLog;
}

/** How finely the trace tells of the TLPs, or that it does not. */
export function detailWords({ link }: RunLog): string {
  if (link === undefined) return 'without TLPs';
  const tracks = tracksOf(link);
  const gapNs = Math.max(...tracks.map(({ track }) => track.gapNs));
  const bursts = tracks.reduce((sum, { track }) => sum + track.count, 0);
  return (
    `${count(link.tlps)} TLPs at both ends of the path, in ${count(bursts)} bursts: those at most ` +
    `${count(gapNs)} ns apart may be one`
  );
}

/** The trace, in pieces of whole lines. Times are µs since the run began; what was before is left out. */
export function* chromeTrace(happened: HappenedRun): Generator<string> {
  const { log } = happened;
  yield `{"displayTimeUnit":"ns","otherData":{"link":${JSON.stringify(detailWords(log))}},\n`;
  yield '"traceEvents":[\n';
  for (const [index, name] of PROCESSES.entries()) {
    if (log.link === undefined && index + 1 >= TLPS) break;
    yield meta(index + 1, 0, 'process_name', { name });
    yield meta(index + 1, 0, 'process_sort_index', { sort_index: index });
  }
  yield* hostEvents(happened);
  yield* workEvents(happened);
  yield* deviceEvents(happened);
  if (log.link !== undefined) {
    yield* tlpEvents(log.link);
    yield* loadEvents(happened, log.link);
  }
  // Without a comma behind it.
  yield '{"ph":"M","pid":1,"tid":0,"name":"process_labels","args":{"labels":"pooled"}}\n]}\n';
}

function* hostEvents({ timeline, run }: HappenedRun): Generator<string> {
  for (const [thread, { tid, name }] of timeline.threads.entries()) {
    yield meta(HOST, thread, 'thread_name', { name: name ?? `thread ${tid}` });
  }
  const { calls, names } = timeline;
  for (let call = 0; call < calls.count; call += 1) {
    const startNs = run.callStartNs[call] ?? 0;
    const endNs = run.callEndNs[call] ?? 0;
    const name = names[calls.name[call] ?? 0] ?? 'call';
    yield slice(HOST, calls.thread[call] ?? 0, name, startNs, endNs);
  }
}

/** Kernels and copies, each stream a thread of either. */
function* workEvents({ timeline, run, log }: HappenedRun): Generator<string> {
  const { work, names, streams } = timeline;
  const named = new Set<number>();
  for (const { row, queue, first, last, lagNs } of log.placed) {
    const commands = log.commands[queue];
    const [from, to] = [commands?.[first - 1], commands?.[last - 1]];
    if (from === undefined || to === undefined) continue;
    const kind = work.kind[row] ?? WORK_KIND.kernel;
    const isCopy =
      kind !== WORK_KIND.kernel && kind !== WORK_KIND.memset && kind !== WORK_KIND.graph;
    const tid = 2 * queue + (isCopy ? 1 : 0);
    if (!named.has(tid)) {
      named.add(tid);
      const stream = streams[work.stream[row] ?? 0]?.stream ?? queue;
      const name = `stream ${stream} ${isCopy ? 'copies' : 'kernels'}`;
      yield meta(WORK, tid, 'thread_name', { name });
    }
    const startNs = Math.min(from.startedNs + lagNs, to.endedNs) - run.originNs;
    const bytes = work.bytes[row] ?? 0;
    const name = names[work.name[row] ?? 0] ?? 'work';
    const args = bytes === 0 ? undefined : { bytes };
    yield slice(WORK, tid, name, startNs, to.endedNs - run.originNs, args);
  }
}

function* deviceEvents({ run, log }: HappenedRun): Generator<string> {
  const { originNs } = run;
  for (const [ring, commands] of log.commands.entries()) {
    yield meta(DEVICE, RING_THREADS * ring, 'thread_name', { name: `ring ${ring}` });
    for (const { startedNs, endedNs, opcode, bytes } of commands ?? []) {
      const name = COMMAND_NAMES[opcode] ?? `opcode ${opcode}`;
      const args = bytes === 0 ? undefined : { bytes };
      yield slice(
        DEVICE,
        RING_THREADS * ring,
        name,
        startedNs - originNs,
        endedNs - originNs,
        args,
      );
    }
  }
  /** By thread, when its last fetch ended: those that overlap need threads of their own. */
  const ends = new Map<number, number>();
  for (const { channel, askedNs, endedNs, commands } of log.fetches.toSorted(
    (a, b) => a.askedNs - b.askedNs,
  )) {
    let tid = RING_THREADS * channel + 1;
    while ((ends.get(tid) ?? 0) > askedNs) tid += 1;
    if (!ends.has(tid))
      yield meta(DEVICE, tid, 'thread_name', { name: `fetches of ring ${channel}` });
    ends.set(tid, endedNs);
    yield slice(DEVICE, tid, 'fetch', askedNs - originNs, endedNs - originNs, { commands });
  }
}

interface NamedTrack {
  readonly name: string;
  readonly track: BurstTrack;
}

function tracksOf({ atHost, atDevice }: LinkLog): NamedTrack[] {
  return [
    { name: "to the device, at the host's end", track: atHost.down },
    { name: "to the device, at the device's end", track: atDevice.down },
    { name: "from the device, at the device's end", track: atDevice.up },
    { name: "from the device, at the host's end", track: atHost.up },
  ];
}

function* tlpEvents(link: LinkLog): Generator<string> {
  for (const [tid, { name, track }] of tracksOf(link).entries()) {
    yield meta(TLPS, tid, 'thread_name', { name });
    yield meta(TLPS, tid, 'thread_sort_index', { sort_index: tid });
    for (const burst of track.bursts()) {
      const { startNs, endNs, bytes } = burst;
      const counts = countsOf(burst);
      const sorts = Object.keys(counts).join(', ');
      yield slice(TLPS, tid, sorts, startNs, endNs, { ...counts, bytes });
    }
  }
}

const SORT_NAMES = ['reads', 'writes', 'completions', 'others'] as const;

function countsOf({ tlps }: Burst): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [sort, number] of tlps.entries()) {
    if (number > 0) counts[SORT_NAMES[sort] ?? ''] = number;
  }
  return counts;
}

function* loadEvents({ profile }: HappenedRun, { load }: LinkLog): Generator<string> {
  const wholeBytes = linkBytesPerNs(profile) * load.intervalNs;
  const shares = new Map<string, string>();
  for (const interval of load.intervals()) {
    const counters = {
      'to the device, %': { used: shown((100 * interval.bytesDown) / wholeBytes) },
      'from the device, %': { used: shown((100 * interval.bytesUp) / wholeBytes) },
      'tags in use, mean': { tags: shown(interval.meanReads) },
      'tags in use, most': { tags: interval.mostReads },
    };
    for (const [name, args] of Object.entries(counters)) {
      const text = JSON.stringify(args);
      // A counter keeps its value.
      if (shares.get(name) === text) continue;
      shares.set(name, text);
      const ts = micros(interval.startNs);
      yield `{"ph":"C","pid":${LOAD},"tid":0,"ts":${ts},"name":"${name}","args":${text}},\n`;
    }
  }
}

function shown(value: number): number {
  return Number(value.toFixed(2));
}

function meta(pid: number, tid: number, name: string, args: object): string {
  return `${JSON.stringify({ ph: 'M', pid, tid, name, args })},\n`;
}

function slice(
  pid: number,
  tid: number,
  name: string,
  startNs: number,
  endNs: number,
  args?: object,
): string {
  const dur = micros(Math.max(0, endNs - startNs));
  const more = args === undefined ? '' : `,"args":${JSON.stringify(args)}`;
  return (
    `{"ph":"X","pid":${pid},"tid":${tid},"ts":${micros(startNs)},"dur":${dur},` +
    `"name":${JSON.stringify(name)}${more}},\n`
  );
}

function micros(ns: number): string {
  return (ns / 1e3).toFixed(3);
}
