/**
 * What the README shows in `console` blocks is what the commands print. Its
 * program runs in the pool of those commands.
 */

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readManagerConfig } from '#cli/manager-config';
import { withPool } from '#cli/pool-connection';
import { configFile, poolFolder } from '#cli/pool-folder';
import { hostHasPaths } from '#cli/pool-ready';
import { issueFiles } from '#identity/certificates';
import { consoleSteps, patternOf } from './console-blocks.ts';
import { buildDist, ROOT, Running } from './processes.ts';

const FILE = new URL('../../README.md', import.meta.url);

/** Makes `folder` one where the README's program runs as it stands, but for the port. */
async function program(folder: string, state: string): Promise<string> {
  const [port = 0] = readManagerConfig(configFile(state, 'manager-m1')).listen.map(
    (one) => one.port,
  );
  const source = /```ts\n([^]*?)```/.exec(readFileSync(FILE, 'utf8'))?.[1] ?? '';
  expect(source).toContain('port: 7000,');
  await issueFiles(poolFolder(state), { kind: 'user', id: 'alice' }, { nowMs: Date.now() });
  symlinkSync(poolFolder(state), path.join(folder, 'certs'));
  mkdirSync(path.join(folder, 'node_modules'));
  symlinkSync(ROOT, path.join(folder, 'node_modules/dxpu'));
  const { outputText } = ts.transpileModule(source.replace('7000', `${port}`), {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  });
  const file = path.join(folder, 'program.mjs');
  writeFileSync(file, outputText);
  return file;
}

describe('README', () => {
  const state = mkdtempSync(path.join(os.tmpdir(), 'dxpu-readme-'));
  let started: Running;

  beforeAll(buildDist);
  beforeAll(async () => {
    process.env.DXPU_STATE = state;
    started = new Running(['start']);
    await started.says(/Running until Ctrl-C/, 60_000);
  });
  afterAll(async () => {
    await started.stop('SIGINT');
    delete process.env.DXPU_STATE;
    rmSync(state, { recursive: true, force: true });
  });

  it('shows at least ten commands', () => {
    expect(consoleSteps(FILE).length).toBeGreaterThanOrEqual(10);
  });
  it.each(consoleSteps(FILE))('line $line: dxpu $args', async ({ args, input, expected }) => {
    const { stdout, stderr } = await new Running(args, input).ended;
    expect((stdout + stderr).trimEnd()).toMatch(patternOf(expected));
  });
  it('its program binds two GPU nodes of one box', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-program-'));
    try {
      // A command before it cuts all connections for a second.
      const isBack = await withPool({ state, output: 'table' }, (pool) =>
        hostHasPaths(pool, 'h1', 20_000),
      );
      expect(isBack, 'h1 reaches its boxes again').toBe(true);
      const file = await program(folder, state);
      const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: folder });
      expect(stdout).toMatch(/^b\d+: slot \d of box (b[12])\nb\d+: slot \d of box \1\n$/);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
