/** `dxpu events`: the pool's log, from any position on. */
import { setTimeout as pause } from 'node:timers/promises';
import { DxpuError } from '#base/errors';
import { ListPrinter } from '../list-printer.ts';
import { printNote, UsageError } from '../output.ts';
import { LOG } from '../pool-columns.ts';
import {
  lossText,
  type PoolConnection,
  poolFailure,
  type PoolOptions,
  withPool,
} from '../pool-connection.ts';
import { followLog } from '../pool-log.ts';

export interface EventsOptions extends PoolOptions {
  readonly follow?: boolean;
  readonly after?: number;
  readonly last?: number;
  readonly binding?: string;
}

/** A log that is read to its end waits this long for a manager that went away meanwhile. */
const RESUME_WITHIN_MS = 30_000;
const ASK_AGAIN_MS = 500;

export async function events(options: EventsOptions): Promise<void> {
  if (options.after !== undefined && options.last !== undefined) {
    throw new UsageError('--after and --last are two ways to say where to begin: give one');
  }
  return withPool(options, (pool) => {
    const stop = new AbortController();
    process.once('SIGINT', () => stop.abort());
    return eventsOf(pool, options, stop.signal);
  });
}

/** With `follow` until `signal` aborts; that is no error. */
export async function eventsOf(
  pool: PoolConnection,
  options: EventsOptions,
  signal: AbortSignal,
): Promise<void> {
  const printer = new ListPrinter(options.output, LOG);
  const follow = options.follow === true;
  try {
    const after = options.after ?? (await positionBefore(pool, options, signal));
    const log = followLog(pool, {
      after,
      follow,
      mayBeAway: follow,
      signal,
      ...(options.binding === undefined ? {} : { binding: options.binding }),
      ...(follow ? {} : { resumeWithinMs: RESUME_WITHIN_MS }),
      onLost: (error) => printNote(`${lossText(error, pool)}; resuming when it is back`),
      onResumed: () => printNote('the manager is back; nothing was missed'),
    });
    for await (const { entry } of log) {
      if (entry !== undefined) await printer.add([entry]);
    }
  } catch (error) {
    if (!signal.aborted) throw poolFailure(error, pool);
  }
  if (!follow) await printer.end();
}

/** With `follow` asks until the manager answers. */
async function positionBefore(
  pool: PoolConnection,
  { last, follow }: EventsOptions,
  signal: AbortSignal,
): Promise<number> {
  if (last === undefined) return 0;
  for (let isNoted = false; ; isNoted = true) {
    try {
      const { position } = await pool.pool.getStatus({}, { signal });
      if (isNoted) printNote('the manager is back');
      return Math.max(0, Number(position) - last);
    } catch (thrown) {
      const error = DxpuError.from(thrown);
      if (follow !== true || signal.aborted || error.code !== 'unavailable') throw error;
      if (!isNoted) printNote(`${lossText(error, pool)}; waiting for it`);
    }
    await pause(ASK_AGAIN_MS);
  }
}
