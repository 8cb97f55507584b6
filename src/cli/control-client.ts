/** Talks to the control socket of a running process; the protocol is in control-server.ts. */
import * as net from 'node:net';
import { DxpuError, type DxpuErrorCode } from '#base/errors';
import { knownProcesses, type KnownProcess } from './state-folder.ts';

export interface CallOptions {
  readonly onEvent?: (event: unknown) => void;
  /** Gives up waiting and closes the connection; the promise rejects with `cancelled`. */
  readonly signal?: AbortSignal;
}

/** Makes one request of one process. Its error comes back as the `DxpuError` it was there. */
export function callProcess(
  target: KnownProcess,
  method: string,
  params: unknown,
  options: CallOptions = {},
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(target.socket);
    let text = '';
    const finish = (): void => {
      options.signal?.removeEventListener('abort', onAbort);
      socket.destroy();
    };
    const onAbort = (): void => {
      finish();
      reject(new DxpuError('cancelled', 'given up'));
    };
    if (options.signal?.aborted === true) {
      onAbort();
      return;
    }
    options.signal?.addEventListener('abort', onAbort);
    socket.setEncoding('utf8');
    socket.on('connect', () => socket.write(`${JSON.stringify({ id: 1, method, params })}\n`));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      finish();
      const gone = error.code === 'ECONNREFUSED' || error.code === 'ENOENT';
      reject(
        new DxpuError(
          'unavailable',
          gone
            ? `${target.name} is not running (nobody answers at ${target.socket})`
            : `lost ${target.name}: ${error.message}`,
          { cause: error },
        ),
      );
    });
    socket.on('close', () => {
      finish();
      reject(new DxpuError('unavailable', `${target.name} ended before it answered`));
    });
    socket.on('data', (chunk: string) => {
      text += chunk;
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
        const message = JSON.parse(text.slice(0, end)) as {
          event?: unknown;
          result?: unknown;
          error?: { code: DxpuErrorCode; message: string; details: Record<string, unknown> };
        };
        text = text.slice(end + 1);
        if (message.error !== undefined) {
          const { code, message: why, details } = message.error;
          finish();
          reject(new DxpuError(code, why, { details }));
          return;
        }
        if ('result' in message) {
          finish();
          resolve(message.result);
          return;
        }
        options.onEvent?.(message.event);
      }
    });
  });
}

/** The processes of a state folder that answer. */
export async function runningProcesses(folder: string): Promise<KnownProcess[]> {
  const known = knownProcesses(folder);
  const alive = await Promise.all(
    known.map(
      (one) =>
        new Promise<boolean>((resolve) => {
          const probe = net.connect(one.socket, () => {
            probe.destroy();
            resolve(true);
          });
          probe.on('error', () => resolve(false));
        }),
    ),
  );
  return known.filter((_, index) => alive[index]);
}

/**
 * The one process meant: by its name (`host-h1`, or `h1` where that is clear), or the only one of
 * `kind`. Fails with `not_found` or `failed_precondition` saying which there are.
 */
export async function findProcess(
  folder: string,
  wanted: string | undefined,
  kind: 'host' | 'box' | undefined,
): Promise<KnownProcess> {
  const running = await runningProcesses(folder);
  if (running.length === 0) {
    throw new DxpuError(
      'unavailable',
      `no dxpu process is running in ${folder}: start one with dxpu start, ` +
        'or name its folder with --state',
    );
  }
  const fitting = running.filter(
    (one) =>
      (kind === undefined || one.kind === kind) &&
      (wanted === undefined || one.name === wanted || one.name === `${one.kind}-${wanted}`),
  );
  const [only] = fitting;
  const names = running.map((one) => one.name).join(', ');
  if (only === undefined) {
    const what = wanted ?? `a ${kind ?? 'process'}`;
    throw new DxpuError('not_found', `${what} is not running in ${folder}; running: ${names}`);
  }
  if (fitting.length > 1) {
    throw new DxpuError(
      'failed_precondition',
      `several fit (${fitting.map((one) => one.name).join(', ')}): name one with --process`,
    );
  }
  return only;
}
