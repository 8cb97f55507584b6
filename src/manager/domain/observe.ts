/** The observation of one binding, put together from what the core has in mind. */
import type { Nanos } from '#base/units';
import { functionStage } from './function-check.ts';
import { type Binding, isReporting } from './inventory.ts';
import type { BoxObservation, HostObservation, Observation } from './observation.ts';
import type { PoolFaults } from './pool-options.ts';
import { type BindingRecord, FAILURE_REASONS, type LoggedBinding } from './records.ts';

export function observe(now: Nanos, binding: Binding, faults: PoolFaults): Observation {
  const { record } = binding;
  // Of a failed binding: each failure counts, and whoever asks begins the count anew.
  const isAsked = record.attempts === 0;
  return {
    goal: record.goal,
    force: record.force,
    unbindAsked: isAsked && record.goal === 'free',
    expired: binding.dueNs <= now,
    failure: record.failure,
    retryAllowed: willRetry(record),
    retryAsked: isAsked,
    superseded: binding.superseded,
    box: observeBox(binding, faults),
    host: observeHost(binding, faults),
  };
}

/** Whether a failed binding is tried again by itself, or because somebody has asked already. */
export function willRetry({ state, goal, failure, attempts, retries }: LoggedBinding): boolean {
  if (state !== 'failed' || failure === undefined || goal !== 'attached') return false;
  return attempts === 0 || (retries && FAILURE_REASONS[failure.reason].retries);
}

/** The row as a box reports it, against the one this binding should have there. */
export function boxRow({ record, boxSlot }: Binding): BoxObservation['row'] {
  if (!isReporting(boxSlot.box)) return 'unknown';
  const row = boxSlot.report?.row;
  if (row === undefined) return 'none';
  return row.generation === record.generation && row.host === record.host ? 'own' : 'other';
}

export function hostRow({ record, hostSlot }: Binding): HostObservation['row'] {
  if (!isReporting(hostSlot.host)) return 'unknown';
  const row = hostSlot.report?.row;
  if (row === undefined) return 'none';
  const { generation, box, boxSlot } = record;
  const isOwn = row.generation === generation && row.box === box && row.boxSlot === boxSlot;
  return isOwn ? 'own' : 'other';
}

/** In these the rows were in force: the store would not say so otherwise. */
function hadRows({ state, failure }: BindingRecord): boolean {
  switch (state) {
    case 'attaching':
    case 'attached':
    case 'draining':
      return true;
    case 'failed':
      return failure?.reason === 'drain-timeout';
    default:
      return false;
  }
}

function observeBox(binding: Binding, faults: PoolFaults): BoxObservation {
  const { record, boxSlot } = binding;
  const { box, report } = boxSlot;
  const row = boxRow(binding);
  const isUnused = report?.state === 'unused' && report.row === undefined;
  const seen: BoxObservation = {
    connected: isReporting(box),
    confirmed: box.session?.book.isConfirmed(boxSlot.slot) === true,
    row,
    held: binding.boxHeld || hadRows(record),
    restarted: binding.boxRestarted,
    contained: row === 'own' && report?.state === 'contained',
    refused: boxSlot.refused,
    reason: report?.reason ?? '',
    nodeThere: boxSlot.record?.present === true && boxSlot.record.node.uuid === record.uuid,
    nodePresent: boxSlot.record?.present === true,
    clean: isUnused && (report.clean || faults.skipsScrub === true),
    quarantine: boxSlot.record?.quarantine ?? '',
  };
  const isLeaving = record.state === 'detaching' || record.state === 'scrubbing';
  if (faults.noConfirmation === true && isLeaving) {
    return { ...seen, connected: true, confirmed: true, row: 'none', clean: true };
  }
  return seen;
}

function observeHost(binding: Binding, faults: PoolFaults): HostObservation {
  const { record, hostSlot, boxSlot } = binding;
  const { host, report } = hostSlot;
  const row = hostRow(binding);
  const bars = boxSlot.record?.node.bars ?? [];
  const stage =
    report?.function === undefined || hostSlot.record === undefined
      ? 'none'
      : functionStage(report.function, hostSlot.record, bars);
  const isEarly = faults.attachedEarly === true && report?.function !== undefined;
  return {
    connected: isReporting(host),
    confirmed: host.session?.book.isConfirmed(hostSlot.slot) === true,
    row,
    held: binding.hostHeld || hadRows(record),
    restarted: binding.hostRestarted,
    contained: row === 'own' && report?.state === 'contained',
    refused: hostSlot.refused,
    reason: report?.reason ?? '',
    released: binding.hostReleased,
    ready: report?.state === 'ready' || isEarly,
    function: isEarly ? 'final' : stage === 'none' || stage === 'final' ? stage : 'incomplete',
    problem: report?.problem,
  };
}
