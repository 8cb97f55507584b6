/** What kind of workload a trace holds: counts, bytes, rates, and how busy the GPUs are. */
import type { CallKind } from '#trace/call-kind';
import { CALL_KIND } from '#trace/call-kind';
import type { Timeline } from '#trace/timeline';
import { WORK_KIND, hostWaits } from '#trace/timeline';
import type { TraceFigures } from './prediction.ts';

const SHORT_KERNEL_NS = 10_000;

/** Figures of the whole file, whatever window the overhead is taken over. */
export function traceFigures(timeline: Timeline, file: string): TraceFigures {
  const { calls, work, spanNs } = timeline;
  const kinds = countKinds(calls.kind);
  const waits = hostWaits(timeline).reduce((sum, flag) => sum + flag, 0);
  const perS = (count: number): number | null => (spanNs > 0 ? (count / spanNs) * 1e9 : null);
  let shortKernels = 0;
  const copies = Object.values(WORK_KIND).map(() => ({ count: 0, bytes: 0 }));
  for (let row = 0; row < work.count; row += 1) {
    const kind = work.kind[row] ?? 0;
    const entry = copies[kind];
    if (entry === undefined) continue;
    entry.count += 1;
    entry.bytes += work.bytes[row] ?? 0;
    if (kind === WORK_KIND.kernel && (work.durationNs[row] ?? 0) <= SHORT_KERNEL_NS) {
      shortKernels += 1;
    }
  }
  const copiesOf = (kind: number): { count: number; bytes: number } =>
    copies[kind] ?? { count: 0, bytes: 0 };
  return {
    file,
    format: timeline.format,
    gpus: [...timeline.gpus].toSorted(([a], [b]) => a - b).map(([, name]) => name),
    spanNs,
    threads: new Set(calls.thread).size,
    streams: new Set(work.stream).size,
    hostCalls: calls.count,
    kernels: copiesOf(WORK_KIND.kernel).count,
    kernelsAtMost10us: shortKernels,
    graphLaunches: kinds(CALL_KIND.graphLaunch),
    submissions: timeline.submissions,
    hostWaits: waits,
    queries: kinds(CALL_KIND.query),
    memsets: copiesOf(WORK_KIND.memset).count,
    copies: {
      htod: copiesOf(WORK_KIND.htod),
      dtoh: copiesOf(WORK_KIND.dtoh),
      dtod: copiesOf(WORK_KIND.dtod),
      htoh: copiesOf(WORK_KIND.htoh),
      ptop: copiesOf(WORK_KIND.ptop),
      other: copiesOf(WORK_KIND.copy),
    },
    gpuBusyPct: gpuBusyPct(timeline),
    submissionsPerS: perS(timeline.submissions),
    hostWaitsPerS: perS(waits),
    iterations: timeline.iterations.length,
  };
}

function countKinds(kinds: Uint8Array): (kind: CallKind) => number {
  const counts = new Map<number, number>();
  for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return (kind) => counts.get(kind) ?? 0;
}

/** Averaged over the devices that work; null when none does. */
function gpuBusyPct(timeline: Timeline): number | null {
  const { work, streams } = timeline;
  const rowsOf = new Map<number, number>();
  for (let row = 0; row < work.count; row += 1) {
    const device = streams[work.stream[row] ?? 0]?.device ?? 0;
    rowsOf.set(device, (rowsOf.get(device) ?? 0) + 1);
  }
  const shares: number[] = [];
  for (const [device, rows] of rowsOf) {
    const share = busyShare(timeline, device, rows);
    if (share !== null) shares.push(share);
  }
  if (shares.length === 0) return null;
  return (100 * shares.reduce((sum, share) => sum + share, 0)) / shares.length;
}

/** Time in which at least one piece of work runs, as a share of first start to last end. */
function busyShare(timeline: Timeline, device: number, rows: number): number | null {
  const { work, streams } = timeline;
  const starts = new Float64Array(rows);
  const ends = new Float64Array(rows);
  let filled = 0;
  for (let row = 0; row < work.count; row += 1) {
    if (streams[work.stream[row] ?? 0]?.device !== device) continue;
    starts[filled] = work.startNs[row] ?? 0;
    ends[filled] = (work.startNs[row] ?? 0) + (work.durationNs[row] ?? 0);
    filled += 1;
  }
  starts.sort();
  ends.sort();
  // With starts and ends each in order, the device falls idle where as many have ended as begun.
  let busyNs = 0;
  let sinceNs = starts[0] ?? 0;
  for (let ended = 0; ended < rows; ended += 1) {
    const endNs = ends[ended] ?? 0;
    const nextNs = starts[ended + 1] ?? Infinity;
    if (nextNs > endNs) {
      busyNs += endNs - sinceNs;
      sinceNs = nextNs;
    }
  }
  const spanNs = (ends[rows - 1] ?? 0) - (starts[0] ?? 0);
  return spanNs > 0 ? busyNs / spanNs : null;
}
