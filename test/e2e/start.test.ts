import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildDist, dxpu, isAlive, Running, until } from './processes.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-start-'));
beforeAll(buildDist);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const childPids = (text: string): number[] =>
  [...text.matchAll(/proxy: process (\d+)/g)].map((match) => Number(match[1]));

async function allGone(pids: readonly number[]): Promise<void> {
  await until(() => (pids.some(isAlive) ? undefined : true), `the end of ${pids.join(', ')}`);
}

describe('dxpu start --once', () => {
  it('checks an sgemm on each accelerator, shows what happened, and leaves nothing behind', async () => {
    const { status, stdout, stderr } = await dxpu(['start', '--once', '--size', '64']);
    expect(stderr).toBe('');
    expect(status).toBe(0);
    for (const bus of ['01', '02']) {
      expect(stdout).toContain(
        `sgemm 64x64x64 on ${bus}:00.0: all 4096 elements equal a plain computation`,
      );
    }
    expect(stdout).toMatch(/Mapping table of host h1\n.*vslot +used +bus/);
    expect(stdout).toMatch(/Mapping table of box b1\n.*slot +valid +used +host/);
    expect(stdout).toMatch(/ 0 +MWr32 +[1-9]\d* +[1-9]\d*\n/);
    expect(stdout).toMatch(/ 1 +CplD +[1-9]\d* +[1-9]\d*\n/);
    expect(stdout).toMatch(/MMIO read through both proxies over mutual TLS +[\d.]+ [um]s\n/);
    expect(stdout).toMatch(/raw TCP socket, 68 bytes each way +[\d.]+ [um]s\n/);
    expect(stdout).toMatch(/link to box b1: up over path loopback, round trip/);
    const pids = childPids(stdout);
    expect(pids).toHaveLength(2);
    await allGone(pids);
    const own = /certificates and configurations in (\S+)/.exec(stdout)?.[1];
    expect(existsSync(own ?? '/')).toBe(false);
  });
});

describe('dxpu start', () => {
  async function started(name: string): Promise<{ start: Running; pids: number[]; state: string }> {
    const state = path.join(folder, name);
    const start = new Running(['start', '--size', '16', '--state', state]);
    await start.says(/Running until Ctrl-C/);
    return { start, pids: childPids(start.stdout), state };
  }

  it('stays up, offers commands that work, and ends with its processes at Ctrl-C', async () => {
    const { start, pids, state } = await started('a');
    const offered = /node (\S+ accel run sgemm --slot 1 --size 256 --state \S+)/.exec(start.stdout);
    const [, ...args] = offered?.[1]?.split(' ') ?? [];
    const run = await dxpu(args);
    expect(run.stderr).toBe('');
    expect(run.stdout).toMatch(/sgemm 256x256x256 on slot 1 \(02:00\.0\): correct/);

    const second = await dxpu(['start', '--state', state]);
    expect(second.status).toBe(1);
    expect(second.stderr).toContain(`host-h1 is running already in ${state}`);
    expect(pids.every(isAlive)).toBe(true);

    expect(await start.stop('SIGINT')).toMatchObject({ status: 0, signal: null });
    await allGone(pids);
  });

  it('killed outright takes its processes along', async () => {
    const { start, pids } = await started('b');
    await start.stop('SIGKILL');
    await allGone(pids);
  });

  it('ends with 1 and says which process died', async () => {
    const { start, pids } = await started('c');
    process.kill(pids[0] ?? 0, 'SIGKILL');
    const { status, stderr } = await start.ended;
    expect(status).toBe(1);
    expect(stderr).toMatch(/^dxpu: box was ended by SIGKILL; its last words:/);
    expect(stderr).not.toContain('    at ');
    await allGone(pids);
  });
});
