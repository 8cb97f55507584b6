// The allow-list of .dependency-cruiser.cjs, tried on a small tree of planted
// imports: each forbidden one is reported under its rule, no other one is.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');

const LAYERS =
  'base proto pcie fabric devices host vfio-user vm trace perfmodel emulator placement ' +
  'simulator report manager agent cli dashboard testkit';

let tree: string;
beforeEach(() => {
  tree = mkdtempSync(path.join(tmpdir(), 'dxpu-boundaries-'));
  for (const file of ['package.json', 'tsconfig.json', '.dependency-cruiser.cjs']) {
    cpSync(path.join(root, file), path.join(tree, file));
  }
  for (const folder of ['src', 'test', 'bench', 'soak']) mkdirSync(path.join(tree, folder));
  // One module in each layer, to be imported.
  for (const layer of LAYERS.split(' ')) plant(`src/${layer}/it.ts`, 'export const it = 1;');
});
afterEach(() => rmSync(tree, { recursive: true, force: true }));

function plant(file: string, text: string): void {
  mkdirSync(path.dirname(path.join(tree, file)), { recursive: true });
  writeFileSync(path.join(tree, file), `${text}\n`);
}

/** Plants `file` with an import of each of `specifiers`. */
function plantImports(file: string, ...specifiers: string[]): void {
  const lines = specifiers.map((from, i) => `import { it as it${i} } from '${from}';`);
  plant(
    file,
    [...lines, `export const all = [${lines.map((_, i) => `it${i}`).join()}];`].join('\n'),
  );
}

/** Runs `npm run boundaries` as package.json has it, over the planted tree. */
function check(): { status: number | null; found: string[] } {
  const depcruise = path.join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const manifest = readFileSync(path.join(tree, 'package.json'), 'utf8');
  const { scripts } = JSON.parse(manifest) as { scripts: { boundaries: string } };
  const [command, ...args] = scripts.boundaries.split(' ');
  expect(command).toBe('depcruise');
  const result = spawnSync(process.execPath, [depcruise, ...args], {
    cwd: tree,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' },
  });
  expect(result.stderr).toBe('');
  const found = result.stdout.matchAll(/^ *error ([\w-]+): (\S+) →\s+(\S+)/gm);
  return {
    status: result.status,
    found: Array.from(found, ([, rule, from, to]) => `${rule}: ${from} -> ${to}`).sort(),
  };
}

describe('boundaries', () => {
  test('imports that the table names pass', () => {
    plantImports('src/pcie/a.ts', '#base/it', './it.ts');
    plantImports('src/emulator/a.ts', '#fabric/it', '#devices/it', '#host/it', '#trace/it');
    plantImports('src/agent/a.ts', '#proto/it', '#vm/it', '#vfio-user/it');
    plantImports('src/cli/a.ts', '#manager/it', '#agent/it', '#dashboard/it');
    plantImports('src/pcie/a.test.ts', '#testkit/it', '#base/it', './it.ts');
    plantImports('src/testkit/a.ts', '#cli/it', '#manager/it');
    plantImports('test/e2e/a.test.ts', '#testkit/it', '#cli/it');
    plantImports('bench/a.ts', '#fabric/it');

    expect(check()).toEqual({ status: 0, found: [] });
  });

  test('an import that the table does not name fails', () => {
    plantImports('src/base/a.ts', '#pcie/it');
    plant('src/fabric/a.ts', "export type T = typeof import('#manager/it');");
    plant('src/cli/a.ts', "export const load = () => import('#testkit/it');");
    plantImports('src/host/a.test.ts', '#devices/it');
    plantImports('src/zoo/a.ts', '#base/it');
    plantImports('bench/a.ts', '#testkit/it');

    const { status, found } = check();
    expect(found).toEqual([
      'base: src/base/a.ts -> src/pcie/it.ts',
      'cli: src/cli/a.ts -> src/testkit/it.ts',
      'fabric: src/fabric/a.ts -> src/manager/it.ts',
      'host-tests: src/host/a.test.ts -> src/devices/it.ts',
      'known-layer: src/zoo/a.ts -> src/base/it.ts',
      'testkit-in-tests-only: bench/a.ts -> src/testkit/it.ts',
      'testkit-in-tests-only: src/cli/a.ts -> src/testkit/it.ts',
    ]);
    expect(status).toBe(found.length);
  });

  test('circles, relative imports of another layer and missing modules fail', () => {
    plantImports('src/pcie/a.ts', './b.ts');
    plantImports('src/pcie/b.ts', './a.ts');
    plantImports('src/trace/a.ts', '../base/it.ts');
    plantImports('bench/a.ts', '../src/base/it.ts');
    plantImports('src/vm/a.ts', '#base/nope');
    plantImports('src/vm/b.ts', './c.test.ts');
    plantImports('src/vm/c.test.ts', './it.ts');

    const { status, found } = check();
    expect(found).toEqual([
      'no-cycles: src/pcie/a.ts -> src/pcie/b.ts',
      'no-import-of-tests: src/vm/b.ts -> src/vm/c.test.ts',
      'resolvable: src/vm/a.ts -> #base/nope',
      'subpath-between-layers: src/trace/a.ts -> src/base/it.ts',
      'subpath-from-outside: bench/a.ts -> src/base/it.ts',
    ]);
    expect(status).toBe(found.length);
  });
});
