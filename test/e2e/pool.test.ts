/** A pool of real processes, from up to down; each part builds on the one before. */
import { existsSync, readFileSync } from 'node:fs';
import * as net from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { BindingFilter } from '#cli/pool-lists';
import { type Binding, BindingState } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { buildDist, dxpu, isAlive, ManagedPool, type Running, until } from './processes.ts';

const pool = new ManagedPool();
beforeAll(buildDist);
afterAll(() => pool.end());

const { ATTACHED } = BindingState;
/** Small multiplications, a line each, until it is told to stop. */
const multiplying = (host: string, slot: string): Running => {
  const shape = ['--size', '32', '--iterations', '100000'];
  const place = ['--process', `host-${host}`, '--slot', slot];
  return pool.begin('accel', 'run', 'sgemm', ...place, ...shape);
};

const bindings = (filter: BindingFilter = {}): Promise<Binding[]> => pool.bindings(filter);

describe('dxpu up', () => {
  it('before it has been there, commands say what to do', async () => {
    const { status, stderr } = await pool.run('get', 'gpus');
    expect(status).toBe(1);
    expect(stderr).toContain(`no manager is known in ${pool.state}: start a pool with dxpu up`);
    expect((await pool.run('down')).stderr).toContain(`there is no pool in ${pool.state}`);
  });

  it('starts a manager, boxes and hosts that go on by themselves, and says how to go on', async () => {
    const { status, stdout, stderr } = await pool.up('--boxes', '2', '--gpus', '2', '--slots', '4');
    expect(stderr).toBe(`certificates and configurations in ${pool.file('')}\n`);
    expect(status).toBe(0);
    for (const name of ['manager-m1', 'box-b1', 'box-b2', 'host-h1', 'host-h2']) {
      expect(stdout).toMatch(new RegExp(`^${name} +${pool.pid(name)} +started +`, 'm'));
      expect(isAlive(pool.pid(name))).toBe(true);
      expect(existsSync(pool.file(`${name}.log`))).toBe(true);
    }
    expect(stdout).toContain('boxes      2 of 2 connected');
    expect(stdout).toContain('GPU nodes  4 of 4 free');
  });

  it.skipIf(process.platform !== 'linux')('loads koffi for none of them', () => {
    // What a box needs for devices of other processes, and a host for a VM.
    for (const name of ['box-b1', 'host-h1']) {
      const maps = readFileSync(`/proc/${pool.pid(name)}/maps`, 'utf8');
      expect(maps).toContain('[heap]');
      expect(maps).not.toContain('koffi');
    }
  });

  it('again starts nothing, and takes no other sizes', async () => {
    const pid = pool.pid('box-b1');
    const again = await pool.up('--gpus', '2');
    expect(again.status).toBe(0);
    expect(again.stdout).toMatch(/^box-b1 +\d+ +ran already/m);
    expect(pool.pid('box-b1')).toBe(pid);
    const other = await pool.up('--gpus', '3');
    expect(other.status).toBe(1);
    expect(other.stderr).toMatch(/--gpus is 3, the pool in .* was made with 2/);
  });
});

