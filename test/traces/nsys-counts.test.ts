/** Every shared export of Nsight Systems, counted by plain SQL. */
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { readTrace } from '#trace/read-trace';
import { hasTraces, traceNames, tracePath, WHERE } from './shared-traces.ts';
import { countsOf } from './trace-figures.ts';
import type { Copies, TraceCounts } from './trace-figures.ts';

const RUNTIME = 'CUPTI_ACTIVITY_KIND_RUNTIME';

/** Calls that no earlier call of their thread reaches beyond, and their names. */
const OUTERMOST = `
  SELECT name, correlation FROM (
    SELECT s.value AS name, r.correlationId AS correlation, r."end" AS finish,
      max(r."end") OVER (PARTITION BY r.globalTid ORDER BY r.start, r."end" DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM ${RUNTIME} r JOIN StringIds s ON s.id = r.nameId)
  WHERE before IS NULL OR finish > before`;

function sqlCounts(path: string): TraceCounts {
  const db = new Sqlite(path, { readonly: true });
  try {
    const has = (name: string): boolean =>
      db.prepare('SELECT 1 FROM sqlite_master WHERE name = ?').get(name) !== undefined;
    const one = (sql: string): number => Number(db.prepare(sql).pluck().get() ?? 0);
    const copies = (kind: number): Copies => {
      const from = `FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = ${kind}`;
      return {
        count: one(`SELECT count(*) ${from}`),
        bytes: one(`SELECT sum(bytes) ${from}`),
      };
    };
    const tables = ['KERNEL', 'MEMCPY', 'MEMSET']
      .map((kind) => `CUPTI_ACTIVITY_KIND_${kind}`)
      .filter(has);
    const work = tables
      .map((table) => `SELECT correlationId AS c FROM ${table}`)
      .join(' UNION ALL ');
    const calls = (like: string): number =>
      one(`SELECT count(*) FROM (${OUTERMOST}) WHERE name LIKE '${like}'`);
    const hasKinds = one(
      "SELECT count(*) FROM pragma_table_info('CUPTI_ACTIVITY_KIND_MEMCPY') WHERE name = 'dstKind'",
    );
    const pageable = hasKinds
      ? one(`SELECT count(*) FROM (${OUTERMOST}) c JOIN CUPTI_ACTIVITY_KIND_MEMCPY m
          ON m.correlationId = c.correlation
          WHERE c.name LIKE '%MemcpyAsync%' AND m.copyKind = 2 AND m.dstKind = 0`)
      : 0;
    return {
      kernels: one('SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL'),
      kernelsAtMost10us: one(
        'SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE "end" - start <= 10000',
      ),
      memsets: has('CUPTI_ACTIVITY_KIND_MEMSET')
        ? one('SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMSET')
        : 0,
      graphLaunches: calls('%GraphLaunch%'),
      submissions: one(`SELECT count(DISTINCT c) FROM (${work})`),
      hostWaits: calls('%Synchronize%') + calls('cudaMemcpy') + calls('cudaMemcpy\\_v%') + pageable,
      queries: calls('%EventQuery%') + calls('%StreamQuery%'),
      htod: copies(1),
      dtoh: copies(2),
      dtod: copies(8),
    };
  } finally {
    db.close();
  }
}

describe.skipIf(!hasTraces)(`counts of Nsight Systems exports (${WHERE})`, () => {
  it.each(traceNames('nsys'))('%s', async (name) => {
    const path = tracePath('nsys', name);
    expect(countsOf(await readTrace(path))).toEqual(sqlCounts(path));
  });
});
