/** The bindings `dxpu start` shows: asked for where they are missing, waited for where they come back. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { DxpuError } from '#base/errors';
import {
  type Binding,
  BindingState,
  type DemandSchema,
} from '#proto/generated/dxpu/pool/v1/pool_pb';
import { bindingState } from './pool-columns.ts';
import type { PoolConnection } from './pool-connection.ts';
import { spelledOut } from './pool-demand.ts';
import { all, bindingPages } from './pool-lists.ts';
import { Deadline, newRequestId, Settling, untilAnswered } from './pool-request.ts';
import { isStuck, waitForBindings } from './pool-wait.ts';

/** Two GPU nodes of a box to one host, one of the other box to the other host. */
const WANTED = [
  { host: 'h1', gpus: 2, sameBox: true, boxKind: 'pcie' },
  { host: 'h2', gpus: 1, sameBox: true, boxKind: 'nvswitch' },
] as const satisfies readonly MessageInitShape<typeof DemandSchema>[];

const WITHIN_NS = 30e9;

/**
 * The bindings that can be used. In a new pool all that are wanted, or it fails; in one that was there
 * before whatever has come back: somebody may have bound its GPU nodes in another way.
 */
export async function bindMissing(
  pool: PoolConnection,
  isNew: boolean,
  say: (line: string) => void,
): Promise<readonly Binding[]> {
  const deadline = new Deadline(WITHIN_NS);
  const before = await kept(pool);
  for (const demand of WANTED) {
    const has = before.filter(({ host }) => host === demand.host).length;
    if (has >= demand.gpus) continue;
    try {
      await ask(pool, { ...demand, gpus: demand.gpus - has }, deadline);
    } catch (thrown) {
      const error = spelledOut(DxpuError.from(thrown));
      if (isNew || error.code !== 'resource_exhausted') throw error;
      say(`not bound: ${error.message}`);
    }
  }
  const bindings = await settled(pool, isNew, deadline);
  const known = new Set(before.map(({ id }) => id));
  for (const binding of bindings) {
    const { id, host, hostSlot, attachment, box, boxSlot, generation } = binding;
    const how = known.has(id) ? 'resumed under generation' : 'generation';
    say(
      `binding ${id}: slot ${boxSlot} of box ${box} is ${attachment?.bdf ?? ''} of host ${host}, ` +
        `virtual slot ${hostSlot}, ${how} ${generation}`,
    );
  }
  return bindings;
}

/** Those nobody gives back. */
async function kept(pool: PoolConnection): Promise<Binding[]> {
  return (await all(bindingPages(pool, {}))).filter(({ leaving }) => !leaving);
}

async function ask(
  pool: PoolConnection,
  demand: MessageInitShape<typeof DemandSchema>,
  deadline: Deadline,
): Promise<void> {
  const requestId = newRequestId();
  await untilAnswered(pool, requestId, deadline, new Settling(), (call) =>
    pool.pool.bind({ requestId, demand }, call),
  );
}

async function settled(
  pool: PoolConnection,
  isNew: boolean,
  deadline: Deadline,
): Promise<readonly Binding[]> {
  for (;;) {
    // Before the list: what happens to a binding of it from then on is in the log behind this.
    const { position } = await pool.pool.getStatus({});
    const bindings = await kept(pool);
    const hopeful = bindings.filter((binding) => !isStuck(binding, 'attached'));
    const result = await waitForBindings(pool, hopeful, Number(position), 'attached', deadline);
    if (result.end === 'stuck' && !isNew) continue;
    if (result.end === 'reached' || !isNew) {
      return result.bindings.filter(({ state }) => state === BindingState.ATTACHED);
    }
    const left = result.bindings.filter(({ state }) => state !== BindingState.ATTACHED);
    throw new DxpuError(
      'deadline_exceeded',
      `not all bindings are attached: ${left.map(describeLeft).join('; ')}`,
    );
  }
}

const describeLeft = (binding: Binding): string =>
  `${binding.id} is ${bindingState(binding)}` +
  (binding.failure === undefined ? '' : ` (${binding.failure.message})`);
