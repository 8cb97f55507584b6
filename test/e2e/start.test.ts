import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildDist, dxpu, isAlive, Running, until } from './processes.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-start-'));
beforeAll(buildDist);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const childPids = (text: string): number[] =>
  [...text.matchAll(/: process (\d+), log in/g)].map((match) => Number(match[1]));

async function allGone(pids: readonly number[]): Promise<void> {
  await until(() => (pids.some(isAlive) ? undefined : true), `the end of ${pids.join(', ')}`);
}

describe('dxpu start --once', () => {
  it('runs an sgemm on each binding, shows what happened, and leaves nothing behind', async () => {
    const { status, stdout, stderr } = await dxpu(['start', '--once', '--size', '64']);
    expect(stderr).toBe('');
    expect(status).toBe(0);
    expect(stdout).toContain('2 boxes with 8 GPU nodes and 2 hosts are connected');
    // Two GPU nodes of one box to one host, one of the other box to the other host.
    for (const [slot, box, bus, host] of [
      [0, 'b1', '01', 'h1'],
      [1, 'b1', '02', 'h1'],
      [0, 'b2', '01', 'h2'],
    ]) {
      expect(stdout).toContain(`slot ${slot} of box ${box} is ${bus}:00.0 of host ${host}`);
      expect(stdout).toContain(
        `sgemm 64x64x64 on ${bus}:00.0 of host ${host}: all 4096 elements equal a plain computation`,
      );
    }
    for (const host of ['h1', 'h2']) {
      expect(stdout).toMatch(
        new RegExp(`Mapping table of host ${host}\n.*\n.*vslot +used +bus.*\n.* ready\n`),
      );
    }
    expect(stdout).toMatch(
      /Mapping table of box b1\n.*\n.*slot +valid +used +host.*(?:\n.* ready){2}\n/,
    );
    expect(stdout).toMatch(/\nBindings\n(?:.*\n)(?: +b\d +attached .*\n){3}/);
    expect(stdout).toMatch(/\nPaths.*\n(?:.*\n)(?: +h\d +b\d +loopback +up +[\d.]+ [um]s.*\n){4}/);
    expect(stdout).toMatch(/MMIO read through both proxies over mutual TLS +[\d.]+ [um]s\n/);
    expect(stdout).toMatch(/raw TCP socket, 68 bytes each way +[\d.]+ [um]s\n/);
    const pids = childPids(stdout);
    expect(pids).toHaveLength(5);
    await allGone(pids);
    const own = /certificates and configurations in (\S+)\/pool/.exec(stdout)?.[1];
    expect(existsSync(own ?? '/')).toBe(false);
  });
});

describe('dxpu start', () => {
  async function started(name: string): Promise<{ start: Running; pids: number[]; state: string }> {
    const state = path.join(folder, name);
    const start = new Running(['start', '--size', '16', '--state', state]);
    await start.says(/Running until Ctrl-C/, 60_000);
    return { start, pids: childPids(start.stdout), state };
  }

  it('stays up, offers commands that work, and ends with its processes at Ctrl-C', async () => {
    const { start, pids, state } = await started('a');
    const offered = (pattern: RegExp): readonly string[] => {
      const [, ...args] = pattern.exec(start.stdout)?.[1]?.split(' ') ?? [];
      return args;
    };
    const bind = await dxpu(
      offered(/node (\S+ bind --gpus 2 --host h2 --nvlink --wait --state \S+)/),
    );
    expect(bind.stdout.match(/ attached +h2 /g)).toHaveLength(2);
    const run = await dxpu(offered(/node (\S+ accel run sgemm .*--size 256 --state \S+)/));
    expect(run.stderr).toBe('');
    expect(run.stdout).toMatch(/sgemm 256x256x256 on slot 1 \(02:00\.0\): correct/);

    const second = await dxpu(['start', '--state', state]);
    expect(second.status).toBe(1);
    expect(second.stderr).toMatch(/^dxpu: [a-z]+-[a-z]1 is running already in /);
    expect(pids.every(isAlive)).toBe(true);

    expect(await start.stop('SIGINT')).toMatchObject({ status: 0, signal: null });
    await allGone(pids);

    // The bindings of before come back, each under a generation that was never used; no more are made.
    const again = new Running(['start', '--size', '16', '--state', state]);
    await again.says(/Running until Ctrl-C/, 60_000);
    expect((await dxpu(['down', '--state', state])).status).toBe(0);
    const { stdout, status, stderr } = await again.ended;
    expect(stderr).toBe('');
    expect(status).toBe(0);
    expect(stdout).toMatch(/\nstopped by dxpu down or stop, /);
    expect(stdout).toContain('the pool as it was in ');
    const resumed = [...stdout.matchAll(/^binding (b\d): .*, resumed under generation (\d+)$/gm)];
    expect(resumed.map((match) => match[1])).toEqual(['b1', 'b2', 'b3', 'b4', 'b5']);
    for (const match of resumed) expect(Number(match[2])).toBeGreaterThan(5);
    expect(stdout.match(/: all 256 elements equal a plain computation/g)).toHaveLength(5);
  });

  // It once ended with 0, and left a socket and a process behind.
  it('told to stop before it has shown anything ends with 130 and leaves nothing', async () => {
    const state = path.join(folder, 'early');
    for (const [signal, status] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const start = new Running(['start', '--state', state]);
      // The manager serves, the others are being started.
      const pid = Number((await start.says(/manager-m1: process (\d+)/))[1]);
      expect(await start.stop(signal)).toMatchObject({ status, signal: null, stderr: '' });
      expect(isAlive(pid)).toBe(false);
      expect(readdirSync(state)).toEqual(['pool']);
    }
  });

  it('whose reader goes away ends its processes before itself', async () => {
    const state = path.join(folder, 'reader');
    const start = new Running(['start', '--once', '--state', state]);
    await start.says(/manager-m1: process/);
    start.child.stdout?.destroy();
    await new Promise((resolve) => start.child.once('exit', resolve));
    expect(readdirSync(state)).toEqual(['pool']);
  });

  it('ended by dxpu stop says so, with 0; two at once do not mix', async () => {
    const state = path.join(folder, 'stopped');
    const both = ['a', 'b'].map(() => new Running(['start', '--size', '16', '--state', state]));
    const loser = await Promise.race(both.map(async (one) => (await one.ended, one)));
    expect(await loser.ended).toMatchObject({ status: 1, stdout: '' });
    expect(loser.stderr).toMatch(
      /another dxpu up, down or start is at work in|is running already in/,
    );
    const winner = both.find((one) => one !== loser) as Running;
    await winner.says(/Running until Ctrl-C/, 60_000);
    const stop = await dxpu(['stop', '--state', state]);
    expect(stop).toMatchObject({
      status: 0,
      stdout: ['manager-m1', 'box-b2', 'box-b1', 'host-h2', 'host-h1']
        .map((name) => `${name}: stopped\n`)
        .join(''),
      stderr: '',
    });
    const { status, stdout, stderr } = await winner.ended;
    expect(stderr).toBe('');
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /stopped by dxpu down or stop, or by a signal to one of its processes\n$/,
    );
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
    expect(stderr).toMatch(/^dxpu: manager-m1 was ended by SIGKILL; its last words:/);
    expect(stderr).not.toContain('    at ');
    await allGone(pids);
  });
});
