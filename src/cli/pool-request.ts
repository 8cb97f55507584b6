/** Mutations of the pool: each under a request id, repeated until it is answered. */
import { randomUUID } from 'node:crypto';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { CallOptions } from '@connectrpc/connect';
import { DxpuError } from '#base/errors';
import { printNote } from './output.ts';
import { Backoff } from './pool-backoff.ts';
import { isRefusal } from './pool-demand.ts';
import { lossText, type PoolConnection, poolFailure } from './pool-connection.ts';
import { formatDuration } from './quantity.ts';

/** A manager that works answers within milliseconds; a connection to a machine that is off hangs. */
const ATTEMPT_MS = 10_000;

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

/** A manager that has just come back does not know yet who is there: its agents have this long. */
const SETTLING_MS = 15_000;
/** Reasons of a refusal that may be gone when all agents are back; a round trip may be unmeasured yet. */
const PASSING_REASONS: ReadonlySet<string> = new Set([
  'unreachable',
  'host-unreachable',
  'no-path',
  'path-down',
  'round-trip',
]);

/**
 * For how long refusals of a manager that has just come back, or just begun, are no answers. One for all
 * calls of a command: the first may be the one that found it away.
 */
export class Settling {
  #isLost = false;
  #endMs: number | undefined;
  #isNoted = false;

  /** The manager did not answer. */
  lost(): void {
    this.#isLost = true;
    this.#endMs = undefined;
  }

  /** The manager answered, be it with a refusal. */
  answered(): void {
    if (this.#isLost) this.#endMs = performance.now() + SETTLING_MS;
    this.#isLost = false;
  }

  /** Whether a refusal for what its agents will say soon is to be asked for again. */
  async isOn(pool: PoolConnection): Promise<boolean> {
    this.#endMs ??= performance.now() + SETTLING_MS - (await ageMs(pool));
    return performance.now() < this.#endMs;
  }

  note(pool: PoolConnection): void {
    if (this.#isNoted) return;
    this.#isNoted = true;
    printNote(
      `the manager at ${pool.address} has just started or come back; waiting for its agents, for ` +
        `${formatDuration(SETTLING_MS * 1e6)} at most`,
    );
  }
}

/** Since the manager started, by two clocks. Infinity where it does not say, or they do not agree. */
async function ageMs({ pool }: PoolConnection): Promise<number> {
  try {
    const { started } = await pool.getStatus({}, { timeoutMs: ATTEMPT_MS });
    if (started === undefined) return Number.POSITIVE_INFINITY;
    const age = Date.now() - timestampMs(started);
    return age > -SETTLING_MS ? Math.max(0, age) : Number.POSITIVE_INFINITY;
  } catch {
    // It was there a moment ago, and what it said then is an answer.
    return Number.POSITIVE_INFINITY;
  }
}

/**
 * Makes a call that carries a request id again and again until the manager has answered it: it acts
 * once. Fails with the answer's own error, or with `unavailable` when the time is up; what became of it
 * is then not known. While `settling`, a refusal for what its agents will say soon is no answer.
 */
export async function untilAnswered<T>(
  pool: PoolConnection,
  requestId: string,
  deadline: Deadline,
  settling: Settling,
  call: (options: CallOptions) => Promise<T>,
): Promise<T> {
  const backoff = new Backoff();
  let isLossNoted = false;
  for (;;) {
    const timeoutMs = 1 + Math.floor(Math.min(ATTEMPT_MS, deadline.leftMs));
    try {
      const answer = await call({ timeoutMs });
      settling.answered();
      return answer;
    } catch (thrown) {
      const error = DxpuError.from(thrown);
      if (UNANSWERED.has(error.code)) {
        settling.lost();
        if (deadline.leftMs <= backoff.nextMs) throw unanswered(pool, requestId, deadline, error);
        if (!isLossNoted) {
          printNote(
            `${lossText(error, pool)}; trying for ${formatDuration(deadline.leftMs * 1e6)} more`,
          );
        }
        isLossNoted = true;
      } else {
        settling.answered();
        if (!isPassing(error) || !(await settling.isOn(pool))) throw error;
        if (deadline.leftMs <= backoff.nextMs) throw error;
        settling.note(pool);
      }
    }
    await backoff.pause();
  }
}

function isPassing({ details }: DxpuError): boolean {
  const { refusal } = details;
  return isRefusal(refusal) && refusal.reasons.some(({ reason }) => PASSING_REASONS.has(reason));
}

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
