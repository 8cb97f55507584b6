/** A process of the pool that outlives this one; it is found again by its control socket. */
import { askProcess } from './control-client.ts';
import { READY_WITHIN_MS, startPoolProcess } from './pool-process.ts';
import type { KnownProcess } from './state-folder.ts';

/** Starts `target` and returns its number once it serves. Fails with its last words when it ends before. */
export async function startDetached(state: string, target: KnownProcess): Promise<number> {
  const started = startPoolProcess(state, target, 'detached');
  const { pid } = await started.untilReady(READY_WITHIN_MS, async () => {
    // It knows what to answer once it serves, not before.
    const status = await askProcess(target, 'status', {}).catch(() => undefined);
    return status as { readonly pid: number } | undefined;
  });
  return pid;
}
