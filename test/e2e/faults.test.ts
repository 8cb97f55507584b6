import { writeFileSync } from 'node:fs';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildDist, isAlive, Pool, until } from './processes.ts';

let pool: Pool;
beforeAll(buildDist);
beforeEach(async () => {
  pool = new Pool();
  await pool.prepare();
});
afterEach(() => pool.end());

interface Slot {
  readonly state: string;
}

async function slotStates(process: string): Promise<string[]> {
  const { stdout } = await pool.run('status', '--process', process, '--output', 'json');
  const { processes } = JSON.parse(stdout) as { processes: { slots: Slot[] }[] };
  return processes[0]?.slots.map((slot) => slot.state) ?? [];
}

const sgemm = ['accel', 'run', 'sgemm', '--size', '48'];

describe('a connection cut', () => {
  it('for 1 s in the middle of a run: nothing is lost and nobody notices', async () => {
    const { host } = await pool.startPair();
    const run = pool.begin(...sgemm, '--iterations', '200', '--output', 'json');
    await until(async () => {
      const { stdout } = await pool.run('fault', 'link', '--cut', '1s');
      return stdout === '' ? undefined : stdout;
    }, 'the cut');
    await host.says(/connection lost, resuming/);
    const { status, stdout, stderr } = await run.ended;
    expect(stderr).toBe('');
    expect(status).toBe(0);
    const { timesNs, checked } = JSON.parse(stdout) as { timesNs: number[]; checked: boolean };
    expect(timesNs).toHaveLength(200);
    expect(checked).toBe(true);
    await host.says(/session resumed/);
  });

  it('for 5 s fails the run, until a table with a higher generation comes', async () => {
    const { host, box } = await pool.startPair();
    const run = pool.begin(...sgemm, '--iterations', '1000000');
    await run.says(/^3: /m);
    await pool.run('fault', 'link', '--cut', '5s');
    const { status, stderr } = await run.ended;
    expect(status).toBe(1);
    expect(stderr).toMatch(/^dxpu: /);
    await host.says(/slot down virtualSlot=0 generation=1 surprise=true/);
    expect(await slotStates('host-h1')).toEqual(['contained', 'contained']);
    const refused = await pool.run(...sgemm, '--output', 'json');
    expect(refused.status).toBe(1);
    expect(JSON.parse(refused.stderr)).toMatchObject({
      error: { code: 'unavailable', details: { slot: 0, state: 'contained' } },
    });

    // The table as it was changes nothing: it takes a generation that was never used.
    const same = await pool.run('reload');
    expect(same.status).toBe(0);
    expect(same.stdout).toMatch(
      /host-h1: 2 rows in force, 2 contained\n {2}slot 0 is contained: link to box b1 is down: .*; to bind it anew, raise its generation in both files to more than 1, then dxpu reload\n/,
    );
    expect(await slotStates('host-h1')).toEqual(['contained', 'contained']);
    pool.write({ generation: 2 });
    expect((await pool.run('reload')).status).toBe(0);
    await host.says(/function added slot=0[^]*function added slot=0/);
    expect(await slotStates('box-b1')).toEqual(['ready', 'ready']);
    const again = await pool.run(...sgemm);
    expect(again.stderr).toBe('');
    expect(again.stdout).toMatch(/correct/);
    expect(box.child.exitCode).toBe(null);
  });
});

describe('a box killed in the middle of a run', () => {
  it('makes the run end with an error while the host lives on', async () => {
    const { host, box } = await pool.startPair();
    const run = pool.begin(...sgemm, '--iterations', '1000000', '--output', 'json');
    await until(async () => {
      const { stdout } = await pool.run('status', '--process', 'host-h1', '--output', 'json');
      return /"MWr32":\d{3}/.test(stdout) ? true : undefined;
    }, 'traffic');
    await box.stop('SIGKILL');
    const { status, stderr } = await run.ended;
    expect(status).toBe(1);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'unavailable' } });
    expect(isAlive(host.pid)).toBe(true);
    expect(await slotStates('host-h1')).toEqual(['contained', 'contained']);

    // A new box process knows nothing of the session; a new generation binds the slots again.
    pool.write({ generation: 5 });
    const next = pool.start('box');
    await next.says(/ready control=/);
    expect((await pool.run('reload', '--process', 'host-h1')).status).toBe(0);
    await host.says(/slot up virtualSlot=1 generation=5/);
    await host.says(/function added slot=1[^]*function added slot=1/);
    expect((await pool.run(...sgemm, '--slot', '1')).stdout).toMatch(/correct/);
  });
});

describe('lost and delayed frames', () => {
  it('are recovered from', async () => {
    await pool.startPair();
    await pool.run('fault', 'link', '--drop', '2%', '--delay', '50us');
    const run = await pool.run(...sgemm, '--iterations', '20');
    expect(run.stderr).toBe('');
    expect(run.status).toBe(0);
    const { stdout } = await pool.run('status', '--output', 'json');
    const { processes } = JSON.parse(stdout) as {
      processes: { faults: { droppedFrames: number; delayedFrames: number } }[];
    };
    expect(Math.max(...processes.map(({ faults }) => faults.droppedFrames))).toBeGreaterThan(0);
    expect(Math.max(...processes.map(({ faults }) => faults.delayedFrames))).toBeGreaterThan(0);
    const cleared = await pool.run('fault', 'link', '--clear');
    expect(cleared.stdout).toContain('box-b1, host-h1: earlier faults cleared');
  });
});

describe('a reload', () => {
  it('with a mistake in the file keeps the table in force and names the place', async () => {
    const { box } = await pool.startPair();
    writeFileSync(pool.file('box.yaml'), 'box: b1\nliston: []\n');
    const { status, stderr } = await pool.run('reload', '--process', 'box-b1');
    expect(status).toBe(1);
    expect(stderr).toMatch(/^dxpu: box-b1: the table in force stays: /);
    expect(stderr).toContain(
      `${pool.file('box.yaml')}:2:1: liston: unknown field; did you mean listen?`,
    );
    box.child.kill('SIGHUP');
    await box.says(/reload refused, the table in force stays/);
    expect(await slotStates('box-b1')).toEqual(['ready', 'ready']);
    expect((await pool.run(...sgemm)).stdout).toMatch(/correct/);
  });

  it('by SIGHUP puts a new table in force', async () => {
    const { box, host } = await pool.startPair();
    pool.write({ generation: 9 });
    box.child.kill('SIGHUP');
    await box.says(/table reloaded rows=2/);
    host.child.kill('SIGHUP');
    await host.says(/slot up virtualSlot=0 generation=9/);
    const { stdout } = await pool.run('tables', '--output', 'json');
    const { tables } = JSON.parse(stdout) as { tables: { rows: { generation: number }[] }[] };
    expect(tables.flatMap(({ rows }) => rows.map((row) => row.generation))).toEqual([9, 9, 9, 9]);
  });
});
