/** The shared traces, where they are: `DXPU_DATA`, or `shared/data` beside the checkout. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const folder = join(
  process.env['DXPU_DATA'] ?? join(import.meta.dirname, '../../../shared/data'),
  'traces',
);

export const hasTraces = existsSync(folder);
/** For the names of tests that are skipped without them. */
export const WHERE = 'skipped where DXPU_DATA or ../shared/data has no traces';

/** Names of the files of one kind, in order; none where there is no data. */
export function traceNames(kind: string): string[] {
  const path = join(folder, kind);
  return existsSync(path) ? readdirSync(path).toSorted() : [];
}

export function tracePath(kind: string, name: string): string {
  return join(folder, kind, name);
}
