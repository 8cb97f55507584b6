/** The way to a vfio-user device over a unix socket. Apart from the rest: it alone loads koffi. */
import type { Clock } from '#base/clock';
import { koffiTransport } from '#vfio-user/koffi-socket';
import { MessageChannel } from '#vfio-user/message-channel';
import { systemFds } from '#vfio-user/system-fds';
import { MAX_VERSION_BYTES } from '#vfio-user/version';
import type { RemoteSocket } from './remote-device.ts';

/** What is kept for a device that takes less than it is sent: more, and it is given up. */
const CLOSE_ABOVE_BYTES = 64 * 2 ** 20;
/** A device has no descriptors to give, but for regions that could be mapped: they are closed unused. */
const MAX_FDS = 8;

export function remoteSocket(path: string, clock: Clock): RemoteSocket {
  return {
    fds: systemFds,
    open: () =>
      new MessageChannel(koffiTransport.connect(path), clock, {
        fds: systemFds,
        limitBytes: MAX_VERSION_BYTES,
        maxFds: MAX_FDS,
        // Neither side may wait for the other to read.
        holdAboveBytes: Infinity,
        closeAboveBytes: CLOSE_ABOVE_BYTES,
      }),
  };
}
