/**
 * What the parts of the Nsight Systems reader share: the database, the builder, and what rows refer to:
 * times, names, processes, threads, streams, correlation ids.
 */
import type { NsysDatabase, SqlValue } from './nsys-database.ts';
import { id, number, processOf, threadOf } from './nsys-values.ts';
import type { TimelineBuilder } from './timeline-builder.ts';

/** 2^32: above any correlation id, so that ids of several processes do not meet. */
const CORRELATIONS = 0x1_0000_0000;
const PIDS = 0x100_0000;

export const NSYS_TABLES = {
  runtime: 'CUPTI_ACTIVITY_KIND_RUNTIME',
  kernel: 'CUPTI_ACTIVITY_KIND_KERNEL',
  memcpy: 'CUPTI_ACTIVITY_KIND_MEMCPY',
  memset: 'CUPTI_ACTIVITY_KIND_MEMSET',
  graph: 'CUPTI_ACTIVITY_KIND_GRAPH_TRACE',
  sync: 'CUPTI_ACTIVITY_KIND_SYNCHRONIZATION',
  event: 'CUPTI_ACTIVITY_KIND_CUDA_EVENT',
  nvtx: 'NVTX_EVENTS',
} as const;

/** Tables that hold calls or GPU work. */
export const NSYS_ACTIVITY: readonly string[] = [
  NSYS_TABLES.runtime,
  NSYS_TABLES.kernel,
  NSYS_TABLES.memcpy,
  NSYS_TABLES.memset,
  NSYS_TABLES.graph,
];

/** `process`: hardware, machine and process id as one number, the upper part of a `globalPid`; or NULL. */
export class NsysContext {
  readonly db: NsysDatabase;
  readonly builder: TimelineBuilder;
  /**
   * The start of some event: subtracted in SQL, where integers are exact, so that times since 1970
   * keep their nanoseconds.
   */
  readonly originNs: bigint;
  readonly #string: (key: number) => SqlValue | undefined;
  readonly #names = new Map<SqlValue, number>();
  readonly #streams = new Map<string, number>();
  readonly #threads = new Map<string, number>();
  readonly #processes = new Map<number, number>();
  readonly #firstContext = new Map<string, number>();
  readonly #gpuOf: ReadonlyMap<string, number>;

  constructor(db: NsysDatabase, builder: TimelineBuilder) {
    this.db = db;
    this.builder = builder;
    const hasStrings = db.hasColumn('StringIds', 'id') && db.hasColumn('StringIds', 'value');
    this.#string = hasStrings
      ? db.lookup('SELECT substr(value, 1, 4096) FROM StringIds WHERE id = ?')
      : () => undefined;
    this.originNs = firstStart(db);
    this.#gpuOf = gpusOfProcesses(db);
  }

  /** SQL for start against the origin and for duration, two values; what is not a number gives NULL. */
  times(table: string): string[] {
    const start = this.db.column(table, 'start');
    const end = this.db.column(table, 'end');
    const isNumber = (column: string): string => `typeof(${column}) IN ('integer', 'real')`;
    return [
      `iif(${isNumber(start)}, ${start} - ?, NULL)`,
      `iif(${isNumber(start)} AND ${isNumber(end)}, ${end} - ${start}, NULL)`,
    ];
  }

  /** SQL for the process of a row, by its `globalPid`. */
  process(table: string): string {
    return processOf(this.db.column(table, 'globalPid'));
  }

  /** SQL for process and thread of a row, two values, by its `globalTid`. */
  processAndThread(table: string): string[] {
    const column = this.db.column(table, 'globalTid');
    return [processOf(column), threadOf(column)];
  }

  /** The text of a string id. */
  text(key: SqlValue | undefined): string | undefined {
    const value = typeof key === 'number' ? this.#string(key) : undefined;
    return typeof value === 'string' ? value : undefined;
  }

  /** Index of the name with a string id; the first of `keys` that has one. */
  name(...keys: (SqlValue | undefined)[]): number {
    const [first = null] = keys;
    const known = this.#names.get(first);
    if (known !== undefined) return known;
    let text: string | undefined;
    for (const key of keys) text ??= this.text(key);
    if (text === undefined) {
      this.builder.warnings.count('no-name', 'names that the export lacks are shown as "unknown"');
    }
    const index = this.builder.name(text ?? 'unknown');
    if (first !== null) this.#names.set(first, index);
    return index;
  }

