/** What is done with a vfio-user device before anybody uses it: reset, read, checked, lent memory to. */
import type { Nanos } from '#base/units';
import type { ClientSession } from '#vfio-user/client-session';
import {
  type ClientSettings,
  DEFAULT_CLIENT_OPTIONS,
  type DeviceDescription,
} from '#vfio-user/client-options';
import { Command } from '#vfio-user/message';
import { Errno, Refusal } from '#vfio-user/refusal';
import { REGION_CONFIG } from '#vfio-user/region-info';
import { configBytesOf, remoteFunction, type RemoteFunction } from './remote-function.ts';

/** One TLP has at most so many bytes; an access of a region must be able to carry them. */
const LARGEST_TLP_DATA = 4096;

/**
 * What is lent, from address 0 on: all that a host of today has. As messages, so that nothing is out of the
 * host's sight; libvfio-user takes no larger region (MAX_DMA_SIZE in its private.h, 8 TiB).
 */
export const LENT_BYTES = 2 ** 43;

export const REMOTE_SETTINGS: ClientSettings = {
  ...DEFAULT_CLIENT_OPTIONS,
  /** An answer that takes longer is none: a host waits for 4 s. */
  requestTimeoutMs: 3000,
  /** What the device may ask for at once; `RemoteDma` bounds what is kept of it in memory here. */
  maxPendingDma: 64,
  maxDataXferBytes: 256 * 1024,
};

/**
 * Whether a message that was refused shows that the device cannot be trusted: it asks for memory that nobody has
 * lent, or in words that mean nothing.
 */
export function isUntrue(command: number, refused: Refusal): boolean {
  const isDma = command === Command.DMA_READ || command === Command.DMA_WRITE;
  return isDma && refused.errno !== Errno.EBUSY;
}

/** Calls `done` with the function, or with what is wrong with it. Once, maybe within the call. */
export function openFunction(
  now: Nanos,
  session: ClientSession,
  description: DeviceDescription,
  done: (now: Nanos, found: RemoteFunction | string) => void,
): void {
  const bytes = configBytesOf(description);
  if (typeof bytes === 'string') {
    done(now, bytes);
    return;
  }
  if (session.maxAccessBytes < LARGEST_TLP_DATA) {
    const most = session.maxAccessBytes;
    done(now, `it takes ${most} bytes in an access; a request has up to ${LARGEST_TLP_DATA}`);
    return;
  }
  session.reset(now, (reset, refused) => {
    if (refused !== undefined) {
      done(reset, `it was not reset: ${refused.reason}`);
      return;
    }
    session.readRegion(reset, REGION_CONFIG, 0, bytes, (read, config) => {
      if (config instanceof Refusal) {
        done(read, `its configuration space cannot be read: ${config.reason}`);
        return;
      }
      const fn = remoteFunction(description, config.slice());
      if (typeof fn === 'string') done(read, fn);
      else lend(read, session, (then, reason) => done(then, reason ?? fn));
    });
  });
}

function lend(
  now: Nanos,
  session: ClientSession,
  done: (now: Nanos, reason: string | undefined) => void,
): void {
  const all = { address: 0, sizeBytes: LENT_BYTES, fileOffset: 0, readable: true, writable: true };
  session.mapMemory(now, all, undefined, (then, refused) =>
    done(then, refused === undefined ? undefined : `it takes no memory: ${refused.reason}`),
  );
}
