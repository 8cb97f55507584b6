/** What the README shows in `console` blocks is what the commands print. `…` stands for any text. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildDist, Running } from './processes.ts';

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
});
