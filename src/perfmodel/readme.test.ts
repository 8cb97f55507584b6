import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { linkProfile } from '#pcie/link-profile';
import { readTrace } from '#trace/read-trace';
import { predict } from './predict.ts';

/** One launch of a kernel of 100 µs, and a wait for it: 109 µs. */
const TRACE = {
  traceEvents: [
    {
      ph: 'X',
      cat: 'cuda_runtime',
      name: 'cudaLaunchKernel',
      pid: 1,
      tid: 1,
      ts: 1000,
      dur: 5,
      args: { correlation: 1 },
    },
    {
      ph: 'X',
      cat: 'cuda_runtime',
      name: 'cudaDeviceSynchronize',
      pid: 1,
      tid: 1,
      ts: 1005,
      dur: 104,
      args: { correlation: 2 },
    },
    {
      ph: 'X',
      cat: 'kernel',
      name: 'k',
      pid: 0,
      tid: 7,
      ts: 1006,
      dur: 100,
      args: { correlation: 1, device: 0, stream: 7 },
    },
  ],
};

function linesOf(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .join('\n')
    .trim();
}

it('the example of README.md runs, and what it imports is open', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-perfmodel-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'trace.json');
  writeFileSync(file, JSON.stringify(TRACE));
  const lines: string[] = [];

  // README example
  const timeline = await readTrace(file);
  const links = [
    linkProfile({}),
    linkProfile({ extends: 'dxpu-4.9us', name: 'faster', tags: 256 }),
  ];
  for (const { link, replay, additive, budgets } of predict(timeline, links, { file })) {
    const overheadPct = replay?.overheadPct ?? additive.overheadPct;
    const { replayMaxRttNs } = budgets.find((budget) => budget.overheadPct === 10) ?? {};
    lines.push(
      `${link.name}: ${overheadPct?.toFixed(1)} %, 10 % up to ${replayMaxRttNs?.toFixed(0)} ns`,
    );
  }
  // end

  // A submission of 1.5 round trips and half a round trip of waiting: 2 × 5.6 and 2 × 3.7 of 109 µs.
  // 10 %, 10.9 µs, are used up at 5.45 added to 1.2.
  expect(lines).toEqual([
    'dxpu-6.8us: 10.3 %, 10 % up to 6650 ns',
    'faster: 6.8 %, 10 % up to 6650 ns',
  ]);

  const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
  const source = readFileSync(new URL('./readme.test.ts', import.meta.url), 'utf8');
  const shown = /```ts\n([\s\S]*?)\n```/.exec(readme)?.[1] ?? '';
  const run = /\/\/ README example\n([\s\S]*?)\n *\/\/ end/.exec(source)?.[1] ?? '';
  const [, imports = '', body = ''] = /^((?:import .*\n)+)\n([\s\S]*)$/.exec(shown) ?? [];
  expect(linesOf(body)).toBe(linesOf(run));
  for (const [, name = '', from = ''] of imports.matchAll(
    /import \{ (\w+) \} from 'dxpu\/(.+)';/g,
  )) {
    const module = sourceOf(from);
    expect(existsSync(module), module).toBe(true);
    expect(readFileSync(module, 'utf8')).toMatch(
      new RegExp(`export (?:async )?function ${name}\\b`),
    );
  }
});

/** The source of what `exports` of package.json opens under the name. */
function sourceOf(name: string): string {
  const root = path.join(import.meta.dirname, '../..');
  const { exports } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, { default: string }>;
  };
  const whole = exports[`./${name}`]?.default;
  const [folder = '', ...rest] = name.split('/');
  const built = whole ?? exports[`./${folder}/*`]?.default.replace('*', rest.join('/')) ?? '';
  return path.join(root, built.replace('./dist/', 'src/').replace(/\.js$/, '.ts'));
}
