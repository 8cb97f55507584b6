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
  const { db, builder } = context;
  const table = NSYS_TABLES.sync;
  if (!db.has(table)) return;
  const records = await readEventRecords(context);
  const expressions = [
    context.process(table),
    ...['deviceId', 'contextId', 'streamId', 'correlationId', 'eventId', 'eventSyncId'].map(
      (column) => db.column(table, column),
    ),
  ];
  for await (const batch of db.rows(table, expressions)) {
    for (const [process, device, ctx, stream, correlationId, event, syncId] of batch) {
      const correlation = context.correlation(process, correlationId);
      if (!(correlation > 0)) continue;
      const record =
        id(event) < 0
          ? undefined
          : records.find(eventKey(process, ctx, event), correlation, id(syncId));
      const told = id(stream) < 0 ? -1 : context.stream(process, device, ctx, stream);
      builder.addSync({
        correlation,
        stream: told < 0 ? (record?.stream ?? -1) : told,
        recordCorrelation: record?.correlation ?? 0,
        recordStream: record?.stream ?? -1,
      });
    }
  }
}

async function readEventRecords(context: NsysContext): Promise<EventRecords> {
  const { db } = context;
  const table = NSYS_TABLES.event;
  const records = new EventRecords();
  const expressions = [
    context.process(table),
    ...['deviceId', 'contextId', 'streamId', 'correlationId', 'eventId', 'eventSyncId'].map(
      (column) => db.column(table, column),
    ),
  ];
  for await (const batch of db.rows(table, expressions)) {
    for (const [process, device, ctx, stream, correlationId, event, syncId] of batch) {
      const correlation = context.correlation(process, correlationId);
      if (id(event) < 0 || !(correlation > 0)) continue;
      records.add(eventKey(process, ctx, event), {
        correlation,
        syncId: id(syncId),
        stream: id(stream) < 0 ? -1 : context.stream(process, device, ctx, stream),
      });
    }
  }
  return records;
}

function eventKey(
  process: SqlValue | undefined,
  ctx: SqlValue | undefined,
  event: SqlValue | undefined,
): string {
  return `${process ?? ''}/${ctx ?? ''}/${event ?? ''}`;
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
