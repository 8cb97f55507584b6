/** `dxpu simulate` as a process: what docs/simulate.md shows, threads, parts. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { consoleSteps, patternOf } from './console-blocks.ts';
import { buildDist, MAIN } from './processes.ts';

const TOUR = new URL('../../docs/simulate.md', import.meta.url);
const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-simulate-tour-'));
const at = (name: string): string => path.join(folder, name);
const STUDY = ['simulate', '--example', '--seeds', '1..4'];

beforeAll(buildDist);
beforeAll(async () => {
  for (const part of [1, 2, 3]) {
    const { stdout } = await run([...STUDY, '--shard', `${part}/3`, '--output', 'json']);
    writeFileSync(at(`part${part}.json`), stdout);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(args: readonly string[]): Promise<Ended> {
  const options = { cwd: folder, env: { ...process.env, COLUMNS: '80' } };
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], options, (error, stdout, stderr) => {
      resolve({ status: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

describe('the tour in docs/simulate.md', () => {
  it.each(consoleSteps(TOUR))('line $line: dxpu $args', async ({ args, expected }) => {
    const { stdout, stderr } = await run(args);
    expect((stdout + stderr).trimEnd()).toMatch(patternOf(expected));
  });

  it('makes its parts as the test does', () => {
    expect(readFileSync(TOUR, 'utf8')).toContain(
      `dxpu ${STUDY.join(' ')} --shard $k/3 --output json`,
    );
  });
});

describe('simulate as a process', () => {
  it('gives the bytes of the whole from its parts, and the same ones every time', async () => {
    const files = ['part2.json', 'part3.json', 'part1.json'];
    const [whole, again, merged] = await Promise.all([
      run([...STUDY, '--output', 'json']),
      run([...STUDY, '--output', 'json']),
      run(['simulate', 'merge', ...files, '--output', 'json']),
    ]);
    expect([whole.status, whole.stderr]).toEqual([0, '']);
    expect(again.stdout).toBe(whole.stdout);
    expect(merged.stdout).toBe(whole.stdout);
  });

  it('ends with 1 for a part that will not do, with 2 for wrong usage, in the form asked for', async () => {
    const double = ['simulate', 'merge', 'part1.json', 'part1.json', '--output', 'json'];
    const { status, stdout, stderr } = await run(double);
    expect([status, stdout]).toEqual([1, '']);
    expect(JSON.parse(stderr)).toMatchObject({
      error: { code: 'invalid_argument', details: { file: 'part1.json' } },
    });
    expect((await run(['simulate'])).status).toBe(2);
    expect((await run(['simulate', '--nodes', 'none.csv', '--pods', 'none.csv'])).status).toBe(1);
  });
});
