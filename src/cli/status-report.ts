/** What a process answers to `status`, as the commands read it. */
import type { BoxRow, HostRow } from '#fabric/mapping-table';
import type { BoxSlotReport } from './box-node.ts';
import { callProcess, findProcess, runningProcesses } from './control-client.ts';
import type { CounterReport, LinkReport } from './counter-report.ts';
import type { HostSlotReport } from './host-node.ts';
import { stateFolder } from './state-folder.ts';
import { DxpuError } from '#base/errors';

interface CommonStatus {
  readonly id: string;
  readonly pid: number;
  readonly config: string;
  readonly uptimeS: number;
  readonly stray: CounterReport;
  readonly links: readonly LinkReport[];
  readonly faults: {
    readonly delayNs: number;
    readonly dropProbability: number;
    readonly cutForNs: number;
  };
}

export interface HostStatus extends CommonStatus {
  readonly kind: 'host';
  readonly table: readonly HostRow[];
  readonly slots: readonly HostSlotReport[];
}

export interface BoxStatus extends CommonStatus {
  readonly kind: 'box';
  readonly listen: readonly string[];
  readonly table: readonly BoxRow[];
  readonly slots: readonly BoxSlotReport[];
}

export type ProcessStatus = HostStatus | BoxStatus;

export interface ProcessSelection {
  readonly state?: string;
  readonly process?: string;
}

/** The status of the named process, or of all that run in the state folder. */
export async function allStatus(selection: ProcessSelection): Promise<ProcessStatus[]> {
  const folder = stateFolder(selection.state);
  const targets =
    selection.process === undefined
      ? await runningProcesses(folder)
      : [await findProcess(folder, selection.process, undefined)];
  if (targets.length === 0) {
    throw new DxpuError(
      'unavailable',
      `no dxpu process is running in ${folder}: start one with dxpu start, ` +
        'or name its folder with --state',
    );
  }
  return Promise.all(
    targets.map(async (one) => (await callProcess(one, 'status', {})) as ProcessStatus),
  );
}
