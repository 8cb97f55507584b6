/** Waits until a pool that was started is whole. */
import { DxpuError } from '#base/errors';
import type { GetStatusResponse } from '#proto/generated/dxpu/pool/v1/pool_pb';
import type { PoolConnection } from './pool-connection.ts';
import type { PoolSizes } from './pool-files.ts';
import { all, pathPages } from './pool-lists.ts';
import { pause } from './pool-request.ts';
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
  signal?: AbortSignal,
): Promise<GetStatusResponse> {
  const deadline = performance.now() + withinMs;
  let last = 'the manager does not answer';
  for (;;) {
    try {
      const status = await pool.pool.getStatus({}, { timeoutMs: 5000 });
      last = missing([
        ['boxes connected', sizes.boxes, status.boxesConnected],
        ['hosts connected', sizes.hosts, status.hostsConnected],
        ['GPU nodes reported', sizes.boxes * sizes.gpus, status.gpus],
      ]);
      // Hosts learn of boxes from the manager: their links come last.
      if (last === '') {
        const paths = await all(pathPages(pool, {}));
        const measured = paths.filter(({ up, roundTripNs }) => up && roundTripNs > 0);
        last = missing([['paths measured', sizes.boxes * sizes.hosts, measured.length]]);
      }
      if (last === '') return status;
    } catch (thrown) {
      const error = DxpuError.from(thrown);
      if (error.code !== 'unavailable' && error.code !== 'deadline_exceeded') throw error;
      last = error.message;
    }
    signal?.throwIfAborted();
    if (performance.now() > deadline) {
      throw new DxpuError(
        'deadline_exceeded',
        `the pool is not whole after ${formatDuration(withinMs * 1e6)}: ${last}; dxpu status shows ` +
          'what runs, and where each process logs',
        { details: { missing: last } },
      );
    }
    await pause(LOOK_EACH_MS);
  }
}

type Part = readonly [what: string, wanted: number, is: number];

const missing = (parts: readonly Part[]): string =>
  parts
    .filter(([, wanted, is]) => is < wanted)
    .map(([what, wanted, is]) => `${is} of ${wanted} ${what}`)
    .join(', ');
