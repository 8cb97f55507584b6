/** The host's side of an Nsight Systems export: API calls, what they waited for, named ranges. */
import { IterationRanges } from './iteration-ranges.ts';
import { NSYS_TABLES } from './nsys-context.ts';
import type { NsysContext } from './nsys-context.ts';
import type { SqlValue } from './nsys-database.ts';
import { EventRecords } from './nsys-events.ts';
import { id, number } from './nsys-values.ts';

/** `NVTX_EVENTS.eventType`: ranges pushed and popped, ranges started and ended. */
const NVTX_RANGES = [59, 60];

export async function readCalls(context: NsysContext): Promise<void> {
  const { db, builder, originNs } = context;
  const table = NSYS_TABLES.runtime;
  const expressions = [
    ...context.times(table),
    ...context.processAndThread(table),
    db.column(table, 'correlationId'),
    db.column(table, 'nameId'),
  ];
  for await (const batch of db.rows(table, expressions, [originNs])) {
    for (const [start, duration, process, thread, correlation, name] of batch) {
      builder.addCall(
        context.thread(process, thread),
        context.name(name),
        number(start),
        number(duration),
        context.correlation(process, correlation),
      );
    }
  }
}

/** After calls and work. */
export async function readSyncs(context: NsysContext): Promise<void> {
  if (!context.db.has(NSYS_TABLES.sync)) return;
  const records = await readEventRecords(context);
  for await (const batch of eventRows(context, NSYS_TABLES.sync)) {
    for (const row of batch) {
      const { correlation, event, syncId, streamOf } = eventOf(context, row);
      if (!(correlation > 0)) continue;
      const record = event === undefined ? undefined : records.find(event, correlation, syncId);
      const stream = streamOf();
      context.builder.addSync({
        correlation,
        stream: stream < 0 ? (record?.stream ?? -1) : stream,
        recordCorrelation: record?.correlation ?? 0,
        recordStream: record?.stream ?? -1,
      });
    }
  }
}

async function readEventRecords(context: NsysContext): Promise<EventRecords> {
  const records = new EventRecords();
  for await (const batch of eventRows(context, NSYS_TABLES.event)) {
    for (const row of batch) {
      const { correlation, event, syncId, streamOf } = eventOf(context, row);
      if (event === undefined || !(correlation > 0)) continue;
      records.add(event, { correlation, syncId, stream: streamOf() });
    }
  }
  return records;
}

const EVENT_COLUMNS = [
  'deviceId',
  'contextId',
  'streamId',
  'correlationId',
  'eventId',
  'eventSyncId',
];

/** Rows of the table of event records, or of that of waits, for `eventOf`. */
function eventRows(
  context: NsysContext,
  table: string,
): AsyncGenerator<readonly (readonly SqlValue[])[]> {
  const columns = EVENT_COLUMNS.map((column) => context.db.column(table, column));
  return context.db.rows(table, [context.process(table), ...columns]);
}

interface EventRow {
  readonly correlation: number;
  /** Names the event within its context and process. */
  readonly event: string | undefined;
  readonly syncId: number;
  /** -1 where the row tells none. Asked for, the stream is one of the timeline's. */
  readonly streamOf: () => number;
}

function eventOf(
  context: NsysContext,
  [process, device, ctx, stream, correlation, event, syncId]: readonly SqlValue[],
): EventRow {
  return {
    correlation: context.correlation(process, correlation),
    event: id(event) < 0 ? undefined : `${process ?? ''}/${ctx ?? ''}/${event ?? ''}`,
    syncId: id(syncId),
    streamOf: () => (id(stream) < 0 ? -1 : context.stream(process, device, ctx, stream)),
  };
}

/** Named ranges that are obviously iterations, see `iteration-ranges.ts`. */
export async function readRanges(context: NsysContext): Promise<void> {
  const { db, builder, originNs } = context;
  const table = NSYS_TABLES.nvtx;
  const ranges = new IterationRanges();
  const expressions = [
    ...context.times(table),
    ...context.processAndThread(table),
    ...['eventType', 'text', 'textId'].map((column) => db.column(table, column)),
  ];
  for await (const batch of db.rows(table, expressions, [originNs])) {
    for (const [start, duration, process, thread, type, text, textId] of batch) {
      if (!NVTX_RANGES.includes(number(type))) continue;
      const name = typeof text === 'string' ? text : context.text(textId);
      if (name === undefined) continue;
      const startNs = number(start);
      ranges.add(`${process ?? ''}/${thread ?? ''}`, name, startNs, startNs + number(duration));
    }
  }
  for (const { label, startNs, endNs } of ranges.iterations()) {
    builder.addIteration(label, startNs, endNs);
  }
}
