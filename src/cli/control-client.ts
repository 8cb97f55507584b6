/** Talks to the control socket of a running process; the protocol is in control-server.ts. */
import * as net from 'node:net';
import { DxpuError, type DxpuErrorCode } from '#base/errors';
import { lookUntil } from './look-until.ts';
import {
  isRunning,
  knownProcesses,
  type KnownProcess,
  pidOf,
  type ProcessKind,
} from './state-folder.ts';

/** A process that works answers such a request at once, a busy one after a job's slice. */
const ANSWER_WITHIN_MS = 5000;
const LOOK_EACH_MS = 20;

export interface CallOptions {
  /**
   * Called for one event after the other. While the promise it may return is pending nothing more is
   * read; when it fails, so does the call.
   */
  readonly onEvent?: (event: unknown) => void | Promise<void>;
  /** Gives up waiting and closes the connection; the promise rejects with `cancelled`. */
  readonly signal?: AbortSignal;
  /** For requests that are answered at once: how long to wait for the whole of the answer. */
  readonly withinMs?: number;
}

/** One request that is answered at once: a process that is stopped or stuck makes it fail. */
export function askProcess(
  target: KnownProcess,
  method: string,
  params: unknown,
  withinMs = ANSWER_WITHIN_MS,
): Promise<unknown> {
  return callProcess(target, method, params, { withinMs });
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
    let waiting = false;
    let closed = false;
    const timer =
      options.withinMs === undefined
        ? undefined
        : setTimeout(() => {
            finish();
            reject(silent(target));
          }, options.withinMs);
    const finish = (): void => {
      clearTimeout(timer);
      text = '';
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
      reject(connectError(target, error));
    });
    const lost = (): void => {
      finish();
      reject(new DxpuError('unavailable', `${target.name} ended before it answered`));
    };
    socket.on('close', () => {
      closed = true;
      if (!waiting) lost();
    });
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (!waiting) take();
    });
    const waitFor = (pending: Promise<void>): void => {
      waiting = true;
      socket.pause();
      pending.then(
        () => {
          waiting = false;
          socket.resume();
          if (!take() && closed) lost();
        },
        (error: unknown) => {
          finish();
          reject(DxpuError.from(error));
        },
      );
    };
    /** Goes through what has come in. Returns whether somebody waits for it to go on, or it is over. */
    const take = (): boolean => {
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
          return true;
        }
        if ('result' in message) {
          finish();
          resolve(message.result);
          return true;
        }
        const pending = options.onEvent?.(message.event);
        if (pending === undefined) continue;
        waitFor(pending);
        return true;
      }
      return false;
    };
  });
}

function connectError(target: KnownProcess, error: NodeJS.ErrnoException): DxpuError {
  const { name, socket } = target;
  switch (error.code) {
    case 'ECONNREFUSED':
    case 'ENOENT':
      return new DxpuError('unavailable', `${name} is not running (nobody answers at ${socket})`, {
        cause: error,
      });
    case 'EACCES':
    case 'EPERM':
      return new DxpuError(
        'permission_denied',
        `${name}: this user may not open ${socket}: it belongs to the user who started the process`,
        { details: { process: name }, cause: error },
      );
    default:
      return new DxpuError('unavailable', `lost ${name}: ${error.message}`, { cause: error });
  }
}

function silent(target: KnownProcess): DxpuError {
  const pid = pidOf(target);
  const who = pid === undefined ? target.name : `${target.name} (pid ${pid})`;
  const wayOut = pid === undefined ? '' : `; kill -CONT ${pid} lets a stopped one go on`;
  return new DxpuError(
    'deadline_exceeded',
    `${who} does not answer: it is stopped, or stuck${wayOut}`,
    { details: { process: target.name, pid } },
  );
}

export interface Survey {
  readonly running: readonly KnownProcess[];
  /** Those that are there and cannot be asked, with why. */
  readonly unreachable: readonly { readonly target: KnownProcess; readonly error: DxpuError }[];
}

