/** Waits until a pool that was started is whole. */
import { DxpuError } from '#base/errors';
import type { GetStatusResponse } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { lookUntil } from './look-until.ts';
import type { PoolConnection } from './pool-connection.ts';
import type { PoolSizes } from './pool-files.ts';
import { all, pathPages } from './pool-lists.ts';
import { formatDuration } from './quantity.ts';

const LOOK_EACH_MS = 25;

/**
 * Returns once every agent is connected, every GPU node reported, and each host has measured its path to
 * each box. Fails with `deadline_exceeded` and what is missing.
 */
export async function poolIsWhole(
  pool: PoolConnection,
  sizes: PoolSizes,
  withinMs: number,
): Promise<GetStatusResponse> {
  let last = '';
  const whole = await lookUntil(withinMs, LOOK_EACH_MS, async () => {
    try {
      const status = await pool.pool.getStatus({}, { timeoutMs: 5000 });
      last = await missing(pool, sizes, status);
      return last === '' ? status : undefined;
    } catch (thrown) {
      const error = DxpuError.from(thrown);
      if (error.code !== 'unavailable' && error.code !== 'deadline_exceeded') throw error;
      last = error.message;
      return undefined;
    }
  });
  if (whole !== undefined) return whole;
  throw new DxpuError(
    'deadline_exceeded',
    `the pool is not whole after ${formatDuration(withinMs * 1e6)}: ${last}; dxpu status shows ` +
      'what runs, and where each process logs',
    { details: { missing: last } },
  );
}

/** Returns whether `host`, just started, has measured its path to each box that reports, in time. */
export async function hostHasPaths(
  pool: PoolConnection,
  host: string,
  withinMs: number,
): Promise<boolean> {
  const reached = async (): Promise<true | undefined> => {
    const { boxesConnected } = await pool.pool.getStatus({}, { timeoutMs: 5000 });
    const paths = await all(pathPages(pool, { host }));
    const measured = paths.filter(({ up, roundTripNs }) => up && roundTripNs > 0);
    const boxes = new Set(measured.map(({ box }) => box));
    return boxesConnected > 0 && boxes.size >= boxesConnected ? true : undefined;
  };
  // A manager that does not know it yet, or does not answer, may do so in a moment.
  const found = await lookUntil(withinMs, LOOK_EACH_MS, () => reached().catch(() => undefined));
  return found === true;
}

/** '' for nothing. */
async function missing(
  pool: PoolConnection,
  { boxes, hosts, gpus }: PoolSizes,
  status: GetStatusResponse,
): Promise<string> {
  const first = missingOf([
    ['boxes connected', boxes, status.boxesConnected],
    ['hosts connected', hosts, status.hostsConnected],
    ['GPU nodes reported', boxes * gpus, status.gpus],
  ]);
  // Hosts learn of boxes from the manager: their links come last.
  if (first !== '') return first;
  const paths = await all(pathPages(pool, {}));
  const measured = paths.filter(({ up, roundTripNs }) => up && roundTripNs > 0);
  return missingOf([['paths measured', boxes * hosts, measured.length]]);
}

type Part = readonly [what: string, wanted: number, is: number];

const missingOf = (parts: readonly Part[]): string =>
  parts
    .filter(([, wanted, is]) => is < wanted)
    .map(([what, wanted, is]) => `${is} of ${wanted} ${what}`)
    .join(', ');
