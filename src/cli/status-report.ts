/** What a process answers to `status`, as the commands read it. */
import type { BoxRow, HostRow } from '#fabric/mapping-table';
import type { BoxSlotStatus } from '#agent/daemon/box-node';
import { askProcess, findProcess, someProcesses } from './control-client.ts';
import type { CounterReport, LinkReport } from '#agent/daemon/counter-report';
import type { HostSlotStatus } from '#agent/daemon/host-slot-status';
import type { StreamStatus } from '#agent/daemon/manager-stream';
import { stateFolder } from './state-folder.ts';
import { DxpuError } from '#base/errors';

interface AnyStatus {
  readonly id: string;
  readonly pid: number;
  readonly config: string;
  readonly uptimeS: number;
}

interface CommonStatus extends AnyStatus {
  /** Where its rows come from; `undefined` when they are those of its file. */
  readonly manager?: StreamStatus | undefined;
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
  readonly slots: readonly HostSlotStatus[];
}

export interface BoxStatus extends CommonStatus {
  readonly kind: 'box';
  readonly listen: readonly string[];
  readonly table: readonly BoxRow[];
  readonly slots: readonly BoxSlotStatus[];
}

export interface ManagerStatus extends AnyStatus {
  readonly kind: 'manager';
  readonly listen: readonly string[];
}

export type ProxyStatus = HostStatus | BoxStatus;
export type ProcessStatus = ProxyStatus | ManagerStatus;

export const isProxy = (status: ProcessStatus): status is ProxyStatus => status.kind !== 'manager';

export interface ProcessSelection {
  readonly state?: string;
  readonly process?: string;
}

/**
 * The status of the named process, or of all that run in the state folder, with what is wrong with
 * those that cannot be asked.
 */
export async function allStatus(
  selection: ProcessSelection,
): Promise<{ statuses: ProcessStatus[]; problems: DxpuError[] }> {
  const folder = stateFolder(selection.state);
  const { running, unreachable } =
    selection.process === undefined
      ? await someProcesses(folder)
      : { running: [await findProcess(folder, selection.process, undefined)], unreachable: [] };
  const statuses: ProcessStatus[] = [];
  const problems = unreachable.map(({ error }) => error);
  const answers = await Promise.allSettled(running.map((one) => askProcess(one, 'status', {})));
  for (const answer of answers) {
    if (answer.status === 'fulfilled') statuses.push(answer.value as ProcessStatus);
    else problems.push(DxpuError.from(answer.reason));
  }
  return { statuses, problems };
}

/** A table for machines: what `tableText` shows, each row with the state of its slot. */
export function plainTable(status: ProxyStatus): object {
  const { kind, id, manager } = status;
  const slots = new Map(status.slots.map((slot) => [slot.slot, slot]));
  const withState = <R extends object>(row: R, slot: number): object => {
    const { state, reason } = slots.get(slot) ?? {};
    return { ...row, state, reason };
  };
  const rows =
    status.kind === 'host'
      ? status.table.map((row) => withState(row, row.virtualSlot))
      : status.table.map((row) => withState(row, row.slot));
  return { kind, id, manager, rows };
}
