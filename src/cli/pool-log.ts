/** The pool's log as one sequence, over as many streams as it takes. */
import { DxpuError } from '#base/errors';
import type { WatchResponse } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { Backoff } from './pool-backoff.ts';
import type { PoolConnection } from './pool-connection.ts';

export interface LogOptions {
  /** Entries behind this position. */
  readonly after: number;
  /** Goes on with what comes, for ever. */
  readonly follow: boolean;
  /** Only of this binding. */
  readonly binding?: string;
  readonly signal?: AbortSignal;
  /** The stream was lost; called once for each time it was. */
  readonly onLost?: (error: DxpuError) => void;
  /** A lost one goes on. */
  readonly onResumed?: () => void;
  /** A first stream that does not come to be is a loss too; otherwise it is an error. */
  readonly mayBeAway?: boolean;
  /** After a loss: for how long to try again. Infinity by default. */
  readonly resumeWithinMs?: number;
}

/**
 * What Watch sends, each entry once and in order, whatever becomes of the manager meanwhile. Ends with
 * `cancelled` when `signal` aborts.
 */
export async function* followLog(
  pool: PoolConnection,
  options: LogOptions,
): AsyncGenerator<WatchResponse> {
  let after = BigInt(options.after);
  let lost: { readonly error: DxpuError; readonly atMs: number } | undefined;
  let isBegun = false;
  const backoff = new Backoff();
  for (;;) {
    try {
      const stream = pool.pool.watch(
        { after, follow: options.follow, binding: options.binding ?? '' },
        { ...(options.signal === undefined ? {} : { signal: options.signal }), timeoutMs: 0 },
      );
      for await (const message of stream) {
        isBegun = true;
        backoff.reset();
        if (lost !== undefined) options.onResumed?.();
        lost = undefined;
        after = message.position > after ? message.position : after;
        yield message;
      }
      if (!options.follow) return;
      // A manager that ends a stream it should keep is one that stops.
      throw new DxpuError('unavailable', 'the manager has ended the stream');
    } catch (thrown) {
      const error = DxpuError.from(thrown);
      if (error.code === 'out_of_range' && isBegun) throw rewound(after, error);
      if (!isLoss(error) || options.signal?.aborted === true) throw error;
      if (!isBegun && options.mayBeAway !== true) throw error;
      if (lost === undefined) {
        lost = { error, atMs: performance.now() };
        options.onLost?.(error);
      }
      const waitedMs = performance.now() - lost.atMs;
      if (waitedMs > (options.resumeWithinMs ?? Number.POSITIVE_INFINITY)) throw error;
    }
    await backoff.pause();
  }
}

/** A killed manager cancels the streams it had; we cancel by `signal` alone. */
const isLoss = ({ code }: DxpuError): boolean => code === 'unavailable' || code === 'cancelled';

function rewound(after: bigint, cause: DxpuError): DxpuError {
  return new DxpuError(
    'data_loss',
    `the manager's log no longer reaches position ${after}: its store is an older one; ` +
      'look at dxpu get bindings, and begin anew with dxpu events',
    { details: { after: Number(after) }, cause },
  );
}
