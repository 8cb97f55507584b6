import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { percent } from './figures.ts';
import { type TextColumn, textTable } from './text-table.ts';

it('the example of README.md runs', () => {
  // README example
  const columns: TextColumn[] = [
    { title: 'trace', squeeze: 'middle', least: 12 },
    { title: 'overhead', align: 'right' },
    { title: 'lost by', squeeze: 'wrap' },
  ];
  const rows = [['jobs/2026/rank-00001.json.gz', percent(13.24), 'copies to the device']];
  const lines = textTable(columns, rows, 48);
  // end
  const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
  const source = readFileSync(new URL('./readme.test.ts', import.meta.url), 'utf8');
  const run = /\/\/ README example\n([\s\S]*?)\n *\/\/ end/.exec(source)?.[1] ?? '';
  for (const line of run.split('\n')) expect(readme).toContain(line.trim());
  const [, block = ''] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  const shown = [...block.matchAll(/^\/\/ (.*)$/gm)].map(([, line]) => line);
  expect(lines).toEqual(shown);
});
