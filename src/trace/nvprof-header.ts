/**
 * The head of an nvprof table: which column is what, and the row of units below it. Units are chosen
 * anew for every table, by the largest value in it.
 */
const TIME_NS = new Map([
  ['s', 1e9],
  ['ms', 1e6],
  ['us', 1e3],
  ['ns', 1],
]);
/** nvprof counts in powers of 1024. */
const SIZE_BYTES = new Map([
  ['B', 1],
  ['KB', 1024],
  ['MB', 1024 ** 2],
  ['GB', 1024 ** 3],
  ['TB', 1024 ** 4],
]);

export interface NvprofColumns {
  readonly count: number;
  readonly start: number;
  readonly duration: number;
  readonly name: number;
  readonly device: number;
  /** -1 where there is no such column. */
  readonly context: number;
  readonly stream: number;
  readonly size: number;
  readonly sourceMemory: number;
  readonly targetMemory: number;
}

export interface NvprofUnits {
  readonly startNs: number;
  readonly durationNs: number;
  /** NaN where the table has no sizes. */
  readonly sizeBytes: number;
}

/** What a line is, of those that may stand where a header is looked for. */
export type NvprofHead =
  | { readonly is: 'gpu-trace'; readonly columns: NvprofColumns }
  | { readonly is: 'api-trace' }
  | { readonly is: 'summary' }
  | { readonly is: 'other' };

export function nvprofHead(fields: readonly string[]): NvprofHead {
  const at = (name: string): number => fields.indexOf(name);
  if (at('Time(%)') >= 0 && at('Calls') >= 0) return { is: 'summary' };
  if (at('Start') < 0 || at('Duration') < 0 || at('Name') < 0) return { is: 'other' };
  if (at('Device') < 0) return { is: 'api-trace' };
  return {
    is: 'gpu-trace',
    columns: {
      count: fields.length,
      start: at('Start'),
      duration: at('Duration'),
      name: at('Name'),
      device: at('Device'),
      context: at('Context'),
      stream: at('Stream'),
      size: at('Size'),
      sourceMemory: at('SrcMemType'),
      targetMemory: at('DstMemType'),
    },
  };
}

/** Undefined where the row has no units of time in the right places. */
export function nvprofUnits(
  columns: NvprofColumns,
  fields: readonly string[],
): NvprofUnits | undefined {
  const startNs = TIME_NS.get(fields[columns.start] ?? '');
  const durationNs = TIME_NS.get(fields[columns.duration] ?? '');
  if (startNs === undefined || durationNs === undefined) return undefined;
  const sizeBytes = SIZE_BYTES.get(fields[columns.size] ?? '') ?? Number.NaN;
  return { startNs, durationNs, sizeBytes };
}