/** Asks all processes of a state folder at once. Those that have ended appear nowhere. */
export async function surveyProcesses(
  folder: string,
  withinMs = ANSWER_WITHIN_MS,
): Promise<Survey> {
  const running: KnownProcess[] = [];
  const unreachable: { target: KnownProcess; error: DxpuError }[] = [];
  const known = knownProcesses(folder);
  const answers = await Promise.all(
    known.map((target) =>
      askProcess(target, 'ping', {}, withinMs).then(
        () => undefined,
        (error: unknown) => DxpuError.from(error),
      ),
    ),
  );
  for (const [index, target] of known.entries()) {
    const error = answers[index];
    if (error === undefined) running.push(target);
    else if (error.code !== 'unavailable') unreachable.push({ target, error });
  }
  return { running, unreachable };
}

/** As `surveyProcesses`. Fails when there is none at all. */
export async function someProcesses(folder: string): Promise<Survey> {
  const survey = await surveyProcesses(folder);
  if (survey.running.length + survey.unreachable.length > 0) return survey;
  throw new DxpuError(
    'unavailable',
    `no dxpu process is running in ${folder}: start one with dxpu start, ` +
      'or name its folder with --state',
  );
}

/** One error of several, a line each; `undefined` for none. */
export function combined(errors: readonly DxpuError[]): DxpuError | undefined {
  const [first] = errors;
  if (first === undefined || errors.length === 1) return first;
  return new DxpuError(first.code, errors.map(({ message }) => message).join('\n'), {
    details: { ...first.details, problems: errors.map(({ message }) => message) },
    cause: first,
  });
}

/**
 * The one process meant: by its name (`host-h1`, or `h1` where that is clear), or the only one of
 * `kind`. Fails with `not_found` or `failed_precondition` saying which there are.
 */
export async function findProcess(
  folder: string,
  wanted: string | undefined,
  kind: ProcessKind | undefined,
): Promise<KnownProcess> {
  const { running, unreachable } = await someProcesses(folder);
  const isNamed = (one: KnownProcess): boolean =>
    wanted === undefined || one.name === wanted || one.name === `${one.kind}-${wanted}`;
  const fits = (one: KnownProcess): boolean =>
    (kind === undefined || one.kind === kind) && isNamed(one);
  const fitting = running.filter(fits);
  const [only] = fitting;
  if (only === undefined) {
    const silenced = unreachable.filter(({ target }) => fits(target));
    const inTheWay = combined(silenced.map(({ error }) => error));
    if (inTheWay !== undefined) throw inTheWay;
    const names = running.map((one) => one.name).join(', ') || 'none that answers';
    const other = wanted === undefined ? undefined : running.find(isNamed);
    if (other !== undefined) {
      throw new DxpuError(
        'invalid_argument',
        `${other.name} is a ${other.kind}; this takes a ${kind}; running: ${names}`,
      );
    }
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

/**
 * Waits until a process that was told to stop is gone, with its socket. Fails with
 * `deadline_exceeded` when it is not.
 */
export async function waitForEnd(
  target: KnownProcess,
  pid: number | undefined,
  withinMs: number,
): Promise<void> {
  const isGone = await lookUntil(withinMs, LOOK_EACH_MS, async () => {
    const answers = await askProcess(target, 'ping', {}, withinMs).then(
      () => true,
      (error: unknown) => DxpuError.from(error).code !== 'unavailable',
    );
    return answers || (pid !== undefined && isRunning(pid)) ? undefined : true;
  });
  if (isGone === true) return;
  const wayOut = pid === undefined ? '' : `: end it with kill -9 ${pid}`;
  throw new DxpuError(
    'deadline_exceeded',
    `${target.name} was told to stop and is still there${wayOut}`,
    { details: { process: target.name, pid } },
  );
}
