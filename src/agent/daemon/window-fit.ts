/** Whether a function fits the windows of its root port, before anything is plugged into the VM. */
import { formatBytes, placeBars } from '#host/bar-assignment';
import type { FunctionSurvey } from '#host/function-survey';
import type { VirtualPort } from '#host/virtual-port';
import type { SlotProblem } from './slot-software.ts';

/** Why the BARs do not fit the windows of the root port. */
export function fitWindows(
  survey: FunctionSurvey,
  port: VirtualPort,
  rootPort: string,
): SlotProblem | undefined {
  const { nonPrefetchable, prefetchable } = port.routing;
  const bytesOf = ({ base, limit }: { base: number; limit: number }): number =>
    Math.max(0, limit + 1 - base);
  const windows = {
    secondaryBus: port.routing.secondaryBus,
    nonPrefetchableBase: nonPrefetchable.base,
    nonPrefetchableBytes: bytesOf(nonPrefetchable),
    prefetchableBase: prefetchable.base,
    prefetchableBytes: bytesOf(prefetchable),
  };
  const placed = placeBars(survey.bars, windows, `root port ${rootPort}`);
  if (Array.isArray(placed)) return undefined;
  const word = placed.window === 'prefetchable' ? 'pref64-reserve' : 'mem-reserve';
  const message =
    `no space: BAR ${placed.barIndex} needs ${formatBytes(placed.barBytes)}, the ${placed.window} window of ` +
    `root port ${rootPort} has ${formatBytes(placed.windowBytes)}: give it a larger ${word} on QEMU's command line`;
  return { kind: 'no-space', message };
}
