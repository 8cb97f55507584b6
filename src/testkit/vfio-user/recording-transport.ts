/** A transport whose connections tell of each whole message that goes over them, either way. */
import { HEADER_BYTES, messageSize, viewOf } from '#vfio-user/message';
import type { UnixFdSocket, UnixFdTransport } from '#vfio-user/unix-fd-socket';
import type { RecordedMessage } from './corpus.ts';

/** Of the server's end: what it receives is the client's. */
export function recordingTransport(
  transport: UnixFdTransport,
  record: (message: RecordedMessage) => void,
): UnixFdTransport {
  return {
    listen: (path, onConnection) =>
      transport.listen(path, (socket) => onConnection(recorded(socket, record))),
    connect: (path) => transport.connect(path),
  };
}

function recorded(socket: UnixFdSocket, record: (message: RecordedMessage) => void): UnixFdSocket {
  let bytes = Buffer.alloc(0);
  let count = 0;
  return {
    get fdsLost() {
      return socket.fdsLost;
    },
    receive(into, offset, wanted, fds) {
      const before = fds.length;
      const got = socket.receive(into, offset, wanted, fds);
      if (got <= 0) return got;
      bytes = Buffer.concat([bytes, into.subarray(offset, offset + got)]);
      count += fds.length - before;
      // The channel reads nothing of the next message before it has this one.
      if (bytes.length >= HEADER_BYTES && bytes.length === messageSize(viewOf(bytes), 0)) {
        record({ from: 'client', fds: count, bytes: Uint8Array.from(bytes) });
        bytes = Buffer.alloc(0);
        count = 0;
      }
      return got;
    },
    send(message, offset, fds) {
      const went = socket.send(message, offset, fds);
      if (offset === 0 && went > 0) {
        record({ from: 'server', fds: fds.length, bytes: Uint8Array.from(message) });
      }
      return went;
    },
    watch: (readable, writable, watcher) => socket.watch(readable, writable, watcher),
    close: () => socket.close(),
  };
}
