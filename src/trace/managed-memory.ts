/** What a profile shows of managed memory: copies the driver makes, and page faults. */
import type { WarningCounts } from './warning-counts.ts';

export function countManagedCopies(warnings: WarningCounts, by: number): void {
  if (by === 0) return;
  warnings.count(
    'managed-memory',
    'copies were made by the driver for managed memory: they count as copies, the faults behind them are not seen',
    { by },
  );
}

export function countPageFaults(warnings: WarningCounts, by: number): void {
  if (by === 0) return;
  warnings.count(
    'page-faults',
    'page faults of managed memory were recorded and are not modelled',
    { by },
  );
}
