/**
 * Small timelines written down by hand: host threads and streams as lists of calls and work, in ns.
 */
import type { SyncRecord } from '#trace/call-rows';
import { TimelineBuilder } from '#trace/timeline-builder';
import type { Timeline, WorkKind } from '#trace/timeline';
import { WORK_KIND } from '#trace/timeline';

/** Name, start, duration, correlation id (0 or left out: none). */
export type SceneCall = readonly [name: string, startNs: number, durationNs: number, id?: number];

export interface SceneWork {
  readonly kind?: keyof typeof WORK_KIND;
  readonly at: number;
  readonly ns: number;
  /** Correlation id. */
  readonly id?: number;
  readonly bytes?: number;
  /** `WORK_FLAG` bits. */
  readonly flags?: number;
  readonly name?: string;
}

export interface Scene {
  /** Calls by thread, in any order. */
  readonly threads: Readonly<Record<string, readonly SceneCall[]>>;
  /** Work by stream; `1/7` is stream 7 of device 1. */
  readonly streams: Readonly<Record<string, readonly SceneWork[]>>;
  /** `stream` and `recordStream` by the names above. */
  readonly syncs?: readonly {
    readonly id: number;
    readonly stream?: string;
    readonly record?: number;
    readonly recordStream?: string;
  }[];
  readonly iterations?: readonly (readonly [label: string, startNs: number, endNs: number])[];
}

export function sceneTimeline(scene: Scene): Timeline {
  const builder = new TimelineBuilder('synthetic');
  const streamOf = (name: string): number => {
    const [device, stream] = name.includes('/') ? name.split('/') : ['0', name];
    return builder.stream(Number(device), stream ?? name);
  };
  for (const [thread, calls] of Object.entries(scene.threads)) {
    for (const [name, startNs, durationNs, id = 0] of calls) {
      builder.addCall(builder.thread('1', thread), builder.name(name), startNs, durationNs, id);
    }
  }
  for (const [stream, pieces] of Object.entries(scene.streams)) {
    for (const piece of pieces) {
      const kind: WorkKind = WORK_KIND[piece.kind ?? 'kernel'];
      builder.addWork(
        streamOf(stream),
        kind,
        builder.name(piece.name ?? piece.kind ?? 'kernel'),
        piece.at,
        piece.ns,
        piece.id ?? 0,
        piece.bytes ?? 0,
        piece.flags ?? 0,
      );
    }
  }
  for (const sync of scene.syncs ?? []) {
    const record: SyncRecord = {
      correlation: sync.id,
      stream: sync.stream === undefined ? -1 : streamOf(sync.stream),
      recordCorrelation: sync.record ?? 0,
      recordStream: sync.recordStream === undefined ? -1 : streamOf(sync.recordStream),
    };
    builder.addSync(record);
  }
  for (const [label, startNs, endNs] of scene.iterations ?? []) {
    builder.addIteration(label, startNs, endNs);
  }
  return builder.finish();
}
