/**
 * What the README shows in `console` blocks is what the commands print; `…` stands for any text. Its
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
import { configFile, poolFolder } from '#cli/pool-folder';
import { issueFiles } from '#identity/certificates';
import { buildDist, ROOT, Running } from './processes.ts';

interface Step {
  readonly line: number;
  readonly input: string | undefined;
  readonly args: readonly string[];
  readonly expected: string;
}

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8').split('\n');

/** The commands of all `console` blocks in order, each with the output the README shows. */
function steps(): Step[] {
  const found: Step[] = [];
  let inBlock = false;
  let expected: string[] = [];
  for (const [index, line] of README.entries()) {
    if (!inBlock) inBlock = line === '```console';
    else if (line === '```') inBlock = false;
    else if (line.startsWith('$ ')) {
      const match = /^\$ (?:echo (\S+) \| )?dxpu (.*)$/.exec(line);
      if (match === null) throw new Error(`README.md line ${index + 1}: not a command of dxpu`);
      const lines: string[] = [];
      expected = lines;
      found.push({
        line: index + 1,
        input: match[1],
        args: (match[2] ?? '').split(' '),
        get expected() {
          return lines.join('\n');
        },
      });
    } else expected.push(line);
  }
  return found;
}

/** Makes `folder` one where the README's program runs as it stands, but for the port. */
async function program(folder: string, state: string): Promise<string> {
  const [port = 0] = readManagerConfig(configFile(state, 'manager-m1')).listen.map(
    (one) => one.port,
  );
  const source = /```ts\n([^]*?)```/.exec(README.join('\n'))?.[1] ?? '';
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

function pattern(text: string): RegExp {
  const escaped = text.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('.*')}\\s*$`);
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
    expect(steps().length).toBeGreaterThanOrEqual(10);
  });
  it.each(steps())('line $line: dxpu $args', async ({ args, input, expected }) => {
    const { stdout, stderr } = await new Running(args, input).ended;
    expect((stdout + stderr).trimEnd()).toMatch(pattern(expected));
  });
  it('its program binds two GPU nodes of one box', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-program-'));
    try {
      const file = await program(folder, state);
      const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: folder });
      expect(stdout).toMatch(/^b\d+: slot \d of box (b[12])\nb\d+: slot \d of box \1\n$/);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
