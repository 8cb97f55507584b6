/**
 * Unix stream sockets that carry file descriptors, which Node's own do not. Behind this interface koffi
 * can be replaced by an addon (`koffi-socket.ts` is the only implementation so far).
 */

export const WOULD_BLOCK = -1;

/** Why a connection has ended, whether or not the peer had read all that was sent to it. */
export const PEER_CLOSED = 'the peer closed the connection';

export interface SocketWatcher {
  readable(): void;
  writable(): void;
  /** The connection has failed; what came before can still be received. Nothing else is called. */
  failed(): void;
}

/** One connection. It never blocks. */
export interface UnixFdSocket {
  /**
   * Reads up to `count` bytes into `into` at `offset` and appends the descriptors that came with them to
   * `fds`; they are the caller's then. Returns the bytes read, 0 at the end of the stream, or
   * `WOULD_BLOCK`. Throws `DxpuError` when the connection has failed.
   */
  receive(into: Uint8Array, offset: number, count: number, fds: number[]): number;
  /** Whether the last `receive` lost descriptors, because this process has no room for more. */
  readonly fdsLost: boolean;
  /**
   * Sends `bytes` from `offset` on, and `fds` (at most `MAX_FDS`, still the caller's) with the first of
   * them, in one system call. Returns how many bytes went, which is fewer than all when the peer is slow,
   * or `WOULD_BLOCK` if nothing went. Throws `DxpuError` when the connection has failed.
   */
  send(bytes: Uint8Array, offset: number, fds: readonly number[]): number;
  /** Calls `watcher` when there is something to read or room to write. May be called again. */
  watch(readable: boolean, writable: boolean, watcher: SocketWatcher): void;
  close(): void;
}

/** What Linux takes in one message (SCM_MAX_FD). */
export const MAX_FDS = 253;

export interface UnixFdListener {
  /** Also removes the socket file, if it is still this listener's. */
  close(): void;
}

export interface UnixFdTransport {
  /**
   * Listens at `path`, with file mode 0600. A socket file that nobody listens at any more is replaced.
   * Throws `DxpuError`: `already_exists` if somebody does or it is no socket, `invalid_argument` if the
   * path is longer than 107 bytes.
   */
  listen(path: string, onConnection: (socket: UnixFdSocket) => void): UnixFdListener;
  /** Throws `DxpuError`, `not_found` or `unavailable`, when nobody listens there. */
  connect(path: string): UnixFdSocket;
}
