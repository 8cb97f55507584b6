/**
 * What `dxpu simulate` finds on the shared lists, as docs/simulate-findings.md and its plots, which it
 * writes. `npm run bench -- simulate-findings [FOLDER]`; without FOLDER, `DXPU_DATA` or ../shared/data.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { pictures } from '#simulator/answer-plot';
import type { SimulateResult } from '#simulator/result';
import { findingsPage, type Findings } from './support/findings-page.ts';
import { OPENB_LISTS, Studies, type Study } from './support/findings-run.ts';

const POLICIES = 'fgd,best-fit,first-fit,gpu-packing,random,placement';
const SEEDS = ['--seeds', '42..51'];
const FEW_SEEDS = ['--seeds', '42..46'];
const FEWEST = ['--seeds', '42..44', '--policy', 'fgd', '--arrived', '5', '--fewest'];
const IN_TIME = ['--policy', 'fgd,best-fit', '--overhead', '0,5,10,20', ...FEW_SEEDS];
const FAILURES = ['--gpu-mtbf', '10000', '--server-mtbf', '20000', '--box-mtbf', '20000'];
const SLOTS = [2, 4, 8, 16, 32];
const REACH = ['--reach', 'rack,pod,datacenter'];

const data = process.argv[2] ?? process.env['DXPU_DATA'] ?? '../shared/data';
const studies = new Studies(data);
try {
  const findings: Findings = {
    fills: await each((list) => studies.openb(list, '--policy', POLICIES, ...SEEDS)),
    reach: await studies.openb(
      'default',
      '--policy',
      'fgd',
      '--design',
      'pool',
      ...REACH,
      '--slots',
      SLOTS.join(','),
      ...FEW_SEEDS,
    ),
    fewest: await each((list) => studies.openb(list, ...FEWEST)),
    fewestByReach: await studies.openb('default', ...FEWEST, ...REACH),
    fewestBySlots: await studies.openb('default', ...FEWEST, '--slots', '4,8,32'),
    calm: await studies.muri(48, ...IN_TIME),
    failing: await studies.muri(48, ...IN_TIME, ...FAILURES),
    lighter: await studies.muri(64, ...IN_TIME),
    slots: SLOTS,
  };
  mkdirSync('docs/plots', { recursive: true });
  for (const [list, { result }] of findings.fills) {
    const drawn = only(result, ({ policy }) => policy === 'fgd' || policy === 'best-fit');
    write(`simulate-${list}`, pictures(drawn)[0]);
  }
  const best = only(findings.calm.result, ({ policy }) => policy === 'best-fit');
  const [, , waits] = pictures(best);
  const first = only(best, ({ setting }) => Number(setting['overheadPct'] ?? 0) === 0);
  write('simulate-muri-allocated', pictures(first)[0]);
  write('simulate-muri-queue', pictures(first)[1]);
  write('simulate-muri-overhead', waits);
  writeFileSync('docs/simulate-findings.md', findingsPage(findings));
  process.stdout.write('docs/simulate-findings.md and docs/plots/simulate-*.svg\n');
} finally {
  studies.close();
}

async function each(run: (list: string) => Promise<Study>): Promise<[string, Study][]> {
  const all: [string, Study][] = [];
  for (const list of OPENB_LISTS) all.push([list, await run(list)]);
  return all;
}

function only(
  result: SimulateResult,
  keeps: (run: SimulateResult['runs'][number]) => boolean,
): SimulateResult {
  return { schema: result.schema, runs: result.runs.filter(keeps), summary: [] };
}

function write(name: string, svg: string | undefined): void {
  if (svg === undefined) throw new Error(`nothing to draw for ${name}`);
  writeFileSync(`docs/plots/${name}.svg`, svg);
}
