/** `dxpu emulate` as a process: what docs/emulate.md shows, and its end by a signal. */
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nvprofSample } from '#testkit/trace-samples';
import { consoleSteps, patternOf } from './console-blocks.ts';
import { buildDist, MAIN } from './processes.ts';

const TOUR = new URL('../../docs/emulate.md', import.meta.url);
const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-emulate-tour-'));
const ENV = { ...process.env, COLUMNS: '80' };

beforeAll(buildDist);
beforeAll(() => writeFileSync(path.join(folder, 'gpu.csv'), nvprofSample()));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [MAIN, ...args],
      { cwd: folder, env: ENV, maxBuffer: 2 ** 26 },
      (_error, stdout, stderr) => resolve(stdout + stderr),
    );
  });
}

describe('the tour in docs/emulate.md', () => {
  it.each(consoleSteps(TOUR))('line $line: dxpu $args', async ({ args, expected }) => {
    expect((await run(args)).trimEnd()).toMatch(patternOf(expected));
  });
});

it('ends by Ctrl-C in the middle, even when it comes twice, and leaves no file', async () => {
  const child = spawn(
    process.execPath,
    [MAIN, 'emulate', '--example', 'training', '--whole-copies', '--capture', 'never.pcapng'],
    { cwd: folder, env: ENV },
  );
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  // It emulates as soon as there is something of the capture, under another name.
  const isBegun = (): boolean => readdirSync(folder).some((name) => name.startsWith('.never'));
  while (!isBegun() && child.exitCode === null) await new Promise((next) => setTimeout(next, 20));
  child.kill('SIGINT');
  // As of a terminal and of what passes the signal on (regression: the second one killed it at once).
  child.kill('SIGINT');
  expect(await ended).toBe(130);
  expect([stdout, stderr]).toEqual(['', 'dxpu: interrupted; 0 of 1 were done\n']);
  expect(readdirSync(folder).filter((name) => name.includes('never'))).toEqual([]);
});
