/** What an answer's reader has to know: what neither estimate sees, and what bends the figures. */
import { CALL_KIND, apiWord } from '#trace/call-kind';
import type { DependencyGraph } from '#trace/dependency-graph';
import type { Timeline, TraceWarning } from '#trace/timeline';
import { WORK_KIND } from '#trace/timeline';

const MANAGED = /^(?:MallocManaged|MemAllocManaged|MemPrefetch|MemAdvise|MemRangeSet)/;
const MAPPED = /^(?:HostGetDevicePointer|MemHostGetDevicePointer|HostRegister|MemHostRegister)/;
/** Calls in which drivers set up or tear down, and are seen to read device registers. */
const DRIVER =
  /^(?:Stream|Event|Ctx|Module|Graph|Library|Device)\w*(?:Create|Destroy|Load|Unload|Instantiate|Reset)/;
const COLLECTIVE = /nccl|rccl/i;
/** Work the profile itself says was caused by faults on managed memory. */
const MANAGED_WORK = /unified memory|UVM|managed/i;

/** A pause of at least this share of the span dilutes every percentage. */
const IDLE_SHARE = 0.2;
const POLLING_QUERIES = 100;

/** Those of reading the trace, then those of the model. */
export function modelWarnings(
  timeline: Timeline,
  { graph, isSpread }: { readonly graph: DependencyGraph | undefined; readonly isSpread: boolean },
): TraceWarning[] {
  const warnings: TraceWarning[] = [...timeline.warnings];
  const add = (code: string, count: number, message: string): void => {
    // What the reader of the trace has told is not told twice.
    const isTold = timeline.warnings.some((warning) => warning.code === code);
    if (count > 0 && !isTold) warnings.push({ code, count, message });
  };
  const seen = countNames(timeline);
  add(
    'managed-memory',
    seen.managed,
    `${seen.managed} uses of managed memory: its page faults cross the path and neither estimate sees them`,
  );
  add(
    'zero-copy',
    seen.mapped,
    `${seen.mapped} calls map host memory for the GPU: kernels that read it across the path are not seen by either estimate`,
  );
  add(
    'collectives',
    seen.collectives,
    `${seen.collectives} kernels of collectives: what they send between GPUs is taken as recorded, which holds for peers in one box`,
  );
  if (!isSpread) {
    add(
      'peer-copies',
      seen.peerCopies,
      `${seen.peerCopies} copies between GPUs are taken to stay in one box; --peers spread prices them across boxes`,
    );
  }
  add(
    'implicit-sync',
    seen.memory,
    `${seen.memory} calls allocate or free memory and may wait for the GPU unrecorded; they keep their recorded time`,
  );
  add(
    'mmio-reads',
    seen.driver,
    `${seen.driver} calls set up or tear down driver objects: reads of device registers in them would each cost a round trip, and are not seen`,
  );
  add(
    'unsized-copies',
    seen.unsized,
    `${seen.unsized} copies between host and GPU tell no size: they pay round trips, but no slower rate`,
  );
  add(
    'unknown-copies',
    seen.unknown,
    `${seen.unknown} copies tell no direction and pay as submissions alone`,
  );
  if (seen.queries >= POLLING_QUERIES) {
    add(
      'polling',
      seen.queries,
      `${seen.queries} queries of events or streams: a loop that polls waits, but looks like work of the CPU`,
    );
  }
  if (graph !== undefined) {
    const { unknownStreamWaits } = graph.counts;
    add(
      'unknown-stream-waits',
      unknownStreamWaits,
      `${unknownStreamWaits} stream waits name no event, and none could be inferred`,
    );
  }
  if (timeline.recordedStacks || timeline.recordedShapes) {
    const what = timeline.recordedStacks ? 'stacks' : 'shapes';
    warnings.push({
      code: 'inflated-gaps',
      count: 1,
      message: `the trace was recorded with ${what}, which inflates the gaps between calls and so lowers every percentage: record without`,
    });
  }
  addIdle(timeline, warnings);
  return warnings;
}

interface Seen {
  managed: number;
  mapped: number;
  driver: number;
  collectives: number;
  memory: number;
  queries: number;
  peerCopies: number;
  unsized: number;
  unknown: number;
}

function countNames({ calls, work, names }: Timeline): Seen {
  const seen: Seen = {
    managed: 0,
    mapped: 0,
    driver: 0,
    collectives: 0,
    memory: 0,
    queries: 0,
    peerCopies: 0,
    unsized: 0,
    unknown: 0,
  };
  const words = names.map((name) => apiWord(name) ?? '');
  const isManaged = flags(words, MANAGED);
  const isMapped = flags(words, MAPPED);
  const isDriver = flags(words, DRIVER);
  for (let call = 0; call < calls.count; call += 1) {
    const name = calls.name[call] ?? 0;
    if (calls.kind[call] === CALL_KIND.memory) seen.memory += 1;
    if (calls.kind[call] === CALL_KIND.query) seen.queries += 1;
    seen.managed += isManaged[name] ?? 0;
    seen.mapped += isMapped[name] ?? 0;
    seen.driver += isDriver[name] ?? 0;
  }
  const isCollective = flags(names, COLLECTIVE);
  const isManagedWork = flags(names, MANAGED_WORK);
  for (let row = 0; row < work.count; row += 1) {
    const name = work.name[row] ?? 0;
    const kind = work.kind[row];
    if (kind === WORK_KIND.kernel) seen.collectives += isCollective[name] ?? 0;
    else seen.managed += isManagedWork[name] ?? 0;
    if (kind === WORK_KIND.ptop) seen.peerCopies += 1;
    if (kind === WORK_KIND.copy) seen.unknown += 1;
    const isHostCopy = kind === WORK_KIND.htod || kind === WORK_KIND.dtoh;
    if (isHostCopy && work.bytes[row] === 0) seen.unsized += 1;
  }
  return seen;
}

function flags(names: readonly string[], pattern: RegExp): Uint8Array {
  return Uint8Array.from(names, (name) => (pattern.test(name) ? 1 : 0));
}

/** A long stretch before the first or after the last launch, as of initialisation. */
function addIdle(timeline: Timeline, warnings: TraceWarning[]): void {
  const { work, spanNs } = timeline;
  if (work.count === 0 || !(spanNs > 0)) return;
  let firstNs = Infinity;
  let lastNs = 0;
  for (let row = 0; row < work.count; row += 1) {
    const startNs = work.startNs[row] ?? 0;
    firstNs = Math.min(firstNs, startNs);
    lastNs = Math.max(lastNs, startNs + (work.durationNs[row] ?? 0));
  }
  const idleNs = firstNs + (spanNs - lastNs);
  if (idleNs < IDLE_SHARE * spanNs) return;
  const share = ((100 * idleNs) / spanNs).toFixed(0);
  const better =
    timeline.iterations.length > 0
      ? 'see the figures of the marked iterations'
      : 'record the steady part alone, or mark its iterations';
  warnings.push({
    code: 'diluted',
    count: 1,
    message: `the GPU has no work yet or no more in ${share} % of the span, which lowers every percentage: ${better}`,
  });
}
