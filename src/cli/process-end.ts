/** Ends a process of the pool: by asking it, and where that fails by its number. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { DxpuError } from '#base/errors';
import { askProcess, waitForEnd } from './control-client.ts';
import { lookUntil } from './look-until.ts';
import { isRunning, type KnownProcess, pidFile, pidOf } from './state-folder.ts';

const ASK_WITHIN_MS = 3000;
const STOP_WITHIN_MS = 5000;
/** After SIGTERM, and after SIGKILL. */
const SIGNAL_WITHIN_MS = 3000;
const LOOK_EACH_MS = 20;

export type Ending = 'stopped' | 'was not running' | 'ended by SIGTERM' | 'ended by SIGKILL';

/** Returns when it is gone. */
export async function endProcess(target: KnownProcess): Promise<Ending> {
  const pid = pidOf(target);
  try {
    const answer = await askProcess(target, 'stop', {}, ASK_WITHIN_MS);
    await waitForEnd(target, (answer as { pid?: number }).pid ?? pid, STOP_WITHIN_MS);
    return 'stopped';
  } catch (thrown) {
    const error = DxpuError.from(thrown);
    if (pid === undefined || !isOurs(pid, target)) {
      if (error.code === 'unavailable') return 'was not running';
      throw error;
    }
  }
  // It does not listen: stopped, stuck, or not yet ready to be asked.
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    process.kill(pid, signal);
    if (await isGone(pid, SIGNAL_WITHIN_MS)) {
      rmSync(target.socket, { force: true });
      rmSync(pidFile(target.socket), { force: true });
      return `ended by ${signal}`;
    }
  }
  throw new DxpuError(
    'deadline_exceeded',
    `${target.name} (pid ${pid}) does not end, not even by SIGKILL`,
    {
      details: { process: target.name, pid },
    },
  );
}

/** Whether the process of that number ends within this time. */
export async function isGone(pid: number, withinMs: number): Promise<boolean> {
  const gone = await lookUntil(withinMs, LOOK_EACH_MS, async () => !isRunning(pid) || undefined);
  return gone === true;
}

/**
 * Whether the process of that number is still the one that wrote it down: numbers are given out again.
 * Where the system does not say what a process is, nobody is ended by number.
 */
function isOurs(pid: number, { kind, name }: KnownProcess): boolean {
  if (!isRunning(pid)) return false;
  const file = `/proc/${pid}/cmdline`;
  if (!existsSync(file)) return false;
  const words = readFileSync(file, 'utf8').split('\0');
  return words.includes(kind) && words.some((word) => word.endsWith(`${name}.yaml`));
}
