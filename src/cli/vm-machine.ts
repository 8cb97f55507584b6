/** QEMU of a VM of the state folder: a process that goes on when this one has ended. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { DxpuError } from '#base/errors';
import { askMonitor } from '#vm/qemu-monitor';
import type { QemuProgram } from '#vm/qemu-program';
import { LoggedProcess } from './logged-process.ts';
import { isGone } from './process-end.ts';
import { isRunning } from './state-folder.ts';
import type { VmFiles } from './vm-folder.ts';

const ASK_WITHIN_MS = 5000;
const STARTS_WITHIN_MS = 20_000;
const ENDS_WITHIN_MS = 10_000;
const KILLED_WITHIN_MS = 3000;

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
  const args = [...qemu.args, ...words];
  const started = new LoggedProcess('QEMU', qemu.program, args, files.qemuLog, 'detached');
  return await started.untilReady(STARTS_WITHIN_MS, async () =>
    (await vmState(files)) === undefined ? undefined : vmPid(files),
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
