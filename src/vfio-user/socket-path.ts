/** Where a UNIX socket is: its address, and what is wrong with it, for people. */
import { DxpuError } from '#base/errors';
import { AF_UNIX, errnoName, systemError } from './libc.ts';

export const SOCKADDR_BYTES = 110;
const MAX_PATH_BYTES = 107;

const LISTEN_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such folder',
  ENOTDIR: 'a part of its path is no folder',
  EACCES: 'this user may not make a socket there',
  EROFS: 'its file system is read-only',
};

const CONNECT_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such socket; start what serves it',
  ENOTDIR: 'a part of its path is no folder',
  ECONNREFUSED: 'nobody listens there; start what serves it',
  EACCES: 'this user may not connect to it; let the same user serve it',
  EAGAIN: 'too many wait there already; does its process go on?',
};

/** Why nothing can be served at `path`: what the errno means there, and the errno itself. */
export function listenError(path: string, errno: number): DxpuError {
  return pathError(`listen at ${path}`, LISTEN_FAILURES, errno);
}

/** The same, where nobody can be reached at it. */
export function connectError(path: string, errno: number): DxpuError {
  return pathError(`connect to ${path}`, CONNECT_FAILURES, errno);
}

function pathError(
  what: string,
  meanings: Readonly<Record<string, string>>,
  errno: number,
): DxpuError {
  const error = systemError(what, errno);
  const meaning = meanings[errnoName(errno)];
  if (meaning === undefined) return error;
  const message = `${what}: ${meaning} (${errnoName(errno)})`;
  return new DxpuError(error.code, message, { details: error.details });
}

/** `struct sockaddr_un`. */
export function sockaddr(path: string): ArrayBuffer {
  const name = new TextEncoder().encode(path);
  if (name.length === 0 || name.length > MAX_PATH_BYTES || name.includes(0)) {
    throw new DxpuError(
      'invalid_argument',
      `a socket path has 1 to ${MAX_PATH_BYTES} bytes, ${path} has ${name.length}: name another`,
    );
  }
  const buffer = new ArrayBuffer(SOCKADDR_BYTES);
  new DataView(buffer).setUint16(0, AF_UNIX, true);
  new Uint8Array(buffer).set(name, 2);
  return buffer;
}
