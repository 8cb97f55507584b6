import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
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

  // It once ended with 0, and left a socket and a process behind.
  it('told to stop before it has shown anything ends with 130 and leaves nothing', async () => {
    const state = path.join(folder, 'early');
    for (const [signal, status] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const start = new Running(['start', '--state', state]);
      // The box serves, the host is being started.
      const pid = Number((await start.says(/box proxy: process (\d+)/))[1]);
      expect(await start.stop(signal)).toMatchObject({ status, signal: null, stderr: '' });
      expect(isAlive(pid)).toBe(false);
      expect(readdirSync(state)).toEqual(['start']);
    }
  });

  it('whose reader goes away ends its processes before itself', async () => {
    const state = path.join(folder, 'reader');
    const start = new Running(['start', '--once', '--state', state]);
    await start.says(/box proxy/);
    start.child.stdout?.destroy();
    await new Promise((resolve) => start.child.once('exit', resolve));
    expect(readdirSync(state)).toEqual(['start']);
  });

  it('ended by dxpu stop says so, with 0; two at once do not mix', async () => {
    const state = path.join(folder, 'stopped');
    const both = ['a', 'b'].map(() => new Running(['start', '--size', '16', '--state', state]));
    const loser = await Promise.race(both.map(async (one) => (await one.ended, one)));
    expect(await loser.ended).toMatchObject({ status: 1, stdout: '' });
    expect(loser.stderr).toMatch(/another dxpu start is at work in|is running already in/);
    const winner = both.find((one) => one !== loser) as Running;
    await winner.says(/Running until Ctrl-C/);
    const stop = await dxpu(['stop', '--state', state]);
    expect(stop).toMatchObject({
      status: 0,
      stdout: 'box-b1: stopped\nhost-h1: stopped\n',
      stderr: '',
    });
    const { status, stdout, stderr } = await winner.ended;
    expect(stderr).toBe('');
    expect(status).toBe(0);
    expect(stdout).toMatch(/stopped by dxpu stop, or by a signal to one of the two\n$/);
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
