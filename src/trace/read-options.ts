/** What every reader takes, and how a long read lets others run. */
import { stat } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { DxpuError } from '#base/errors';
import { bytesOfFile } from './bytes-of-file.ts';
import { unreadable } from './unreadable.ts';

export interface ReadOptions {
  /** Called now and then with the share of the file that is read, 0 to 1, never falling. */
  readonly onProgress?: (share: number) => void;
  /** Ends the read with a `DxpuError` of code `cancelled`. */
  readonly signal?: AbortSignal;
}

/** Throws once the caller has given up. */
export function checkGoingOn(file: string, { signal }: ReadOptions): void {
  if (signal?.aborted === true) {
    throw new DxpuError('cancelled', `Reading ${file} was cancelled.`, {
      details: { file },
      cause: signal.reason,
    });
  }
}

/** For loops that never wait for anything: reports, lets timers and signals have their turn, checks. */
export async function breathe(file: string, share: number, options: ReadOptions): Promise<void> {
  options.onProgress?.(Math.min(1, share));
  await turn();
  checkGoingOn(file, options);
}

/** `bytesOfFile` with progress as a share of the file. */
export async function* fileChunks(
  file: string,
  { onProgress, signal }: ReadOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const size = onProgress === undefined ? 1 : await sizeOf(file);
  yield* bytesOfFile(file, {
    signal,
    onBytes: onProgress && ((bytes) => onProgress(Math.min(1, bytes / size))),
  });
}

/** At least 1. */
async function sizeOf(file: string): Promise<number> {
  try {
    return Math.max(1, (await stat(file)).size);
  } catch (error) {
    throw unreadable(file, error);
  }
}