describe('what there is', () => {
  it('is shown as a table, as JSON lines, as YAML', async () => {
    const table = await pool.run('get', 'boxes');
    expect(table.stdout).toMatch(/^b1 +connected +pcie +2 +2 +/m);
    expect(table.stdout).toMatch(/^b2 +connected +nvswitch +2 +2 +/m);
    const gpus = await pool.jsonLines('get', 'gpus', '--box', 'b2');
    expect(gpus).toMatchObject([
      { box: 'b2', slot: 0, nvlinkGroup: 'nv0', memoryBytes: 2 ** 26, state: 'free' },
      { box: 'b2', slot: 1, nvlinkGroup: 'nv0', memoryBytes: 2 ** 26, state: 'free' },
    ]);
    const yaml = await pool.run('get', 'hosts', '--output', 'yaml');
    expect(parse(yaml.stdout)).toMatchObject([{ id: 'h1', connected: true }, { id: 'h2' }]);
    const paths = await pool.run('get', 'paths', '--host', 'h2');
    // `up` has waited until each host has measured each box.
    expect(paths.stdout).toMatch(/^h2 +b1 +loopback +up +[\d.]+ [um]s/m);
  });

  it('is described with windows and log', async () => {
    const { stdout } = await pool.run('describe', 'host', 'h1');
    expect(stdout).toMatch(/^agent: +connected/m);
    expect(stdout).toContain('0xe0000000-0xe00fffff  0x4000000000-0x4003ffffff');
    expect(stdout).toMatch(/host\/h1 +host h1 +connected/);
    const none = await pool.run('describe', 'gpu', 'b1/9');
    expect(none).toMatchObject({ status: 1, stdout: '' });
  });

  it('completes ids', async () => {
    const complete = async (...words: string[]): Promise<string> =>
      (await dxpu(['complete', '--', ...words])).stdout;
    // The state folder is that of the words on the line.
    const at = ['--state', pool.state];
    // Nothing when the manager is too slow; it is not, once the machine has a moment.
    const completes = (words: readonly string[], answer: string): Promise<true> =>
      until(async () => ((await complete(...words)).startsWith(answer) ? true : undefined), answer);
    await completes(['describe', 'host', ...at, ''], 'h1\t\nh2\t\n');
    await completes(['get', 'gpus', ...at, '--box', 'b'], 'b1\t\nb2\t\n');
  });
});

describe('bind', () => {
  it('--wait returns when the host can use all of them', async () => {
    const args = ['--gpus', '2', '--host', 'h1', '--same-box', '--box-kind', 'pcie', '--wait'];
    const { status, stdout, stderr } = await pool.run('bind', ...args);
    expect(stderr).toBe('');
    expect(status).toBe(0);
    expect(stdout.match(/ attached +h1 +\d +0\d:00\.0 +b1 /g)).toHaveLength(2);
    for (const slot of [0, 1]) await pool.sgemm('h1', slot);
  });

  it('asked twice with one request id acts once', async () => {
    const args = ['bind', '--gpus', '1', '--host', 'h2', '--request-id', 'e2e-1', '--wait'];
    type Answer = { readonly requestId: string; readonly bindings: { readonly id: string }[] };
    const first = (await pool.json(...args)) as Answer;
    const second = (await pool.json(...args)) as Answer;
    expect(second.requestId).toBe('e2e-1');
    expect(second.bindings.map(({ id }) => id)).toEqual(first.bindings.map(({ id }) => id));
    expect(await bindings({ requestId: 'e2e-1' })).toHaveLength(1);
    const other = await pool.run(...args, '--model', 'dxpu-accel');
    expect(other.status).toBe(1);
    expect(other.stderr).toContain('e2e-1');
  });

  it('of more than there is says why, with counts; explain and --dry-run too', async () => {
    const demand = ['--gpus', '2', '--host', 'h1'];
    const { status, stderr, stdout } = await pool.run('bind', ...demand);
    expect(status).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/^dxpu: .*\ngpus +reason\n +3 +bound +/);
    const explained = await pool.run('explain', ...demand);
    expect(explained.status).toBe(0);
    expect(explained.stdout).toMatch(/^ +3 +bound /m);
    const all = await pool.jsonLines('explain', ...demand, '--all');
    expect(all).toHaveLength(4 + 1);
    expect(all.filter(({ candidate }) => candidate !== undefined)).toHaveLength(4);
    const dry = await pool.run('bind', '--gpus', '1', '--host', 'h2', '--dry-run');
    expect(dry.status).toBe(0);
    expect(await bindings()).toHaveLength(3);
    const machine = await pool.run('bind', ...demand, '--output', 'json');
    expect(JSON.parse(machine.stderr)).toMatchObject({
      error: { code: 'resource_exhausted', details: { refusal: { reasons: expect.any(Array) } } },
    });
  });

  it('of what cannot be says so', async () => {
    const unknown = await pool.run('bind', '--gpus', '1', '--host', 'h9');
    expect(unknown.status).toBe(1);
    expect(unknown.stderr).toContain('h9');
    const model = await pool.run('bind', '--gpus', '1', '--host', 'h1', '--model', 'A100');
    expect(model.stderr).toMatch(/ model /);
    for (const [args, text] of [
      [['--gpus', '5000', '--host', 'h1'], 'not a whole number from 1 to 4096'],
      [['--gpus', '1', '--host', 'h/1'], 'cannot be a name'],
      [['--gpus', '1'], "required option '--host <host>' not specified"],
    ] as const) {
      const { status, stderr } = await pool.run('bind', ...args);
      expect(status).toBe(2);
      expect(stderr).toContain(text);
    }
  });
});

