/**
 * A process that outlives this one: in a session of its own, with its output in a file, found again by
 * its control socket.
 */
import { askProcess } from './control-client.ts';
import { lookUntil } from './look-until.ts';
import { PoolProcess, READY_WITHIN_MS } from './pool-process.ts';
import type { KnownProcess } from './state-folder.ts';

const LOOK_EACH_MS = 25;

/** Starts `target` and returns its number once it serves. Fails with its last words when it ends before. */
export async function startDetached(state: string, target: KnownProcess): Promise<number> {
  const started = new PoolProcess(state, target, 'detached');
  started.child.unref();
  let how: string | undefined;
  void started.ended.then((end) => {
    how = end;
  });
  const answer = await lookUntil(READY_WITHIN_MS, LOOK_EACH_MS, async () => {
    // It knows what to answer once it serves, not before.
    const status = await askProcess(target, 'status', {}).catch(() => undefined);
    if (how !== undefined) throw started.failure(how);
    return status as { readonly pid: number } | undefined;
  });
  if (answer === undefined) throw started.late();
  return answer.pid;
}
