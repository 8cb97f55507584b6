/** A break-even in words. */
import * as figures from '#report/figures';
import type { BreakEvenRow } from './result.ts';

/** `3.4 %`, `9.1 ± 0.4 %`, `none: it saves nothing`, `over 20 %`; and how many seeds say so. */
export function overheadWords(row: BreakEvenRow): string {
  const { by, overheadPct, overheadPctStdev, sweptPct, seeds, none = 0, beyond = 0 } = row;
  if (by !== 'wait') {
    return overheadPct !== null && overheadPct > 0
      ? figures.percent(overheadPct)
      : 'none: it saves nothing';
  }
  const least = `waits longer even at ${figures.percent(sweptPct?.least ?? 0)}`;
  const most = `over ${figures.percent(sweptPct?.most ?? 0)}`;
  if (none === seeds) return `none: ${least}`;
  if (beyond === seeds) return most;
  const spread = seeds > 1 ? ` ± ${(overheadPctStdev ?? 0).toFixed(2)}` : '';
  const crossed = overheadPct === null ? [] : [`${overheadPct.toFixed(2)}${spread} %`];
  const others = [
    ...(none > 0 ? [`${least} in ${none} of ${seeds} seeds`] : []),
    ...(beyond > 0 ? [`${most} in ${beyond} of ${seeds} seeds`] : []),
  ];
  return [...crossed, ...others].join('; ');
}
