/** The bytes of a file as they are needed, unpacked where the content is gzip. */
import { once } from 'node:events';
import { type FileHandle, open } from 'node:fs/promises';
import { createGunzip, constants as zlib, type Gunzip } from 'node:zlib';
import { DxpuError } from '#base/errors';
import { unreadable } from './unreadable.ts';
import type { WarningCounts } from './warning-counts.ts';

const CHUNK_BYTES = 1 << 20;
/** Compressed bytes handed on at once. */
const PACKED_BYTES = 1 << 15;

export interface BytesOfFileOptions {
  /** Called with the bytes read from the file so far, packed as they are. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
  /** Ends the reading with an error of code `cancelled`. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The content of `path`, in order. A chunk may be written over once the next one is asked for. Gzip is
 * known by its first two bytes, never by the name.
 *
 * A gzip file that is cut off or damaged yields all that can be unpacked and then throws a
 * `DxpuError` of code `data_loss`, with `details.offset`: how far into the packed file it got. So does
 * one with something else behind its gzip data: see `lossAtEnd`.
 *
 * @throws DxpuError where the file cannot be opened or read.
 */
export async function* bytesOfFile(
  path: string,
  options: BytesOfFileOptions = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  const raw = rawBytes(path, options);
  try {
    const first = await raw.next();
    if (first.done === true) return;
    if (first.value[0] === 0x1f && first.value[1] === 0x8b) {
      yield* unpack(path, options.signal, first.value, raw);
      return;
    }
    yield first.value;
    yield* raw;
  } finally {
    await raw.return();
  }
}

/** Reads ahead by one chunk, into two buffers in turn. */
async function* rawBytes(
  path: string,
  { onBytes, signal }: BytesOfFileOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const handle = await openFile(path);
  let ahead: Promise<{ bytesRead: number }> | undefined;
  try {
    let current = new Uint8Array(CHUNK_BYTES);
    let other = new Uint8Array(CHUNK_BYTES);
    let total = 0;
    ahead = readSome(handle, current);
    for (;;) {
      const { bytesRead } = await ahead;
      ahead = undefined;
      if (signal?.aborted === true) {
        throw new DxpuError('cancelled', `Reading ${path} was cancelled.`);
      }
      if (bytesRead === 0) return;
      total += bytesRead;
      ahead = readSome(handle, other);
      onBytes?.(total);
      yield current.subarray(0, bytesRead);
      [current, other] = [other, current];
    }
  } catch (thrown) {
    throw unreadable(path, thrown);
  } finally {
    await ahead?.catch(() => undefined);
    await handle.close();
  }
}

function readSome(handle: FileHandle, into: Uint8Array): Promise<{ bytesRead: number }> {
  const reading = handle.read(into, 0, into.length, null);
  // Its failure is seen when it is awaited, which may be later.
  reading.catch(() => undefined);
  return reading;
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    const handle = await open(path, 'r');
    if ((await handle.stat()).isDirectory()) {
      await handle.close();
      throw new DxpuError(
        'invalid_argument',
        `${path} is a folder. Name the trace files in it, such as ${path}/*.json.gz.`,
        { details: { file: path } },
      );
    }
    return handle;
  } catch (thrown) {
    throw unreadable(path, thrown);
  }
}

/**
 * What is lost of a file, by the error that ended its reading: what came before is of use. Undefined where
 * all of it was unpacked, and only what lies behind its gzip data is none, as gzip itself lets pass: then
 * that is counted as a warning. An error that is no loss is thrown on.
 */
export function lossAtEnd(thrown: unknown, warnings: WarningCounts): DxpuError | undefined {
  if (!(thrown instanceof DxpuError) || thrown.code !== 'data_loss') throw thrown;
  const { trailing, offset } = thrown.details;
  if (trailing !== true) return thrown;
  warnings.count('trailing-bytes', 'part behind the gzip data is no gzip and was passed over', {
    place: `byte ${String(offset)} of the packed file`,
  });
  return undefined;
}

async function* unpack(
  path: string,
  signal: AbortSignal | undefined,
  first: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const unpacking = new Unpacking();
  try {
    yield* unpacking.feed(first, PACKED_BYTES);
    if (unpacking.failure === undefined) {
      for await (const packed of rest) {
        yield* unpacking.feed(packed, PACKED_BYTES);
        if (unpacking.failure !== undefined) break;
      }
    }
    const isDamaged = unpacking.failure !== undefined;
    yield* unpacking.end();
    if (unpacking.failure === undefined) return;
    const ended = isDamaged ? yield* byBytes(path, signal, unpacking) : unpacking;
    throw lossOf(path, ended.failure ?? unpacking.failure, ended.offset);
  } finally {
    unpacking.destroy();
  }
}

