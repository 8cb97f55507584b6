/** The bytes of a file as they are needed, unpacked where the content is gzip. */
import { once } from 'node:events';
import { type FileHandle, open } from 'node:fs/promises';
import { createGunzip, constants as zlib, type Gunzip } from 'node:zlib';
import { DxpuError } from '#base/errors';

const CHUNK_BYTES = 1 << 20;
/** Compressed bytes handed on at once: what a fault in them can take along. */
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
 * `DxpuError` of code `data_loss`, with `details.offset`: how far into the packed file it got.
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
      yield* unpack(path, first.value, raw);
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

function unreadable(path: string, thrown: unknown): DxpuError {
  if (thrown instanceof DxpuError) return thrown;
  const error = DxpuError.from(thrown);
  const why =
    error.code === 'not_found'
      ? 'there is no such file'
      : error.code === 'permission_denied'
        ? 'reading it is not permitted'
        : error.message;
  return new DxpuError(error.code, `Cannot read ${path}: ${why}.`, {
    details: { file: path },
    cause: thrown,
  });
}

async function* unpack(
  path: string,
  first: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  const unpacked: Uint8Array[] = [];
  let failure: Error | undefined;
  gunzip.on('data', (chunk: Uint8Array) => unpacked.push(chunk));
  gunzip.on('error', (error) => {
    failure = error;
  });
  let offset = 0;
  async function* feed(packed: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
    for (let from = 0; from < packed.length && failure === undefined; from += PACKED_BYTES) {
      const piece = packed.subarray(from, from + PACKED_BYTES);
      await written(gunzip, piece);
      if (failure === undefined) offset += piece.length;
      yield* unpacked.splice(0);
    }
  }
  yield* feed(first);
  for await (const packed of rest) {
    yield* feed(packed);
    if (failure !== undefined) break;
  }
  if (failure === undefined) {
    // All there is comes out first: ending a stream that was cut off would lose it.
    await new Promise<void>((resolve) => {
      gunzip.once('close', resolve);
      gunzip.flush(zlib.Z_SYNC_FLUSH, resolve);
    });
    yield* unpacked.splice(0);
  }
  if (failure === undefined) {
    gunzip.end();
    if (!gunzip.readableEnded) {
      await Promise.race([once(gunzip, 'end'), once(gunzip, 'close')]).catch(() => undefined);
    }
    yield* unpacked.splice(0);
  }
  gunzip.destroy();
  if (failure !== undefined) {
    const isCut = (failure as NodeJS.ErrnoException).code === 'Z_BUF_ERROR';
    throw new DxpuError(
      'data_loss',
      `the gzip data of ${path} ${isCut ? 'ends too early, after' : 'is damaged after'} byte ${offset} of the packed file`,
      { details: { file: path, offset }, cause: failure },
    );
  }
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
