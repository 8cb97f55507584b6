/** Bindings brought to where they shall be, as the commands of users do it. */
import type { CallOptions } from '@connectrpc/connect';
import { DxpuError } from '#base/errors';
import type { PoolConnection } from '#cli/pool-connection';
import { spelledOut } from '#cli/pool-demand';
import { Deadline, newRequestId, Settling, untilAnswered } from '#cli/pool-request';
import { waitForBindings, type WaitGoal } from '#cli/pool-wait';
import type { Binding } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { bindingRecord } from './vm-pool-parts.ts';

const WITHIN_NS = 60e9;

/** Fails where `goal` is not reached within a minute, and says how they were last. */
export async function changeBindings(
  pool: PoolConnection,
  goal: WaitGoal,
  call: (requestId: string, options: CallOptions) => Promise<{ bindings: Binding[] }>,
): Promise<readonly Binding[]> {
  const deadline = new Deadline(WITHIN_NS);
  const requestId = newRequestId();
  const { position } = await pool.pool.getStatus({});
  let answer: { bindings: Binding[] };
  try {
    answer = await untilAnswered(pool, requestId, deadline, new Settling(), (options) =>
      call(requestId, options),
    );
  } catch (error) {
    throw spelledOut(DxpuError.from(error));
  }
  const result = await waitForBindings(pool, answer.bindings, Number(position), goal, deadline);
  if (result.end === 'reached') return result.bindings;
  const last = result.bindings.map(bindingRecord);
  throw new Error(`not ${goal} (${result.end}): ${JSON.stringify(last)}`);
}
