import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { bashScript } from './completion-bash.ts';
import { completionsOf } from './completion.ts';
import { buildProgram } from './program.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-completion-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function complete(...words: string[]): Promise<{ values: string[]; directive: number }> {
  const { values, directive } = await completionsOf(buildProgram(), words);
  return { values: values.map(({ value }) => value), directive };
}

describe('completion', () => {
  it('gives commands, subcommands and flags', async () => {
    expect(await complete('ca')).toEqual({ values: ['capture'], directive: 4 });
    expect((await complete('cert', '')).values).toEqual(['init', 'issue']);
    expect((await complete('fault', 'link', '--c')).values).toEqual(['--cut', '--clear']);
  });

  it('gives the values of --output within subcommands, in either form (regression: none)', async () => {
    expect((await complete('accel', 'run', '--output', '')).values).toEqual([
      'table',
      'json',
      'yaml',
    ]);
    expect((await complete('status', '--output=j')).values).toEqual(['json']);
  });

  it('gives the links and examples of predict, and its forms of output', async () => {
    expect(await complete('predict', '--link', 'dx')).toEqual({
      values: ['dxpu-6.8us', 'dxpu-4.9us'],
      directive: 0,
    });
    expect((await complete('predict', '--output', '')).values).toContain('csv');
    expect((await complete('predict', '--example', 'g')).values).toEqual(['graph-decode']);
    for (const words of [[''], ['--plot', ''], ['a.json', '']]) {
      expect(await complete('predict', ...words)).toEqual({ values: [], directive: 0 });
    }
  });

  it('gives files where emulate takes them, and options where they are taken', async () => {
    expect(await complete('emulate', 'tr')).toEqual({ values: [], directive: 0 });
    expect((await complete('emulate', 'l')).values).toEqual(['latency', 'launch-rate']);
    const flags = (await complete('emulate', 'latency', '--')).values;
    expect(flags).toContain('--at');
    expect(flags).not.toContain('--capture');
    expect(flags).not.toContain('--fetches');
    expect(flags.filter((flag) => flag === '--output')).toHaveLength(1);
    expect((await complete('emulate', 'latency', '--output', 'c')).values).toEqual(['csv']);
  });

  it('gives the processes of a state folder (regression: none)', async () => {
    writeFileSync(path.join(folder, 'host-h1.sock'), '');
    writeFileSync(path.join(folder, 'box-b1.sock'), '');
    const { values } = await complete('status', '--state', folder, '--process', '');
    expect(values).toEqual(['host-h1', 'box-b1']);
  });

  it('leaves files and folders to the shell (regression: never offered)', async () => {
    for (const words of [
      ['decode', ''],
      ['replay', ''],
      ['host', '--config', ''],
      ['capture', '0', '-o', ''],
      ['emulate', '--trace', ''],
      ['emulate', 'a.json', '--capture', ''],
    ]) {
      expect(await complete(...words), words.join(' ')).toEqual({ values: [], directive: 0 });
    }
    expect(await complete('cert', 'init', '--dir', '')).toEqual({ values: [], directive: 16 });
    expect(await complete('capture', '--count', '')).toEqual({ values: [], directive: 4 });
  });
});

describe('the bash script', () => {
  /** What bash offers where the cursor is at the end of `line`; `answer` is what the command says. */
  function offered(line: string, words: string[], answer: string): string {
    const script = `set -eu
dxpu() { printf '%s' "$*" > asked; printf '%b' "$ANSWER"; }
${bashScript('dxpu')}
${bashScript('dxpu')}
COMP_LINE=${JSON.stringify(line)} COMP_POINT=${line.length}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}) COMP_CWORD=${words.length - 1}
__dxpu_complete
echo "$(cat asked)|\${COMPREPLY[*]-}"`;
    // No start-up files: no bash-completion, whose functions the script must not need.
    return execFileSync('bash', ['--norc', '--noprofile', '-c', script], {
      cwd: folder,
      env: { PATH: process.env.PATH, ANSWER: answer },
      encoding: 'utf8',
    }).trim();
  }

  it('works alone, sourced twice (regression: needed bash-completion; readonly errors)', () => {
    expect(offered('dxpu ca', ['dxpu', 'ca'], 'capture\\trecord\\n:4\\n')).toBe(
      'complete -- ca|capture',
    );
    expect(offered('dxpu fault ', ['dxpu', 'fault', ''], 'link\\t\\n:4\\n')).toBe(
      'complete -- fault |link',
    );
    // Bash parts words at =.
    expect(offered('dxpu --output=', ['dxpu', '--output', '='], 'text\\t\\njson\\t\\n:4\\n')).toBe(
      'complete -- --output=|text json',
    );
  });

  it('offers files where told to', () => {
    writeFileSync(path.join(folder, 'a b.pcapng'), '');
    expect(offered('dxpu decode a', ['dxpu', 'decode', 'a'], ':0\\n')).toContain('a b.pcapng');
    // Names beside the files, as of a link.
    expect(offered('dxpu x a', ['dxpu', 'x', 'a'], 'ab\\tname\\n:0\\n')).toMatch(
      /\|ab .*a b\.pcapng/,
    );
  });
});
