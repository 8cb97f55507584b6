/** `dxpu down`: ends the pool of a state folder, by asking and where that fails by its number. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { DxpuError } from '#base/errors';
import { askProcess, combined, waitForEnd } from '../control-client.ts';
import { lookUntil } from '../look-until.ts';
import { type OutputFormat, printData, printLine } from '../output.ts';
import { poolProcesses, readSizes } from '../pool-files.ts';
import { poolFolder } from '../pool-folder.ts';
import { lockPool } from '../pool-lock.ts';
import {
  isRunning,
  type KnownProcess,
  pidFile,
  pidOf,
  type ProcessKind,
  stateFolder,
} from '../state-folder.ts';

export interface DownOptions {
  readonly state?: string;
  readonly output: OutputFormat;
  readonly purge?: boolean;
}

const ASK_WITHIN_MS = 3000;
const STOP_WITHIN_MS = 5000;
/** After SIGTERM, and after SIGKILL. */
const SIGNAL_WITHIN_MS = 3000;
const LOOK_EACH_MS = 20;

type Ending = 'stopped' | 'was not running' | 'ended by SIGTERM' | 'ended by SIGKILL';

export async function down(options: DownOptions): Promise<void> {
  const state = stateFolder(options.state);
  const sizes = readSizes(state);
  if (sizes === undefined) {
    throw new DxpuError(
      'not_found',
      `there is no pool in ${state}: name its folder with --state; dxpu stop ends processes that ` +
        'were started one by one',
      { details: { folder: state } },
    );
  }
  const lock = await lockPool(state);
  try {
    const results: { process: string; result?: Ending; error?: string }[] = [];
    const problems: DxpuError[] = [];
    for (const target of inOrder(poolProcesses(state, sizes))) {
      const { name } = target;
      try {
        const result = await end(target);
        results.push({ process: name, result });
        if (options.output === 'table') printLine(`${name}: ${result}`);
      } catch (thrown) {
        const error = DxpuError.from(thrown);
        problems.push(error);
        results.push({ process: name, error: error.message });
      }
    }
    const error = combined(problems);
    const purged = options.purge === true && error === undefined;
    if (purged) purge(state);
    if (options.output !== 'table') await printData({ results, purged }, options.output);
    else if (purged) printLine(`removed ${poolFolder(state)}`);
    if (error !== undefined) throw error;
  } finally {
    lock.close();
  }
}

/** The manager first: what the others do when they end is nothing it has to mend. */
function inOrder(processes: readonly KnownProcess[]): KnownProcess[] {
  const of = (kind: ProcessKind): KnownProcess[] => processes.filter((one) => one.kind === kind);
  return [...of('manager'), ...of('host'), ...of('box')];
}

async function end(target: KnownProcess): Promise<Ending> {
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
    if (await isGone(pid)) {
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

async function isGone(pid: number): Promise<boolean> {
  const gone = await lookUntil(
    SIGNAL_WITHIN_MS,
    LOOK_EACH_MS,
    async () => !isRunning(pid) || undefined,
  );
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

/** Only what `up` and `start` make; other files of the state folder stay. */
function purge(state: string): void {
  rmSync(poolFolder(state), { recursive: true, force: true });
}
