/**
 * Counts of a Kineto trace by `JSON.parse` of the whole file: another way than the reader's, which
 * never parses all of it, joins by time and keeps columns.
 */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { Copies, TraceCounts } from './trace-figures.ts';

interface Event {
  readonly ph?: string;
  readonly cat?: string;
  readonly name: string;
  readonly pid: unknown;
  readonly tid: unknown;
  readonly ts: number;
  readonly dur: number;
  readonly args?: Readonly<Record<string, unknown>>;
}

const WAITS =
  /^(?:cuda|cu|hip)(?:(?:Device|Thread|Ctx|Stream|Event)Synchronize|Memcpy(?!.*Async)\w*)(?:_\w+)?$/;

export function kinetoCounts(path: string): TraceCounts {
  const bytes = readFileSync(path);
  const text = (bytes[0] === 0x1f ? gunzipSync(bytes) : bytes)
    .toString('utf8')
    .replace(/^\uFEFF/, '');
  const parsed = JSON.parse(text) as { traceEvents: Event[] } | Event[];
  const all = Array.isArray(parsed) ? parsed : parsed.traceEvents;
  const events = all.filter(({ ph, dur }) => ph === 'X' && dur >= 0);
  const of = (...cats: readonly string[]): Event[] =>
    events.filter(({ cat }) => cats.includes(cat ?? ''));
  const kernels = of('kernel', 'Kernel');
  const copies = of('gpu_memcpy', 'Memcpy');
  const memsets = of('gpu_memset', 'Memset');
  const calls = outermost(of('cuda_runtime', 'cuda_driver', 'Runtime'));
  const callOf = new Map<number, Event>();
  for (const call of calls) callOf.set(correlationOf(call), call);
  const work = [...kernels, ...copies, ...memsets];
  const correlations = new Set(work.map(correlationOf));
  correlations.delete(0);
  const alone = work.filter((event) => correlationOf(event) === 0).length;
  const pageable = new Set(
    copies.filter(({ name }) => /DtoH.*Pageable/.test(name)).map(correlationOf),
  );
  const isWait = (call: Event): boolean =>
    WAITS.test(call.name) || (/MemcpyAsync/.test(call.name) && pageable.has(correlationOf(call)));
  const copiesOf = (kind: string): Copies => {
    const found = copies.filter((copy) => kindOf(copy, callOf) === kind);
    return {
      count: found.length,
      bytes: found.reduce((sum, copy) => sum + bytesOf(copy, callOf), 0),
    };
  };
  return {
    kernels: kernels.length,
    kernelsAtMost10us: kernels.filter(({ dur }) => dur <= 10).length,
    memsets: memsets.length,
    graphLaunches: calls.filter(({ name }) => /GraphLaunch/.test(name)).length,
    submissions: correlations.size + alone,
    hostWaits: calls.filter(isWait).length,
    queries: calls.filter(({ name }) => /(?:Event|Stream)Query/.test(name)).length,
    htod: copiesOf('HtoD'),
    dtoh: copiesOf('DtoH'),
    dtod: copiesOf('DtoD'),
  };
}

function correlationOf({ args }: Event): number {
  return Number(args?.['correlation'] ?? 0);
}

/** ROCm calls copies to and from the host "DtoD"; the argument of the call knows better. */
function kindOf(copy: Event, callOf: ReadonlyMap<number, Event>): string {
  const told = callOf.get(correlationOf(copy))?.args?.['kind'];
  if (told === '1' || told === 1) return 'HtoD';
  if (told === '2' || told === 2) return 'DtoH';
  return /\w+to[DH]/.exec(copy.name)?.[0] ?? '';
}

function bytesOf(copy: Event, callOf: ReadonlyMap<number, Event>): number {
  const told = copy.args?.['bytes'] ?? callOf.get(correlationOf(copy))?.args?.['size'];
  return Number(told ?? 0);
}

/** Calls that are not inside another of their thread, found with a stack of what is open. */
function outermost(calls: readonly Event[]): Event[] {
  const sorted = calls.toSorted((a, b) => a.ts - b.ts || b.dur - a.dur);
  const open = new Map<string, number>();
  return sorted.filter(({ pid, tid, ts, dur }) => {
    const thread = `${pid} ${tid}`;
    if (ts + dur <= (open.get(thread) ?? -Infinity)) return false;
    open.set(thread, ts + dur);
    return true;
  });
}
