/** What `dxpu emulate` prints, refuses and writes. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { printed } from '#testkit/printed';
import { emulate, emulateMicrobench } from './emulate.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'dxpu-emulate-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('dxpu emulate', () => {
  it('prints the three estimates, and writes a Chrome trace', async () => {
    const trace = path.join(folder, 'happened.json');
    const { stdout } = await printed(() =>
      emulate(undefined, { example: 'inference', seed: 1, trace, output: 'json' }),
    );
    const answer = JSON.parse(stdout);
    expect(answer.schema).toBe('dxpu.emulate/1');
    const { additiveOverheadPct, replayOverheadPct, emulatedOverheadPct } = answer.estimates;
    expect(Math.abs(answer.nativeErrorPct)).toBeLessThan(1);
    expect(Math.abs(emulatedOverheadPct - replayOverheadPct)).toBeLessThan(
      Math.max(0.3, 0.1 * replayOverheadPct),
    );
    expect(additiveOverheadPct).toBeGreaterThanOrEqual(replayOverheadPct);
    const { traceEvents } = JSON.parse(readFileSync(trace, 'utf8'));
    const phases = new Set(traceEvents.map(({ ph }: { ph: string }) => ph));
    expect(phases).toEqual(new Set(['M', 'X']));
    expect(traceEvents.every(({ dur = 0 }: { dur?: number }) => dur >= 0)).toBe(true);
    expect(new Set(traceEvents.map(({ pid }: { pid: number }) => pid))).toEqual(new Set([1, 2]));
  });

  it('says what to give', async () => {
    const options = { seed: 1, output: 'table' } as const;
    await expect(emulate(undefined, options)).rejects.toThrow('--example');
    await expect(emulate('a.json', { ...options, example: 'training' })).rejects.toThrow(
      'leave the file out',
    );
    await expect(emulate(path.join(folder, 'no.json'), options)).rejects.toThrow('no such file');
  });
});

it('dxpu emulate latency prints a row for each round trip, and draws them', async () => {
  const plot = path.join(folder, 'latency.png');
  const { stdout } = await printed(() =>
    emulateMicrobench('latency', { at: [1200, 6800], plot, output: 'table' }),
  );
  // By hand in microbench.test.ts.
  expect(stdout).toContain('1.2 us (native)  2.398 us');
  expect(stdout).toContain('6.8 us           13.597 us');
  expect(readFileSync(plot).subarray(1, 4).toString()).toBe('PNG');
});
