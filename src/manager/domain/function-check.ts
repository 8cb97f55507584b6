/** Whether a function a host reports can be used as it stands: invariant 4, attached means usable. */
import { formatBdf } from '#base/units';
import type { BarSize, FunctionReport } from '#proto/agent-messages';
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
  for (const [position, bar] of found.bars.entries()) {
    const wrong = barFault(bar, port, expected) ?? clashFault(found.bars, position);
    if (wrong !== undefined) return { wrong };
  }
  return found.bars.length < expected.length ? 'incomplete' : 'final';
}

type Bar = FunctionReport['bars'][number];

function barFault(
  bar: Bar,
  port: HostSlotRecord,
  expected: readonly BarSize[],
): string | undefined {
  const { index, address, sizeBytes } = bar;
  const asked = expected.find((one) => one.index === index);
  if (expected.length > 0 && asked?.sizeBytes !== sizeBytes) {
    return `${nameOf(bar)} is not of the size the GPU node has there`;
  }
  if (!(sizeBytes > 0) || address % sizeBytes !== 0) {
    return `${nameOf(bar)} is not aligned to its size`;
  }
  const limit = address + sizeBytes - 1;
  const { nonPrefetchable, prefetchable } = port;
  if (nonPrefetchable.base <= address && limit <= nonPrefetchable.limit) return undefined;
  const mayBePrefetched = asked?.prefetchable ?? true;
  if (mayBePrefetched && prefetchable.base <= address && limit <= prefetchable.limit) {
    return undefined;
  }
  return `${nameOf(bar)} is outside the windows of its port`;
}

/** Against those before it. */
function clashFault(bars: readonly Bar[], position: number): string | undefined {
  const bar = bars[position];
  for (let before = 0; before < position; before++) {
    const other = bars[before];
    if (bar === undefined || other === undefined) continue;
    if (bar.index === other.index) return `BAR ${bar.index} is named twice`;
    const isApart =
      bar.address + bar.sizeBytes <= other.address ||
      other.address + other.sizeBytes <= bar.address;
    if (!isApart) return `${nameOf(bar)} overlaps another BAR`;
  }
  return undefined;
}

function nameOf({ index, address }: Bar): string {
  return `BAR ${index} at 0x${address.toString(16)}`;
}