  /**
   * Correlation ids count up in each process on its own: the first process seen keeps its ids, those
   * of others are moved out of the way. Rows that name no process belong to the first.
   */
  correlation(process: SqlValue | undefined, value: SqlValue | undefined): number {
    if (value === null || value === undefined || value === 0) return 0;
    if (typeof value !== 'number') return Number.NaN;
    return value + this.#processIndex(process) * CORRELATIONS;
  }

  thread(process: SqlValue | undefined, thread: SqlValue | undefined): number {
    const key = `${process ?? ''}/${thread ?? ''}`;
    let index = this.#threads.get(key);
    if (index === undefined) {
      index = this.builder.thread(pidText(process), String(thread ?? '?'));
      this.#threads.set(key, index);
    }
    return index;
  }

  nameThread(process: SqlValue | undefined, thread: SqlValue | undefined, name: string): void {
    if (!this.#threads.has(`${process ?? ''}/${thread ?? ''}`)) return;
    this.builder.nameThread(pidText(process), String(thread ?? '?'), name);
  }

  /** Streams are numbered within a context, contexts within a process. */
  stream(
    process: SqlValue | undefined,
    device: SqlValue | undefined,
    context: SqlValue | undefined,
    stream: SqlValue | undefined,
  ): number {
    const key = `${process ?? ''}/${device ?? ''}/${context ?? ''}/${stream ?? ''}`;
    let index = this.#streams.get(key);
    if (index === undefined) {
      const gpu = this.#gpu(process, id(device));
      const others: string[] = [];
      if (this.#processIndex(process) > 0) others.push(`process ${pidText(process)}`);
      // The first context of a process on a GPU goes without saying.
      const ofProcess = `${process ?? ''}/${gpu}`;
      const firstContext = this.#firstContext.get(ofProcess) ?? id(context);
      this.#firstContext.set(ofProcess, firstContext);
      if (id(context) !== firstContext) others.push(`context ${id(context)}`);
      const suffix = others.length === 0 ? '' : ` (${others.join(', ')})`;
      index = this.builder.stream(gpu, `${stream ?? '?'}${suffix}`);
      this.#streams.set(key, index);
    }
    return index;
  }

  /** The number of the GPU in the machine: a process may number those it sees otherwise. */
  #gpu(process: SqlValue | undefined, device: number): number {
    const pid = typeof process === 'number' ? process % PIDS : -1;
    return this.#gpuOf.get(`${pid}/${device}`) ?? Math.max(0, device);
  }

  #processIndex(process: SqlValue | undefined): number {
    if (typeof process !== 'number') return 0;
    const known = this.#processes.get(process);
    if (known !== undefined) return known;
    const index = this.#processes.size;
    this.#processes.set(process, index);
    return index;
  }
}

function firstStart(db: NsysDatabase): bigint {
  for (const table of NSYS_ACTIVITY) {
    const start = db.column(table, 'start');
    const first = db.first(
      table,
      `iif(typeof(${start}) = 'integer', CAST(${start} AS TEXT), NULL)`,
    );
    if (typeof first === 'string') return BigInt(first);
  }
  return 0n;
}

/** GPUs by process id and the number the process knows them under. */
function gpusOfProcesses(db: NsysDatabase): Map<string, number> {
  const table = 'TARGET_INFO_CUDA_DEVICE';
  const columns = ['pid', 'cudaId', 'gpuId'].map((column) => db.column(table, column));
  return new Map(
    db
      .small(table, columns)
      .filter(([, , gpu]) => id(gpu) >= 0)
      .map(([pid, cuda, gpu]) => [`${number(pid)}/${number(cuda)}`, id(gpu)]),
  );
}

/** The process id the system gave, with the machine before it where there is one beyond the first. */
function pidText(process: SqlValue | undefined): string {
  if (typeof process !== 'number') return '?';
  const machine = Math.floor(process / PIDS);
  return machine <= 1 ? String(process % PIDS) : `${machine}:${process % PIDS}`;
}
