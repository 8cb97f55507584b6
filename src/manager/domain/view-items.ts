/** One item of each list: a record joined with what is observed. */
import {
  type Binding,
  type Box,
  type BoxSlot,
  type Host,
  isReporting,
  pathKey,
} from './inventory.ts';
import { hostRow, willRetry } from './observe.ts';
import type { BindingView, BoxView, GpuView, HostView } from './pool.ts';
import { problemText } from './refused-claims.ts';

export function bindingView(binding: Binding): BindingView {
  const { record, hostSlot, boxSlot } = binding;
  const { host, report } = hostSlot;
  const found = report?.function;
  const isLive = found !== undefined && hostRow(binding) === 'own' && isReporting(boxSlot.box);
  return {
    record,
    willRetry: willRetry(record),
    live: isLive
      ? {
          memoryEnable: found.memoryEnable,
          busMaster: found.busMaster,
          inUse: report?.inUse === true,
          rttNs: host.paths.get(pathKey(record.box, record.path))?.record.rttNs ?? 0,
        }
      : undefined,
  };
}

export function boxView(box: Box): BoxView {
  const connected = isReporting(box);
  return {
    record: box.record,
    connected,
    gpus: box.gpus,
    gpusFree: connected ? box.gpusFree : 0,
    problem: problemText(box.problems),
  };
}

export function hostView(host: Host): HostView {
  const slots: HostView['slots'][number][] = [];
  for (const number of host.slotNumbers.above(undefined)) {
    const slot = host.slots.get(number);
    if (slot?.record === undefined) continue;
    slots.push({
      ...slot.record,
      binding: slot.binding?.record.id ?? '',
      state: slot.report?.state ?? '',
    });
  }
  return {
    record: host.record,
    connected: isReporting(host),
    slots,
    problem: problemText(host.problems),
  };
}

export function gpuView(slot: BoxSlot): GpuView | undefined {
  const { record, binding } = slot;
  if (record === undefined) return undefined;
  const state = gpuState(slot);
  return {
    record,
    state,
    binding: binding?.record.id ?? '',
    host: binding?.record.host ?? '',
    reason: gpuReason(slot, state),
  };
}

export function gpuState(slot: BoxSlot): GpuView['state'] {
  const { told, binding, box } = slot;
  const state = told ?? 'gone';
  return binding === undefined && state !== 'gone' && state !== 'quarantined' && !isReporting(box)
    ? 'unreachable'
    : state;
}

function gpuReason({ record, binding, box, report }: BoxSlot, state: GpuView['state']): string {
  switch (state) {
    case 'quarantined':
      return record?.quarantine ?? '';
    case 'unreachable':
      return `the agent of box ${box.id} is not connected`;
    case 'gone':
      return 'it is not in its slot any more';
    case 'scrubbing':
      if (binding !== undefined) return 'being reset and scrubbed';
      return report?.row === undefined
        ? 'not yet reported clean'
        : `its slot holds generation ${report.row.generation}, which nobody asks for`;
    default:
      return '';
  }
}
