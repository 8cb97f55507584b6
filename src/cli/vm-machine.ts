/** QEMU of a VM of the state folder: a process that goes on when this one has ended. */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, fstatSync, openSync, readFileSync, rmSync } from 'node:fs';
import { DxpuError } from '#base/errors';
import { askMonitor } from '#vm/qemu-monitor';
import type { QemuProgram } from '#vm/qemu-program';
import { lookUntil } from './look-until.ts';
import { isRunning } from './state-folder.ts';
import type { VmFiles } from './vm-folder.ts';

const ASK_WITHIN_MS = 5000;
const STARTS_WITHIN_MS = 20_000;
const ENDS_WITHIN_MS = 10_000;
const KILLED_WITHIN_MS = 3000;
const LOOK_EACH_MS = 25;
const SHOWN_LOG_LINES = 6;

/** What QEMU says of the guest, `running` or `paused`; `undefined` where the VM does not run. */
export async function vmState(files: VmFiles): Promise<string | undefined> {
  try {
    const answer = await askMonitor(files.toolQmp, 'query-status', ASK_WITHIN_MS);
    return (answer as { status?: string }).status ?? 'unknown';
  } catch (thrown) {
    const error = DxpuError.from(thrown);
    if (error.code === 'unavailable') return undefined;
    throw error;
  }
}

/** Its number, where its process is there and is this VM's QEMU. */
export function vmPid(files: VmFiles): number | undefined {
  if (!existsSync(files.pidFile)) return undefined;
  const pid = Number(readFileSync(files.pidFile, 'utf8'));
  if (!Number.isSafeInteger(pid) || pid <= 0 || !isRunning(pid)) return undefined;
  // Numbers are given out again: who it is stands in its command line.
  const words = `/proc/${pid}/cmdline`;
  return existsSync(words) && readFileSync(words, 'utf8').includes(files.pidFile) ? pid : undefined;
}

/** Returns QEMU's number once it takes commands. Fails with its last words when it ends before. */
export async function startVm(
  files: VmFiles,
  qemu: QemuProgram,
  words: readonly string[],
): Promise<number> {
  for (const left of [files.hostQmp, files.toolQmp, files.console, files.pidFile]) {
    rmSync(left, { force: true });
  }
  const log = openSync(files.qemuLog, 'a', 0o600);
  const begin = fstatSync(log).size;
  let ended: string | undefined;
  try {
    const child = spawn(qemu.program, [...qemu.args, ...words], {
      detached: true,
      stdio: ['ignore', log, log],
    });
    child.once('error', (error) => {
      ended = `cannot be started: ${error.message}`;
    });
    child.once('exit', (status, signal) => {
      ended = `ended with ${signal ?? `status ${status}`}`;
    });
    child.unref();
  } finally {
    closeSync(log);
  }
  const pid = await lookUntil(STARTS_WITHIN_MS, LOOK_EACH_MS, async () => {
    if (ended !== undefined) return ended;
    return (await vmState(files)) === undefined ? undefined : vmPid(files);
  });
  if (typeof pid === 'number') return pid;
  const said = readFileSync(files.qemuLog).subarray(begin).toString().trimEnd();
  throw new DxpuError(
    'unavailable',
    `QEMU ${pid ?? `takes no commands within ${STARTS_WITHIN_MS / 1e3} s`}; its last words:\n` +
      said.split('\n').slice(-SHOWN_LOG_LINES).join('\n'),
    { details: { log: files.qemuLog } },
  );
}

/** Asked to; where it does not, by its number. */
export async function endVm(files: VmFiles): Promise<'ended' | 'killed' | 'was not running'> {
  const pid = vmPid(files);
  let isAsked = true;
  try {
    await askMonitor(files.toolQmp, 'quit', ASK_WITHIN_MS);
  } catch (thrown) {
    if (DxpuError.from(thrown).code !== 'unavailable') isAsked = false;
    // It may be gone before it has answered.
    else if (pid === undefined) return 'was not running';
  }
  if (pid === undefined || (isAsked && (await isGone(pid, ENDS_WITHIN_MS)))) return 'ended';
  process.kill(pid, 'SIGKILL');
  if (await isGone(pid, KILLED_WITHIN_MS)) return 'killed';
  throw new DxpuError('deadline_exceeded', `QEMU of ${files.id} (pid ${pid}) does not end`);
}

async function isGone(pid: number, withinMs: number): Promise<boolean> {
  const look = async (): Promise<true | undefined> => (isRunning(pid) ? undefined : true);
  return (await lookUntil(withinMs, LOOK_EACH_MS, look)) === true;
}
