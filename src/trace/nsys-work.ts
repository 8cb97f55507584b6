/** GPU work of an Nsight Systems export: kernels, copies, memsets, graphs recorded as a whole. */
import { countManagedCopies, countPageFaults } from './managed-memory.ts';
import { NSYS_TABLES } from './nsys-context.ts';
import type { NsysContext } from './nsys-context.ts';
import type { SqlValue } from './nsys-database.ts';
import { copyKinds, id, memoryFlags, number } from './nsys-values.ts';
import { WORK_FLAG, WORK_KIND } from './timeline.ts';
import type { WorkKind } from './timeline.ts';

type Row = readonly SqlValue[];

const FAULT_TABLES = ['CUDA_UM_CPU_PAGE_FAULT_EVENTS', 'CUDA_UM_GPU_PAGE_FAULT_EVENTS'];
/** What every table of work has. */
const COMMON = ['deviceId', 'contextId', 'streamId', 'correlationId', 'graphNodeId'];
/** Start, duration, process, and `COMMON`. */
const COMMON_VALUES = 3 + COMMON.length;

/** Rows of a table of work: the common values, then those of the columns `own`. */
function workRows(
  context: NsysContext,
  table: string,
  own: readonly string[],
): AsyncGenerator<readonly Row[]> {
  const { db, originNs } = context;
  const columns = [...COMMON, ...own].map((column) => db.column(table, column));
  const expressions = [...context.times(table), context.process(table), ...columns];
  return db.rows(table, expressions, [originNs]);
}

/** Adds a piece of work that begins with the common values; `name` is a number of the builder. */
function addWork(
  context: NsysContext,
  [start, duration, process, device, ctx, stream, correlation, node]: Row,
  kind: WorkKind,
  name: number,
  bytes: number,
  flags = 0,
): void {
  context.builder.addWork(
    context.stream(process, device, ctx, stream),
    kind,
    name,
    number(start),
    number(duration),
    context.correlation(process, correlation),
    bytes,
    id(node) > 0 ? flags | WORK_FLAG.graph : flags,
  );
}

export async function readKernels(context: NsysContext): Promise<void> {
  const names = ['demangledName', 'shortName', 'mangledName'];
  for await (const batch of workRows(context, NSYS_TABLES.kernel, names)) {
    for (const row of batch) {
      const name = context.name(...row.slice(COMMON_VALUES));
      addWork(context, row, WORK_KIND.kernel, name, 0);
    }
  }
}

export async function readCopies(context: NsysContext): Promise<void> {
  const { db, builder } = context;
  const kindOf = copyKinds(db);
  const flagsOf = memoryFlags(db);
  const own = ['bytes', 'copyKind', 'srcKind', 'dstKind', 'srcDeviceId', 'dstDeviceId'];
  let managed = 0;
  for await (const batch of workRows(context, NSYS_TABLES.memcpy, own)) {
    for (const row of batch) {
      const [bytes, copyKind, sourceKind, targetKind, source, target] = row.slice(COMMON_VALUES);
      const copy = kindOf(number(copyKind));
      if (copy.isManaged) managed += 1;
      const isAcross = id(source) >= 0 && id(target) >= 0 && source !== target;
      const kind = copy.kind === WORK_KIND.dtod && isAcross ? WORK_KIND.ptop : copy.kind;
      let flags = 0;
      if (kind === WORK_KIND.htod) flags = flagsOf(number(sourceKind));
      if (kind === WORK_KIND.dtoh) flags = flagsOf(number(targetKind));
      addWork(context, row, kind, builder.name(copy.name), number(bytes), flags);
    }
  }
  countManagedCopies(builder.warnings, managed);
  countPageFaults(
    builder.warnings,
    FAULT_TABLES.reduce((sum, table) => sum + db.expectedRows(table), 0),
  );
}

export async function readMemsets(context: NsysContext): Promise<void> {
  const name = context.builder.name('Memset');
  for await (const batch of workRows(context, NSYS_TABLES.memset, ['bytes'])) {
    for (const row of batch) {
      const bytes = row[COMMON_VALUES] ?? 0;
      addWork(context, row, WORK_KIND.memset, name, number(bytes));
    }
  }
}

/** One row a graph launch, where graphs were recorded as a whole. */
export async function readGraphs(context: NsysContext): Promise<void> {
  const { builder } = context;
  let graphs = 0;
  for await (const batch of workRows(context, NSYS_TABLES.graph, ['graphExecId', 'graphId'])) {
    for (const row of batch) {
      const [executable, graph] = row.slice(COMMON_VALUES);
      const known = id(executable) >= 0 ? id(executable) : id(graph);
      const name = builder.name(known < 0 ? 'graph' : `graph ${known}`);
      addWork(context, row, WORK_KIND.graph, name, 0, WORK_FLAG.graph);
      graphs += 1;
    }
  }
  if (graphs > 0) {
    builder.warnings.count(
      'graphs-as-a-whole',
      'graph launches were recorded as a whole: kernels and copies inside are not seen. Record with --cuda-graph-trace=node to see them',
      { by: graphs },
    );
  }
}
