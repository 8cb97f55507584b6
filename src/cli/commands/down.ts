/** `dxpu down`: ends the pool of a state folder, by asking and where that fails by its number. */
import { rmSync } from 'node:fs';
import { DxpuError } from '#base/errors';
import { combined } from '../control-client.ts';
import { type OutputFormat, printData, printLine, printNote } from '../output.ts';
import { poolProcesses, readSizes } from '../pool-files.ts';
import { poolFolder } from '../pool-folder.ts';
import { lockPool } from '../pool-lock.ts';
import { type Ending, endProcess } from '../process-end.ts';
import { type KnownProcess, type ProcessKind, stateFolder } from '../state-folder.ts';
import { knownVms, type VmFiles } from '../vm-folder.ts';
import { vmPid } from '../vm-machine.ts';

export interface DownOptions {
  readonly state?: string;
  readonly output: OutputFormat;
  readonly purge?: boolean;
}

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
    const vms = knownVms(state).filter((files) => vmPid(files) !== undefined);
    if (options.purge === true) refuseVms(vms);
    const results: { process: string; result?: Ending; error?: string }[] = [];
    const problems: DxpuError[] = [];
    for (const target of inOrder(poolProcesses(state, sizes))) {
      const { name } = target;
      try {
        const result = await endProcess(target);
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
    for (const { id } of vms)
      printNote(`the VM of ${id} goes on: dxpu vm down --host ${id} ends it`);
    if (error !== undefined) throw error;
  } finally {
    lock.close();
  }
}

/** What is purged holds the certificates of their host proxies, which no later pool would know. */
function refuseVms(vms: readonly VmFiles[]): void {
  if (vms.length === 0) return;
  const ids = vms.map(({ id }) => id);
  throw new DxpuError(
    'failed_precondition',
    `VMs of this pool run: ${ids.join(', ')}; end them first with ` +
      ids.map((id) => `dxpu vm down --host ${id}`).join(', '),
    { details: { vms: ids } },
  );
}

/** The manager first: what the others do when they end is nothing it has to mend. */
function inOrder(processes: readonly KnownProcess[]): KnownProcess[] {
  const of = (kind: ProcessKind): KnownProcess[] => processes.filter((one) => one.kind === kind);
  return [...of('manager'), ...of('host'), ...of('box')];
}

/** Only what `up` and `start` make; other files of the state folder stay. */
function purge(state: string): void {
  rmSync(poolFolder(state), { recursive: true, force: true });
}
