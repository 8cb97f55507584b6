/** A virtual slot of a model host, and how a system places BARs behind it. */
import type {
  BarSize,
  FunctionReport,
  HostSlotReport,
  HostSlotStateName,
  WindowReport,
} from '#proto/agent-messages';
import type { WindowPlan } from './plan.ts';

export interface HostSlotRow {
  readonly box: string;
  readonly boxSlot: number;
  readonly generation: number;
}

export class ModelHostSlot {
  readonly number: number;
  readonly plan: WindowPlan;
  row: HostSlotRow | undefined;
  /** Rows a hostile host goes on using. */
  secret: HostSlotRow[] = [];
  state: HostSlotStateName = 'unused';
  reason = '';
  highestGeneration = 0;
  session = 0;
  plugged = false;
  /** Asked to leave once nobody uses it. */
  leaving = false;
  fn: FunctionReport | undefined;
  problem: HostSlotReport['problem'];
  inUse = false;
  /** Rises with whatever makes earlier plans for the function void. */
  epoch = 0;

  readonly nonPrefetchable: WindowReport;
  readonly prefetchable: WindowReport;
  /** What was shown last. */
  shown: HostSlotReport | undefined;

  constructor(number: number, plan: WindowPlan) {
    this.number = number;
    this.plan = plan;
    const { nonPrefetchableBase, nonPrefetchableBytes, prefetchableBase, prefetchableBytes } = plan;
    this.nonPrefetchable = windowOf(nonPrefetchableBase, nonPrefetchableBytes);
    this.prefetchable = windowOf(prefetchableBase, prefetchableBytes);
  }

  /** It is no longer there, nor whatever was under way for it. */
  dropFunction(): void {
    this.epoch++;
    this.fn = undefined;
    this.problem = undefined;
    this.inUse = false;
    this.leaving = false;
  }
}

function windowOf(base: number, bytes: number): WindowReport {
  return { base, limit: base + bytes - 1 };
}

/** Largest first, aligned to their size, each in its window (PCIe base 7.5.1.2.1). */
export function placeBars(
  slot: ModelHostSlot,
  bars: readonly BarSize[],
): FunctionReport['bars'] | undefined {
  const next = { true: slot.prefetchable.base, false: slot.nonPrefetchable.base };
  const placed: FunctionReport['bars'][number][] = [];
  for (const { index, sizeBytes, prefetchable } of bars.toSorted(
    (a, b) => b.sizeBytes - a.sizeBytes,
  )) {
    const window = prefetchable ? slot.prefetchable : slot.nonPrefetchable;
    const key = prefetchable ? 'true' : 'false';
    const address = Math.ceil(next[key] / sizeBytes) * sizeBytes;
    if (address + sizeBytes - 1 > window.limit) return undefined;
    next[key] = address + sizeBytes;
    placed.push({ index, address, sizeBytes });
  }
  return placed.sort((a, b) => a.index - b.index);
}

export function isSameHostRow(a: HostSlotRow | undefined, b: HostSlotRow | undefined): boolean {
  return (
    a !== undefined &&
    b !== undefined &&
    a.box === b.box &&
    a.boxSlot === b.boxSlot &&
    a.generation === b.generation
  );
}
