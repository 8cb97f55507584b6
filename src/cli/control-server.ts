/**
 * The control socket of a process: JSON lines over a UNIX socket that only its user may open.
 *
 *   → {"id": 1, "method": "status", "params": {}}
 *   ← {"id": 1, "event": …}      any number, for methods that stream
 *   ← {"id": 1, "result": …}     or {"id": 1, "error": {"code", "message", "details"}}
 *
 * Requests of one connection run side by side. Closing the connection aborts them. Every server
 * answers `ping`, with its process number.
 */
import { chmodSync, lstatSync, rmSync, writeFileSync } from 'node:fs';
import * as net from 'node:net';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { errnoReason } from '#base/make-folder';
import { errorObject } from './output.ts';
import { pidFile } from './state-folder.ts';

/** What one connection may have in an unfinished line. */
const MAX_REQUEST_BYTES = 1 << 20;
/** A stream whose reader is this far behind loses events. */
const MAX_WAITING_BYTES = 16 << 20;

export interface ControlCall {
  /** Sends an event. Returns false when the reader is too slow and the event was dropped. */
  emit(event: unknown): boolean;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
}

/** `params` is whatever the caller sent: check it. */
export type ControlHandler = (params: unknown, call: ControlCall) => unknown;

export interface ControlServer {
  /** Ends all connections and removes the socket. */
  close(): void;
}

/**
 * Listens at `socketPath`. A socket left behind by a process that is gone is replaced; one that answers
 * fails with `already_exists`.
 */
export async function startControlServer(
  socketPath: string,
  handlers: Readonly<Record<string, ControlHandler>>,
): Promise<ControlServer> {
  await removeStale(socketPath);
  const connections = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
    serve(socket, handlers);
  });
  // The folder is the user's alone; the socket is made so before anybody can open it.
  const mask = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(socketPath, () => {
        server.removeListener('error', reject);
        resolve();
      });
    });
  } catch (error) {
    const inUse = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
    if (inUse) throw alreadyRunning(socketPath);
    throw new DxpuError(
      DxpuError.from(error).code,
      `cannot make the control socket ${socketPath}: ${errnoReason(error)}; ` +
        'choose another folder with --state',
      { details: { folder: path.dirname(socketPath) }, cause: error },
    );
  } finally {
    process.umask(mask);
  }
  chmodSync(socketPath, 0o600);
  // Only for people and their kill: a full disk is no reason not to run.
  try {
    writeFileSync(pidFile(socketPath), `${process.pid}\n`, { mode: 0o600 });
  } catch {
    // Then a mute process is named without its number.
  }
  return {
    close: () => {
      server.close();
      for (const socket of connections) socket.end();
      rmSync(socketPath, { force: true });
      rmSync(pidFile(socketPath), { force: true });
    },
  };
}

async function removeStale(socketPath: string): Promise<void> {
  const stat = lstatSync(socketPath, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isSocket()) {
    throw new DxpuError(
      'already_exists',
      `${socketPath} is there and is not a socket: move it away`,
    );
  }
  const failure = await connectFailure(socketPath);
  if (failure === '') throw alreadyRunning(socketPath);
  if (failure === 'EACCES' || failure === 'EPERM') {
    throw new DxpuError(
      'permission_denied',
      `${socketPath} is another user's: choose another folder with --state`,
    );
  }
  // Another process may have put its own there meanwhile.
  const now = lstatSync(socketPath, { throwIfNoEntry: false });
  if (now?.ino === stat.ino) rmSync(socketPath, { force: true });
}

/** Why nobody can be reached at `socketPath`, as an errno; '' when somebody listens there. */
export function connectFailure(socketPath: string): Promise<string> {
  return new Promise((resolve) => {
    const probe = net.connect(socketPath, () => {
      probe.destroy();
      resolve('');
    });
    probe.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'unknown'));
  });
}

function alreadyRunning(socketPath: string): DxpuError {
  return new DxpuError(
    'already_exists',
    `another process with this name is running (it answers at ${socketPath}): stop it first with ` +
      'dxpu stop, or choose another folder with --state',
  );
}

function serve(socket: net.Socket, handlers: Readonly<Record<string, ControlHandler>>): void {
  const gone = new AbortController();
  let text = '';
  socket.setEncoding('utf8');
  socket.on('error', () => {}); // Followed by 'close'.
  socket.on('close', () => gone.abort());
  socket.on('data', (chunk: string) => {
    text += chunk;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      if (line.trim() !== '') void answer(socket, line, handlers, gone.signal);
    }
    if (text.length > MAX_REQUEST_BYTES) socket.destroy();
  });
}

async function answer(
  socket: net.Socket,
  line: string,
  handlers: Readonly<Record<string, ControlHandler>>,
  signal: AbortSignal,
): Promise<void> {
  const send = (message: object): void => {
    if (!socket.destroyed) socket.write(`${JSON.stringify(message)}\n`);
  };
  let id: unknown = null;
  try {
    const request = parseRequest(line);
    id = request.id;
    const known: Readonly<Record<string, ControlHandler>> = { ping, ...handlers };
    const handler = Object.hasOwn(known, request.method) ? known[request.method] : undefined;
    if (handler === undefined) {
      throw new DxpuError(
        'unimplemented',
        `there is no method ${request.method} here; known: ${Object.keys(handlers).join(', ')}`,
      );
    }
    const result = await handler(request.params, {
      signal,
      emit: (event) => {
        if (socket.destroyed || socket.writableLength > MAX_WAITING_BYTES) return false;
        send({ id, event });
        return true;
      },
    });
    send({ id, result: result ?? {} });
  } catch (error) {
    send({ id, error: errorObject(error) });
  }
}

const ping: ControlHandler = () => ({ pid: process.pid });

function parseRequest(line: string): { id: unknown; method: string; params: unknown } {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    throw new DxpuError('invalid_argument', 'a request is one line of JSON');
  }
  if (typeof parsed !== 'object' || parsed === null) {
    throw new DxpuError('invalid_argument', 'a request is an object with id, method and params');
  }
  const { id, method, params } = parsed as Record<string, unknown>;
  if (typeof method !== 'string') {
    throw new DxpuError('invalid_argument', 'a request has a method, a string');
  }
  return { id, method, params: params ?? {} };
}
