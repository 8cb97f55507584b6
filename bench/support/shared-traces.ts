/** What a benchmark makes of every shared trace, one after another. */
import { readdirSync } from 'node:fs';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { readTrace } from '#trace/read-trace';
import type { Timeline } from '#trace/timeline';

const KINDS = ['kineto', 'nsys', 'nvprof', 'tensorflow'];

export interface SharedTraces<T> {
  readonly rows: readonly T[];
  /** Of each trace that has none, its name and why: a line of a list. */
  readonly refused: readonly string[];
}

/**
 * Those of the folder of shared data that is named on the command line, or by `DXPU_DATA`, or is beside
 * the checkout. `rowOf` gets the short name of a trace, and that of its file.
 */
export async function ofSharedTraces<T>(
  rowOf: (timeline: Timeline, name: string, file: string) => T,
): Promise<SharedTraces<T>> {
  const data = process.argv[2] ?? process.env['DXPU_DATA'] ?? '../shared/data';
  const rows: T[] = [];
  const refused: string[] = [];
  for (const kind of KINDS) {
    const folder = path.join(data, 'traces', kind);
    for (const file of readdirSync(folder).toSorted()) {
      const short = file.replace(/(?:\.pt\.trace)?\.json(?:\.gz)?$|\.sqlite$|\.csv$/, '');
      try {
        rows.push(rowOf(await readTrace(path.join(folder, file)), `${kind}/${short}`, file));
      } catch (thrown) {
        refused.push(`- ${kind}/${file}: ${DxpuError.from(thrown).message.replaceAll(data, '…')}`);
      }
    }
  }
  return { rows, refused };
}