describe('a manager that is killed', () => {
  it('stops no traffic, and its successor knows everything; events go on without a gap', async () => {
    const extra = await pool.json('bind', '--gpus', '1', '--host', 'h2', '--wait');
    const [{ id: leaving }] = (extra as { bindings: [{ id: string }] }).bindings;
    const before = (await bindings()).filter(({ id }) => id !== leaving);
    const loop = multiplying('h1', '0');
    await loop.says(/^3: /m);
    const events = pool.begin('events', '--follow', '--output', 'json');
    await events.says(/"position":3,/);

    await pool.kill('manager-m1');
    await events.says(/resuming when it is back/);
    const count = Number(/(\d+): [^\n]*\n$/.exec(loop.stdout)?.[1]);
    await loop.says(new RegExp(`^${count + 20}: `, 'm'));
    // A change while nobody is there waits for the successor.
    const late = pool.begin('unbind', leaving, '--wait');
    await late.says(/trying for/);
    expect((await pool.up()).stdout).toMatch(/^manager-m1 +\d+ +started/m);
    const { status, stdout } = await late.ended;
    expect(status).toBe(0);
    expect(stdout).toMatch(/ free +h2 /);

    const after = await bindings();
    for (const { id, generation } of before) {
      expect(after.find((one) => one.id === id)).toMatchObject({ state: ATTACHED, generation });
    }
    const reached = Number(/(\d+): [^\n]*\n$/.exec(loop.stdout)?.[1]);
    await loop.says(new RegExp(`^${reached + 20}: `, 'm'));
    await loop.stop('SIGINT');
    // Every iteration was checked and is there, and nothing else was said.
    const iterations = [...loop.stdout.matchAll(/^(\d+): /gm)].map((match) => Number(match[1]));
    expect(iterations).toEqual(iterations.map((_, index) => index + 1));
    expect(loop.stderr).toBe('');

    await events.says(/nothing was missed/);
    await events.stop('SIGINT');
    const positions = [...events.stdout.matchAll(/"position":(\d+)/g)].map((match) =>
      Number(match[1]),
    );
    expect(positions).toEqual(positions.map((_, index) => index + 1));
  });
});

describe('a box that is killed', () => {
  it('comes back with its bindings, under new generations', async () => {
    const before = await bindings({ box: 'b1' });
    expect(before).toHaveLength(2);
    await pool.kill('box-b1');
    await expect(pool.sgemm('h1', 0)).rejects.toThrow();
    expect((await pool.up()).status).toBe(0);
    const after = await until(async () => {
      const now = await bindings({ box: 'b1' });
      const back = now.filter(({ id, state, generation }) => {
        const was = before.find((one) => one.id === id);
        return state === ATTACHED && was !== undefined && generation > was.generation;
      });
      return back.length === 2 ? back : undefined;
    }, 'both bindings under new generations');
    expect(new Set(after.map(({ generation }) => generation)).size).toBe(2);
    for (const { hostSlot } of after) {
      await pool.sgemm('h1', hostSlot);
    }
    const log = await pool.run('describe', 'binding', after[0]?.id ?? '');
    expect(log.stdout).toMatch(/ failed +(?:box-restarted|link-down): /);
  });
});

