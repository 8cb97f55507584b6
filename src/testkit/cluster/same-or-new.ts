/** The report before, while it says the same: whoever compares is quick then. */
export function sameOrNew<T extends object>(keeper: { shown: T | undefined }, report: T): T {
  const { shown } = keeper;
  if (shown !== undefined) {
    const keys = Object.keys(report) as (keyof T)[];
    if (keys.every((key) => shown[key] === report[key])) return shown;
  }
  keeper.shown = report;
  return report;
}
