/** The beginning of a file, by which it is recognised. */
import { open, stat } from 'node:fs/promises';
import { DxpuError } from '#base/errors';
import { bytesOfFile } from './bytes-of-file.ts';
import { unreadable } from './unreadable.ts';

/** How much is looked at, unpacked. */
const HEAD_BYTES = 1 << 16;

export interface FileHead {
  /** The first bytes, unpacked where the file is gzip; at most 64 KiB. */
  readonly bytes: Uint8Array;
  /** The same, read as Latin-1, so that no byte is lost. */
  readonly text: string;
  readonly isGzip: boolean;
}

/** Throws a `DxpuError` for what cannot be opened, or is no file. */
export async function headOf(file: string): Promise<FileHead> {
  const isGzip = await isPacked(file);
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of bytesOfFile(file)) {
      pieces.push(Uint8Array.from(chunk.subarray(0, HEAD_BYTES - length)));
      length += chunk.length;
      if (length >= HEAD_BYTES) break;
    }
  } catch (error) {
    // Damaged gzip: what came out before the damage is enough to know the format.
    const isUsable = error instanceof DxpuError && error.code === 'data_loss' && length > 0;
    if (!isUsable) throw error;
  }
  const bytes = Buffer.concat(pieces);
  return { bytes, text: bytes.toString('latin1'), isGzip };
}

/** Also sees to it that the file can be opened without waiting for somebody to write into it. */
async function isPacked(file: string): Promise<boolean> {
  const status = await stat(file).catch((error: unknown) => {
    throw unreadable(file, error);
  });
  if (status.isDirectory()) return false;
  if (!status.isFile()) {
    throw new DxpuError(
      'invalid_argument',
      `${file}: this is a pipe or a device. Traces are read more than once: save it as a file first`,
      { details: { file } },
    );
  }
  const handle = await open(file).catch(() => undefined);
  try {
    const { buffer } = (await handle?.read(new Uint8Array(2), 0, 2, 0)) ?? {};
    return buffer?.[0] === 0x1f && buffer[1] === 0x8b;
  } finally {
    await handle?.close();
  }
}
