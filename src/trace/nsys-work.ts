/** GPU work of an Nsight Systems export: kernels, copies, memsets, graphs recorded as a whole. */
import { countManagedCopies, countPageFaults } from './managed-memory.ts';
import { NSYS_TABLES } from './nsys-context.ts';
import type { NsysContext } from './nsys-context.ts';
import { copyKinds, id, memoryFlags, number } from './nsys-values.ts';
import { WORK_FLAG, WORK_KIND } from './timeline.ts';

const FAULT_TABLES = ['CUDA_UM_CPU_PAGE_FAULT_EVENTS', 'CUDA_UM_GPU_PAGE_FAULT_EVENTS'];

/** What every table of work has. Seven values, `graphNodeId` last. */
function common(context: NsysContext, table: string): string[] {
  const columns = ['deviceId', 'contextId', 'streamId', 'correlationId', 'graphNodeId'];
  return [
    ...context.times(table),
    context.process(table),
    ...columns.map((column) => context.db.column(table, column)),
  ];
}

export async function readKernels(context: NsysContext): Promise<void> {
  const { db, builder, originNs } = context;
  const names = ['demangledName', 'shortName', 'mangledName'];
  const columns = names.map((column) => db.column(NSYS_TABLES.kernel, column));
  const expressions = [...common(context, NSYS_TABLES.kernel), ...columns];
  for await (const batch of db.rows(NSYS_TABLES.kernel, expressions, [originNs])) {
    for (const row of batch) {
      const [start, duration, process, device, ctx, stream, correlation, node, ...keys] = row;
      builder.addWork(
        context.stream(process, device, ctx, stream),
        WORK_KIND.kernel,
        context.name(...keys),
        number(start),
        number(duration),
        context.correlation(process, correlation),
        0,
        id(node) > 0 ? WORK_FLAG.graph : 0,
      );
    }
  }
}

export async function readCopies(context: NsysContext): Promise<void> {
  const { db, builder, originNs } = context;
  const kindOf = copyKinds(db);
  const flagsOf = memoryFlags(db);
  const own = ['bytes', 'copyKind', 'srcKind', 'dstKind', 'srcDeviceId', 'dstDeviceId'];
  const columns = own.map((column) => db.column(NSYS_TABLES.memcpy, column));
  const expressions = [...common(context, NSYS_TABLES.memcpy), ...columns];
  let managed = 0;
  for await (const batch of db.rows(NSYS_TABLES.memcpy, expressions, [originNs])) {
    for (const row of batch) {
      const [start, duration, process, device, ctx, stream, correlation, node] = row;
      const [bytes, copyKind, sourceKind, targetKind, source, target] = row.slice(8);
      const copy = kindOf(number(copyKind));
      if (copy.isManaged) managed += 1;
      const isAcross = id(source) >= 0 && id(target) >= 0 && source !== target;
      const kind = copy.kind === WORK_KIND.dtod && isAcross ? WORK_KIND.ptop : copy.kind;
      let flags = id(node) > 0 ? WORK_FLAG.graph : 0;
      if (kind === WORK_KIND.htod) flags |= flagsOf(number(sourceKind));
      if (kind === WORK_KIND.dtoh) flags |= flagsOf(number(targetKind));
      builder.addWork(
        context.stream(process, device, ctx, stream),
        kind,
        builder.name(copy.name),
        number(start),
        number(duration),
        context.correlation(process, correlation),
        number(bytes),
        flags,
      );
    }
  }
  countManagedCopies(builder.warnings, managed);
  countPageFaults(
    builder.warnings,
    FAULT_TABLES.reduce((sum, table) => sum + db.expectedRows(table), 0),
  );
}

export async function readMemsets(context: NsysContext): Promise<void> {
  const { db, builder, originNs } = context;
  const bytesColumn = db.column(NSYS_TABLES.memset, 'bytes');
  const expressions = [...common(context, NSYS_TABLES.memset), bytesColumn];
  const name = builder.name('Memset');
  for await (const batch of db.rows(NSYS_TABLES.memset, expressions, [originNs])) {
    for (const row of batch) {
      const [start, duration, process, device, ctx, stream, correlation, node, bytes] = row;
      builder.addWork(
        context.stream(process, device, ctx, stream),
        WORK_KIND.memset,
        name,
        number(start),
        number(duration),
        context.correlation(process, correlation),
        bytes === null ? 0 : number(bytes),
        id(node) > 0 ? WORK_FLAG.graph : 0,
      );
    }
  }
}

/** One row a graph launch, where graphs were recorded as a whole. */
export async function readGraphs(context: NsysContext): Promise<void> {
  const { db, builder, originNs } = context;
  const expressions = [
    ...common(context, NSYS_TABLES.graph),
    db.column(NSYS_TABLES.graph, 'graphExecId'),
    db.column(NSYS_TABLES.graph, 'graphId'),
  ];
  let graphs = 0;
  for await (const batch of db.rows(NSYS_TABLES.graph, expressions, [originNs])) {
    for (const row of batch) {
      const [start, duration, process, device, ctx, stream, correlation, , executable, graph] = row;
      const number_ = id(executable) >= 0 ? id(executable) : id(graph);
      builder.addWork(
        context.stream(process, device, ctx, stream),
        WORK_KIND.graph,
        builder.name(number_ < 0 ? 'graph' : `graph ${number_}`),
        number(start),
        number(duration),
        context.correlation(process, correlation),
        0,
        WORK_FLAG.graph,
      );
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
