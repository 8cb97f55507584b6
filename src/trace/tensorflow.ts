/**
 * Timelines of TensorFlow 1 (`tf.python.client.timeline`): a Chrome trace whose processes are the
 * streams of the GPUs, `/gpu:0/stream:12 Compute`. The same work stands a second time under
 * `stream:all` and `memcpy`: those are read only where no single stream is there.
 *
 * There are no API calls in it, copies come without bytes, times are whole microseconds, and work has
 * the name of the operator it is of.
 */
import { DxpuError } from '#base/errors';
import { lossAtEnd } from './bytes-of-file.ts';
import { JsonEvents } from './json-events.ts';
import type { EventsSink } from './json-events.ts';
import { endOfValue } from './json-skip.ts';
import { fileChunks } from './read-options.ts';
import type { ReadOptions } from './read-options.ts';
import { TimelineBuilder } from './timeline-builder.ts';
import { WORK_KIND } from './timeline.ts';
import type { Timeline, WorkKind } from './timeline.ts';

const NS_PER_US = 1000;

const COPY_KINDS = new Map<string, WorkKind>([
  ['MEMCPYHTOD', WORK_KIND.htod],
  ['MEMCPYDTOH', WORK_KIND.dtoh],
  ['MEMCPYDTOD', WORK_KIND.dtod],
  ['MEMCPYHTOH', WORK_KIND.htoh],
  ['MEMCPYPTOP', WORK_KIND.ptop],
]);

/** Throws a `DxpuError` for a file without work of a GPU's streams. */
export async function readTensorflow(file: string, options: ReadOptions = {}): Promise<Timeline> {
  const sink = new TensorflowSink();
  const events = new JsonEvents(sink);
  try {
    for await (const chunk of fileChunks(file, options)) if (!events.push(chunk)) break;
  } catch (error) {
    const { warnings } = sink.builder;
    const loss = lossAtEnd(error, warnings);
    if (loss !== undefined) {
      warnings.count('damaged', `end of the file is missing: ${loss.message}`);
    }
  }
  const { cutOffAt } = events.end();
  if (cutOffAt !== undefined) sink.cutOff(cutOffAt);
  if (!sink.hasStreams) {
    throw new DxpuError(
      'invalid_argument',
      `${file}: this timeline of TensorFlow shows no stream of a GPU: run the session with ` +
        'RunOptions(trace_level=RunOptions.FULL_TRACE) on a machine with a GPU',
      { details: { file } },
    );
  }
  return sink.builder.finish();
}

interface Stream {
  readonly device: number;
  readonly stream: string;
  /** Shows again what single streams show. */
  readonly isRepeat: boolean;
}

class TensorflowSink implements EventsSink {
  readonly builder = new TimelineBuilder('tensorflow');
  readonly #streams = new Map<number, Stream>();
  #hasSingle = false;
  #originUs: number | undefined;

  get hasStreams(): boolean {
    return this.#streams.size > 0;
  }

  event(bytes: Uint8Array, start: number, limit: number): number {
    const end = endOfValue(bytes, start, limit, 0);
    if (end < 0) return -1;
    const event = parsed(bytes.subarray(start, end));
    if (event === undefined) {
      this.builder.warnings.count('malformed-events', 'events that are no JSON were dropped');
    } else if (event['ph'] === 'M') this.#process(event);
    else if (event['ph'] === 'X') this.#work(event);
    return end;
  }

  field(): void {
    // Nothing beside the events is needed.
  }

  damage(offset: number): void {
    this.builder.warnings.count('damaged', 'places that are not JSON were passed over', {
      place: `byte ${offset}`,
    });
  }

  cutOff(offset: number): void {
    this.builder.warnings.count('truncated', 'end of the file is missing', {
      place: `byte ${offset}`,
    });
  }

  #process(event: JsonObject): void {
    const { args, pid } = event;
    if (event['name'] !== 'process_name' || typeof pid !== 'number' || !isObject(args)) return;
    const match = /^\/(?:device:)?gpu:(\d{1,4})\/(?:stream:(\w+)|memcpy) Compute$/i.exec(
      String(args['name']),
    );
    if (match === null) return;
    const stream = match[2] ?? 'memcpy';
    const isRepeat = !/^\d+$/.test(stream);
    this.#streams.set(pid, { device: Number(match[1]), stream, isRepeat });
    if (!isRepeat) this.#hasSingle = true;
  }

  #work(event: JsonObject): void {
    const { pid, ts, dur, name } = event;
    const stream = typeof pid === 'number' ? this.#streams.get(pid) : undefined;
    if (stream === undefined || (stream.isRepeat && this.#hasSingle)) return;
    const startUs = typeof ts === 'number' ? ts : Number.NaN;
    if (Number.isFinite(startUs) && this.#originUs === undefined) {
      this.#originUs = startUs;
      if (Number.isSafeInteger(startUs)) this.builder.originUnixNs = BigInt(startUs) * 1000n;
    }
    const text = typeof name === 'string' ? name : 'unknown';
    const kind = COPY_KINDS.get(text.toUpperCase()) ?? WORK_KIND.kernel;
    if (kind !== WORK_KIND.kernel) this.#countCopy();
    this.builder.addWork(
      this.builder.stream(stream.device, stream.stream),
      kind,
      this.builder.name(text),
      (startUs - (this.#originUs ?? 0)) * NS_PER_US,
      typeof dur === 'number' ? dur * NS_PER_US : Number.NaN,
      0,
      0,
      0,
    );
  }

  #countCopy(): void {
    this.builder.warnings.count(
      'copies-without-bytes',
      'copies come without their size in timelines of TensorFlow and count as 0 bytes',
    );
  }
}

type JsonObject = Readonly<Record<string, unknown>>;

function parsed(bytes: Uint8Array): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
