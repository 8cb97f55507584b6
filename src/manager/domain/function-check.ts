/** Whether a function a host reports can be used as it stands: invariant 4, attached means usable. */
import { formatBdf } from '#base/units';
import type { BarSize, FunctionReport, WindowReport } from '#proto/agent-messages';
import type { HostSlotRecord } from './records.ts';

/**
 * `final`: every BAR of the GPU node has its place, of its size, aligned to it, inside the windows of
 * the virtual port and apart from the others, on the port's bus. `incomplete`: not all are assigned.
 * Otherwise what is wrong, for people: such a claim is not believed.
 */
export function functionStage(
  found: FunctionReport,
  port: HostSlotRecord,
  expected: readonly BarSize[],
): 'final' | 'incomplete' | { readonly wrong: string } {
  if (found.bars.length === 0) return 'incomplete';
  if (found.bdf >>> 8 !== port.secondaryBus) {
    const bus = port.secondaryBus.toString(16).padStart(2, '0');
    return { wrong: `function ${formatBdf(found.bdf)} is not on bus ${bus} of its port` };
  }
  const taken: WindowReport[] = [];
  const indexes = new Set(found.bars.map((bar) => bar.index));
  if (indexes.size !== found.bars.length) return { wrong: 'a BAR is named twice' };
  for (const { index, address, sizeBytes } of found.bars) {
    const asked = expected.find((bar) => bar.index === index);
    const what = `BAR ${index} at 0x${address.toString(16)}`;
    if (expected.length > 0 && asked?.sizeBytes !== sizeBytes) {
      return { wrong: `${what} is not of the size the GPU node has there` };
    }
    const range = { base: address, limit: address + sizeBytes - 1 };
    if (!(sizeBytes > 0) || address % sizeBytes !== 0) {
      return { wrong: `${what} is not aligned to its size` };
    }
    const mayBePrefetched = asked?.prefetchable ?? true;
    const isInside =
      contains(port.nonPrefetchable, range) ||
      (mayBePrefetched && contains(port.prefetchable, range));
    if (!isInside) return { wrong: `${what} is outside the windows of its port` };
    if (taken.some((other) => overlap(other, range))) {
      return { wrong: `${what} overlaps another BAR` };
    }
    taken.push(range);
  }
  return found.bars.length < expected.length ? 'incomplete' : 'final';
}

export function isEmpty(window: WindowReport): boolean {
  return window.base > window.limit;
}

export function overlap(a: WindowReport, b: WindowReport): boolean {
  return a.base <= b.limit && b.base <= a.limit;
}

function contains(window: WindowReport, range: WindowReport): boolean {
  return window.base <= range.base && range.limit <= window.limit;
}
