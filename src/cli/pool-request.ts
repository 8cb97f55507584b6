/** Mutations of the pool: each under a request id, repeated until it is answered. */
import { randomUUID } from 'node:crypto';
import type { CallOptions } from '@connectrpc/connect';
import { DxpuError } from '#base/errors';
import { printNote } from './output.ts';
import { isRefusal } from './pool-demand.ts';
import { lossText, type PoolConnection, poolFailure } from './pool-connection.ts';
import { formatDuration } from './quantity.ts';

/** A manager that works answers within milliseconds; a connection to a machine that is off hangs. */
const ATTEMPT_MS = 10_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;

/** We cancel nothing: a cancelled call is one whose connection went. */
const UNANSWERED: ReadonlySet<string> = new Set(['unavailable', 'deadline_exceeded', 'cancelled']);

export const newRequestId = (): string => randomUUID();

export class Deadline {
  readonly #endMs: number;
  readonly timeoutNs: number;

  constructor(timeoutNs: number) {
    this.timeoutNs = timeoutNs;
    this.#endMs = performance.now() + timeoutNs / 1e6;
  }

  /** Never below 0. */
  get leftMs(): number {
    return Math.max(0, this.#endMs - performance.now());
  }

  get isOver(): boolean {
    return this.leftMs === 0;
  }
}

/** A manager that has just come back does not know yet who is there: its agents take a moment. */
const SETTLING_MS = 10_000;
/** Reasons of a refusal that may be gone when all agents are back. */
const PASSING_REASONS: ReadonlySet<string> = new Set([
  'unreachable',
  'host-unreachable',
  'no-path',
  'path-down',
]);

/**
 * Makes a call that carries a request id again and again until the manager has answered it: it acts
 * once. Fails with the answer's own error, or with `unavailable` when the time is up; what became of it
 * is then not known. When the manager was lost meanwhile, a refusal for what its agents will say soon is
 * no answer for some seconds.
 */
export async function untilAnswered<T>(
  pool: PoolConnection,
  requestId: string,
  deadline: Deadline,
  call: (options: CallOptions) => Promise<T>,
): Promise<T> {
  let pauseMs = FIRST_PAUSE_MS;
  let backAtMs: number | undefined;
  for (let attempt = 1; ; attempt++) {
    const timeoutMs = 1 + Math.floor(Math.min(ATTEMPT_MS, deadline.leftMs));
    try {
      return await call({ timeoutMs });
    } catch (thrown) {
      const error = DxpuError.from(thrown);
      if (attempt > 1 && isPassing(error)) {
        backAtMs ??= performance.now();
        const settledMs = performance.now() - backAtMs;
        if (settledMs > SETTLING_MS || deadline.leftMs <= pauseMs) throw error;
        await pause(pauseMs);
        continue;
      }
      if (!UNANSWERED.has(error.code)) throw error;
      if (deadline.leftMs <= pauseMs) throw unanswered(pool, requestId, deadline, error);
      if (attempt === 1) {
        printNote(
          `${lossText(error, pool)}; trying for ${formatDuration(deadline.leftMs * 1e6)} more`,
        );
      }
    }
    await pause(pauseMs);
    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
  }
}

function isPassing({ details }: DxpuError): boolean {
  const { refusal } = details;
  return isRefusal(refusal) && refusal.reasons.some(({ reason }) => PASSING_REASONS.has(reason));
}

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms));

function unanswered(
  pool: PoolConnection,
  requestId: string,
  deadline: Deadline,
  error: DxpuError,
): DxpuError {
  const { message } = poolFailure(new DxpuError('unavailable', error.message), pool);
  return new DxpuError(
    'unavailable',
    `${message}. Tried for ${formatDuration(deadline.timeoutNs)}; the request may have arrived all ` +
      `the same: repeat the command with --request-id ${requestId}, it acts once`,
    { details: { requestId, manager: pool.address }, cause: error },
  );
}