describe('unbind', () => {
  it('--wait returns when the GPU node is scrubbed and free', async () => {
    const [first] = await bindings({ host: 'h1' });
    const { id = '', box = '', boxSlot = 0 } = first ?? {};
    const { status, stderr } = await pool.run('unbind', id, '--wait');
    expect(stderr).toBe('');
    expect(status).toBe(0);
    const gpu = await pool.run('describe', 'gpu', `${box}/${boxSlot}`);
    expect(gpu.stdout).toMatch(/^state: +free$/m);
    const again = await pool.run('unbind', id);
    expect(again.status).toBe(1);
    expect(again.stderr).toContain(id);
  });

  it('waits for a program of the host; --force does not', async () => {
    const [first] = await bindings({ host: 'h1' });
    const { id = '', hostSlot = 0 } = first ?? {};
    const job = multiplying('h1', String(hostSlot));
    await job.says(/^2: /m);
    const { status, stderr } = await pool.run('unbind', id, '--wait', '--timeout', '1s');
    expect(status).toBe(1);
    expect(stderr).toContain(`dxpu unbind --force ${id} does not wait`);
    expect((await pool.run('unbind', id, '--force', '--wait')).status).toBe(0);
    // Its function is gone: the program sees an error, and no wrong result.
    const { status: ended, stderr: why } = await job.ended;
    expect(ended).toBe(1);
    expect(why).not.toContain('is wrong at element');
    expect(await bindings({ host: 'h1' })).toEqual([]);
  });
});

describe('dxpu status', () => {
  it('has the pool first, then each process with its log', async () => {
    const { stdout, status } = await pool.run('status');
    expect(status).toBe(0);
    expect(stdout).toMatch(/^pool: manager at 127\.0\.0\.1:\d+/);
    expect(stdout).toContain(`log in ${pool.file('box-b2.log')}`);
    expect(stdout).toMatch(/^manager m1: pid \d+/m);
    const json = (await pool.json('status')) as { pool: object; processes: { kind: string }[] };
    expect(json.pool).toMatchObject({ gpus: 4, boxesConnected: 2, bindingsFailed: 0 });
    expect(json.processes.map(({ kind }) => kind).sort()).toEqual([
      'box',
      'box',
      'host',
      'host',
      'manager',
    ]);
  });
});

describe('dxpu down', () => {
  it('ends all of them, one that does not listen too, and keeps what the manager knows', async () => {
    const names = ['manager-m1', 'box-b1', 'box-b2', 'host-h1', 'host-h2'];
    const pids = names.map((name) => pool.pid(name));
    const kept = await bindings();
    process.kill(pool.pid('host-h2'), 'SIGSTOP');
    const { status, stdout } = await pool.run('down');
    expect(stdout).toMatch(/^manager-m1: stopped\nhost-h1: stopped\nhost-h2: ended by SIG/);
    expect(status).toBe(0);
    for (const pid of pids) expect(isAlive(pid)).toBe(false);
    expect((await pool.run('get', 'bindings')).stderr).toMatch(
      /cannot connect to the manager at .*; is it running\?.*dxpu up/,
    );

    // A port that somebody has taken meanwhile: what is in the way is said, the rest is started.
    const port = Number(
      /127\.0\.0\.1:(\d+)"\]/.exec(readFileSync(pool.file('box-b2.yaml'), 'utf8'))?.[1],
    );
    // Hosts that look for the box come here: they are sent away, or it would never close.
    const taker = net.createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => taker.listen(port, '127.0.0.1', resolve));
    const partly = await pool.up();
    expect(partly.status).toBe(1);
    expect(partly.stderr).toMatch(
      /^dxpu: box-b2 ended with status 1; its last words:\n.*the port is in use/,
    );
    expect(partly.stderr).toContain('what was started runs on: dxpu up starts the rest');
    await new Promise((resolve) => taker.close(resolve));
    expect((await pool.up()).stdout).toMatch(
      /^box-b1 +\d+ +ran already .*\nbox-b2 +\d+ +started /m,
    );
    const back = await until(async () => {
      const now = await bindings();
      return now.length > 0 && now.every(({ state }) => state === ATTACHED) ? now : undefined;
    }, 'the bindings of before');
    expect(back.map(({ id }) => id)).toEqual(kept.map(({ id }) => id));
  });

  it('--purge removes the pool, and nothing else', async () => {
    expect(readFileSync(pool.file('pool.yaml'), 'utf8')).toContain('gpus: 2');
    const { status, stdout } = await pool.run('down', '--purge');
    expect(status).toBe(0);
    expect(stdout).toMatch(/removed .*\/pool\n$/);
    expect(existsSync(pool.file('pool.yaml'))).toBe(false);
    expect(existsSync(pool.state)).toBe(true);
  });
});
