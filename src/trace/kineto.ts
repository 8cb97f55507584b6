/**
 * Traces of the PyTorch profiler (Kineto): Chrome trace JSON of all its generations, of NVIDIA and AMD.
 *
 * `JsonEvents` finds the events in the bytes, `KinetoEvent` their fields, and `KinetoReader` gives the
 * builder what is GPU work, host API calls, synchronisation records and marked iterations. All other
 * events are passed over unparsed.
 */
import { DxpuError } from '#base/errors';
import { lossAtEnd } from './bytes-of-file.ts';
import { type EventsEnd, JsonEvents } from './json-events.ts';
import { KinetoReader } from './kineto-reader.ts';
import type { Timeline } from './timeline.ts';

export interface ReadKinetoOptions {
  /** As the user named it, for messages. */
  readonly file: string;
  /** Called with the bytes of JSON taken so far. */
  readonly onBytes?: (bytes: number) => void;
}

const RECORD = 'Record it with torch.profiler.profile(activities=[CPU, CUDA])';

/**
 * Reads a trace as its bytes come; a chunk is not used after the next one is asked for. Where the source
 * ends with a `DxpuError` of code `data_loss`, what came before is used and a warning says so.
 *
 * Events that are not JSON are dropped, counted in the warning `damaged`; a file that ends too early is
 * used as far as it goes, with the warning `truncated`. Both name the first byte of the JSON text. What
 * lies behind the data of a gzip file is passed over, with the warning `trailing-bytes`.
 *
 * @throws DxpuError `invalid_argument` where this is no Kineto trace, `failed_precondition` where it has
 * no GPU work, `data_loss` where nothing usable is left of it. The message names the file, the byte and
 * what to do.
 */
export async function readKineto(
  source: AsyncIterable<Uint8Array>,
  options: ReadKinetoOptions,
): Promise<Timeline> {
  const reader = new KinetoReader();
  const events = new JsonEvents(reader);
  let loss: DxpuError | undefined;
  try {
    for await (const piece of source) {
      if (!events.push(piece)) throw notATrace(options.file);
      options.onBytes?.(events.bytes);
    }
  } catch (thrown) {
    loss = lossAtEnd(thrown, reader.warnings);
  }
  const end = events.end();
  if (loss !== undefined) reader.countTruncated(loss.message);
  else if (end.cutOffAt !== undefined) reader.countTruncated(`byte ${end.cutOffAt} of the JSON`);
  reader.settle();
  if (reader.work === 0) throw nothingUsable(options.file, end, loss, reader);
  const timeline = reader.finish();
  if (timeline.work.count > 0) return timeline;
  const why = timeline.warnings.map(({ message }) => message).join('; ');
  throw new DxpuError(
    'failed_precondition',
    `${options.file} has no GPU work that can be used among its ${reader.events} events: ${why}. ${RECORD}.`,
    { details: { file: options.file, offset: end.bytes, events: reader.events } },
  );
}

function notATrace(file: string): DxpuError {
  return new DxpuError(
    'invalid_argument',
    `${file} is not a Kineto trace: it does not begin with { or [. Give the JSON file that prof.export_chrome_trace() writes.`,
    { details: { file, offset: 0 } },
  );
}

function nothingUsable(
  file: string,
  end: EventsEnd,
  loss: DxpuError | undefined,
  reader: KinetoReader,
): DxpuError {
  if (loss !== undefined) {
    return new DxpuError(
      'data_loss',
      `${file} cannot be used: ${loss.message}, and no GPU work comes before. Copy or export the file again.`,
      { details: { file, ...loss.details }, cause: loss },
    );
  }
  if (end.bytes === 0) {
    return new DxpuError('invalid_argument', `${file} is empty. Export the trace again.`, {
      details: { file, offset: 0 },
    });
  }
  if (end.cutOffAt !== undefined) {
    return new DxpuError(
      'data_loss',
      `${file} ends too early, at byte ${end.cutOffAt} of the JSON, and no GPU work comes before. Copy or export the file again.`,
      { details: { file, offset: end.cutOffAt } },
    );
  }
  if (reader.firstDamage !== undefined) {
    return new DxpuError(
      'data_loss',
      `${file} is damaged from byte ${reader.firstDamage} of the JSON on, and no GPU work is left. Export the file again.`,
      { details: { file, offset: reader.firstDamage } },
    );
  }
  if (!end.hasEvents) {
    return new DxpuError(
      'invalid_argument',
      `${file} is JSON without "traceEvents" (looked for up to byte ${end.bytes}), so it is not a Kineto trace. Give the file that prof.export_chrome_trace() writes.`,
      { details: { file, offset: end.bytes } },
    );
  }
  const has = reader.calls > 0 ? `${reader.calls} calls of the GPU's API but ` : '';
  return new DxpuError(
    'failed_precondition',
    `${file} has ${has}no GPU work among its ${reader.events} events (up to byte ${end.bytes}), so there is nothing to predict. ${RECORD}.`,
    { details: { file, offset: end.bytes, events: reader.events } },
  );
}
