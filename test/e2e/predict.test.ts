/** `dxpu predict` as a process: what docs/predict.md shows, threads, signals, pipes. */
import { execFile, spawn } from 'node:child_process';
import { linkSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { syntheticKineto } from '#trace/synthetic-kineto';
import { consoleSteps, patternOf } from './console-blocks.ts';
import { buildDist, MAIN } from './processes.ts';

const TOUR = new URL('../../docs/predict.md', import.meta.url);
const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-tour-'));
const at = (name: string): string => path.join(folder, name);

beforeAll(buildDist);
beforeAll(() => {
  for (const rank of [0, 1]) {
    writeFileSync(at(`rank${rank}.json`), [...syntheticKineto(1, rank)].join(''));
  }
  writeFileSync(at('rank2.json'), '{"schema": "1.0.2-chakra.0.0.4", "pid": 1, "nodes": []}');
  const [, yaml = ''] =
    /^```yaml\n# lab\.yaml\n([^]*?)^```/m.exec(readFileSync(TOUR, 'utf8')) ?? [];
  writeFileSync(at('lab.yaml'), yaml);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

const ENV = { ...process.env, COLUMNS: '80' };

function run(args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [MAIN, ...args],
      { cwd: folder, env: ENV },
      (error, stdout, stderr) => {
        resolve({ status: error === null ? 0 : Number(error.code), stdout, stderr });
      },
    );
  });
}

/** What a busy machine makes of it: more than a second. */
const PROGRESS = /^(?:\d+ of \d+ done; )?(?:reading|predicting) .*\n/gm;

describe('the tour in docs/predict.md', () => {
  it.each(consoleSteps(TOUR))('line $line: dxpu $args', async ({ args, expected }) => {
    const { stdout, stderr } = await run(args);
    const text = stdout + stderr.replaceAll(PROGRESS, '');
    expect(text.trimEnd()).toMatch(patternOf(expected));
  });

  it('shows at least six commands', () => {
    expect(consoleSteps(TOUR).length).toBeGreaterThanOrEqual(6);
  });
});

describe('predict as a process', () => {
  it('ends with 0, 1 or 2, and answers of the good ones among several', async () => {
    const some = await run([
      'predict',
      'rank0.json',
      'rank2.json',
      'rank1.json',
      '--output=json',
      '--plot=some.svg',
    ]);
    expect(some.status).toBe(1);
    expect(some.stdout.trimEnd().split('\n')).toHaveLength(2);
    const [line = ''] = some.stderr.split('\n');
    expect(JSON.parse(line)).toMatchObject({
      error: { message: expect.stringContaining('rank2.json') },
    });
    const picture = readFileSync(at('some.svg'));
    const good = await run([
      'predict',
      'rank0.json',
      'rank1.json',
      '--output=json',
      '--plot=good.svg',
    ]);
    expect([good.status, good.stderr]).toEqual([0, 'wrote good.svg\n']);
    // The same bytes, whoever else was read.
    expect(good.stdout).toBe(some.stdout);
    expect(readFileSync(at('good.svg')).equals(picture)).toBe(true);
    expect((await run(['predict'])).status).toBe(2);
    expect((await run(['get', 'gpus', '--output', 'csv'])).status).toBe(2);
  });

  it('ends by Ctrl-C in the middle, with what is done so far and no file', async () => {
    // Enough for many seconds, under names of their own.
    const names = Array.from({ length: 3000 }, (_, index) => `copy${index}.json`);
    for (const name of names) linkSync(at('rank0.json'), at(name));
    const child = spawn(process.execPath, [MAIN, 'predict', ...names, '--html', 'never.html'], {
      cwd: folder,
      env: ENV,
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    await new Promise<void>((resolve) => {
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        stderr += text;
        if (/^[1-9]\d* of 3000 done;/m.test(stderr)) resolve();
      });
      child.once('close', () => resolve());
    });
    child.kill('SIGINT');
    expect(await ended).toBe(130);
    expect(stdout).toMatch(/^copy0 +\d/m);
    expect(stderr).toMatch(/\ndxpu: \d+ of 3000 traces have no answer\ndxpu: interrupted\n$/);
    expect(readdirSync(folder).filter((name) => /never|tmp/.test(name))).toEqual([]);
  });
});