/**
 * What a failed unpacking held back: zlib drops all that it has of a piece with a fault in it. So the
 * file is unpacked again, from its beginning, as its state cannot be kept, and the last piece by bytes.
 */
async function* byBytes(
  path: string,
  signal: AbortSignal | undefined,
  failed: Unpacking,
): AsyncGenerator<Uint8Array, Unpacking, undefined> {
  const again = new Unpacking(failed.count);
  const raw = rawBytes(path, { signal });
  try {
    for await (const packed of raw) {
      const known = Math.max(0, failed.offset - again.offset);
      yield* again.feed(packed.subarray(0, known), PACKED_BYTES);
      yield* again.feed(packed.subarray(known), 1);
      if (again.failure !== undefined) break;
    }
    return again;
  } finally {
    again.destroy();
  }
}

/** One run of zlib over a packed file. */
class Unpacking {
  readonly #gunzip: Gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  readonly #unpacked: Uint8Array[] = [];
  #skipped: number;
  /** Packed bytes taken without a fault. */
  offset = 0;
  /** Bytes unpacked. */
  count = 0;
  failure: Error | undefined;

  /** The first `skipped` bytes unpacked are not given out. */
  constructor(skipped = 0) {
    this.#skipped = skipped;
    this.#gunzip.on('data', (chunk: Uint8Array) => this.#unpacked.push(chunk));
    this.#gunzip.on('error', (error) => {
      this.failure = error;
    });
  }

  /** Hands on `step` bytes at once, until one such piece has a fault. */
  async *feed(packed: Uint8Array, step: number): AsyncGenerator<Uint8Array, void, undefined> {
    for (let from = 0; from < packed.length && this.failure === undefined; from += step) {
      const piece = packed.subarray(from, from + step);
      await written(this.#gunzip, piece);
      if (this.failure === undefined) this.offset += piece.length;
      if (this.#unpacked.length > 0) yield* this.#take();
    }
  }

  /** What is left; a file that is cut off fails here. */
  async *end(): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.failure === undefined) {
      // All there is comes out first: ending a stream that was cut off would lose it.
      await new Promise<void>((resolve) => {
        this.#gunzip.once('close', resolve);
        this.#gunzip.flush(zlib.Z_SYNC_FLUSH, resolve);
      });
      yield* this.#take();
    }
    if (this.failure === undefined) {
      this.#gunzip.end();
      if (!this.#gunzip.readableEnded) {
        const ends = [once(this.#gunzip, 'end'), once(this.#gunzip, 'close')];
        await Promise.race(ends).catch(() => undefined);
      }
      yield* this.#take();
    }
  }

  destroy(): void {
    this.#gunzip.destroy();
  }

  *#take(): Generator<Uint8Array> {
    for (const chunk of this.#unpacked.splice(0)) {
      this.count += chunk.length;
      const skipped = Math.min(this.#skipped, chunk.length);
      this.#skipped -= skipped;
      if (skipped < chunk.length) yield chunk.subarray(skipped);
    }
  }
}

function lossOf(path: string, failure: Error, offset: number): DxpuError {
  const { code } = failure as NodeJS.ErrnoException;
  // That the file begins as gzip is known: it is a later part that does not.
  if (failure.message === 'incorrect header check') {
    // The header is judged by two bytes, of which one was taken.
    const from = offset - 1;
    return new DxpuError(
      'data_loss',
      `behind the gzip data of ${path} is something else, from byte ${from} of the packed file on`,
      { details: { file: path, offset: from, trailing: true }, cause: failure },
    );
  }
  const what = code === 'Z_BUF_ERROR' ? 'ends too early, after' : 'is damaged after';
  return new DxpuError(
    'data_loss',
    `the gzip data of ${path} ${what} byte ${offset} of the packed file`,
    { details: { file: path, offset }, cause: failure },
  );
}

/** Resolves when the piece is unpacked, or cannot be. */
function written(gunzip: Gunzip, piece: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    gunzip.once('close', resolve);
    gunzip.write(piece, () => {
      gunzip.removeListener('close', resolve);
      resolve();
    });
  });
}
