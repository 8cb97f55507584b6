/**
 * Nsight Systems reports, exported as SQLite (`nsys export --type sqlite`). Tables and columns come and
 * go with what was recorded and with the version, so each is looked for first.
 *
 * A graph launch recorded as a whole (`--cuda-graph-trace=graph`) has one row in
 * CUPTI_ACTIVITY_KIND_GRAPH_TRACE: it becomes one piece of work of kind `graph`, one submission.
 * What kind of wait a synchronisation is, is taken from the name of its call: `syncType` has been
 * exported with different meanings.
 */
import { DxpuError } from '#base/errors';
import { readCalls, readRanges, readSyncs } from './nsys-calls.ts';
import { NSYS_ACTIVITY, NSYS_TABLES, NsysContext } from './nsys-context.ts';
import { NsysDatabase } from './nsys-database.ts';
import { id, processOf, threadOf } from './nsys-values.ts';
import { readCopies, readGraphs, readKernels, readMemsets } from './nsys-work.ts';
import type { ReadOptions } from './read-options.ts';
import { TimelineBuilder } from './timeline-builder.ts';
import type { Timeline } from './timeline.ts';

/** Times from here on, in 1990, are since 1970 rather than since the start of the recording. */
const SINCE_1970_NS = 631_152_000_000_000_000n;
const YEAR_2100_NS = 4_102_444_800_000_000_000n;

/** Throws a `DxpuError` for a file that is no such export, is damaged, or has no CUDA in it. */
export async function readNsys(file: string, options: ReadOptions = {}): Promise<Timeline> {
  const db = new NsysDatabase(file, options);
  try {
    refuseOthers(db);
    const rows = Object.values(NSYS_TABLES).map((table) => db.expectedRows(table));
    db.expect(rows.reduce((sum, count) => sum + count, 0));
    const builder = new TimelineBuilder('nsys');
    const context = new NsysContext(db, builder);
    await readCalls(context);
    await readKernels(context);
    await readCopies(context);
    await readMemsets(context);
    await readGraphs(context);
    await readSyncs(context);
    await readRanges(context);
    readSurroundings(context);
    return builder.finish();
  } finally {
    db.close();
  }
}

function refuseOthers(db: NsysDatabase): void {
  const { file } = db;
  const refuse = (what: string): DxpuError =>
    new DxpuError('invalid_argument', `${file}: ${what}`, { details: { file } });
  if (db.has('CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL') || db.has('CUPTI_ACTIVITY_KIND_DRIVER')) {
    throw refuse(
      "this is nvprof's own database. Print what it holds with nvprof --import-profile FILE " +
        '--print-gpu-trace --csv --log-file OUT.csv, and give OUT.csv',
    );
  }
  if (db.tables().some((table) => table.startsWith('rocpd_'))) {
    throw refuse(
      "this is a database of AMD's rocprofiler, which is not read. Record with the PyTorch profiler " +
        'and give the file of export_chrome_trace',
    );
  }
  if (NSYS_ACTIVITY.some((table) => db.has(table))) return;
  if (['META_DATA_EXPORT', 'EXPORT_META_DATA', 'StringIds'].some((table) => db.has(table))) {
    throw refuse(
      'this export of Nsight Systems has no CUDA activity in it. Record again with nsys profile ' +
        '--trace=cuda,nvtx COMMAND, then nsys export --type sqlite REPORT.nsys-rep',
    );
  }
  throw refuse(
    'this is an SQLite database, but none of Nsight Systems: it has none of its tables. Export a ' +
      'report with nsys export --type sqlite REPORT.nsys-rep',
  );
}

/** Names of GPUs and threads, and the absolute time. */
function readSurroundings(context: NsysContext): void {
  const { db, builder } = context;
  const gpuColumns = ['id', 'name'].map((column) => db.column('TARGET_INFO_GPU', column));
  for (const [number, name] of db.small('TARGET_INFO_GPU', gpuColumns)) {
    if (id(number) >= 0 && typeof name === 'string') builder.gpu(id(number), name);
  }
  const globalTid = db.column('ThreadNames', 'globalTid');
  const threadColumns = [
    processOf(globalTid),
    threadOf(globalTid),
    db.column('ThreadNames', 'nameId'),
  ];
  for (const [process, thread, name] of db.small('ThreadNames', threadColumns)) {
    const text = context.text(name);
    if (text !== undefined) context.nameThread(process, thread, text);
  }
  builder.originUnixNs = originUnixNs(context);
}

function originUnixNs({ db, originNs }: NsysContext): bigint | undefined {
  if (originNs >= SINCE_1970_NS) return originNs < YEAR_2100_NS ? originNs : undefined;
  const table = 'TARGET_INFO_SESSION_START_TIME';
  const column = db.column(table, 'utcEpochNs');
  const start = db.first(
    table,
    `iif(typeof(${column}) = 'integer', CAST(${column} AS TEXT), NULL)`,
  );
  if (typeof start !== 'string') return undefined;
  const sum = BigInt(start) + originNs;
  return sum >= SINCE_1970_NS && sum < YEAR_2100_NS ? sum : undefined;
}
