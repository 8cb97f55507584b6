import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import type { DxpuError } from '#base/errors';
import {
  type BindRequest,
  BindingState,
  RefusalSchema,
} from '#proto/generated/dxpu/pool/v1/pool_pb';
import { fakeBinding as binding, fakeFailure as failure } from '#testkit/fake-binding';
import { FakePool } from '#testkit/fake-pool';
import { printed } from '#testkit/printed';
import { type BindOptions, bindOn } from './bind.ts';

const OPTIONS: BindOptions = {
  output: 'table',
  gpus: 2,
  host: 'h1',
  timeout: 5e9,
  retry: true,
};

/** A pool whose bindings go through `states` once they are asked for. */
function lively(states: readonly (readonly [string, BindingState, object?])[]) {
  const pool = new FakePool({
    bind: () => {
      const reserved = [binding('b1', BindingState.RESERVED), binding('b2', BindingState.RESERVED)];
      for (const one of reserved) pool.append({ action: 'reserved', binding: one });
      for (const [id, state, more] of states) pool.append({ binding: binding(id, state, more) });
      return { bindings: reserved };
    },
  });
  // Somebody else's, before: none of ours is in there.
  pool.append({ action: 'connected', subjectKind: 'box', subject: 'b1' });
  return pool;
}

describe('bind', () => {
  it('shows what was reserved, and how to follow it', async () => {
    const { stdout, stderr } = await printed(() => bindOn(lively([]), OPTIONS));
    expect(stdout).toMatch(/^binding +state +host .*\nb1 +reserved +h1 .*\nb2 +reserved +h1 /);
    expect(stderr).toBe('follow with dxpu events --follow --binding b1, or use --wait next time\n');
  });

  it('gives machines the request id, its own where one was given', async () => {
    const pool = lively([]);
    const { stdout } = await printed(() =>
      bindOn(pool, { ...OPTIONS, output: 'json', requestId: 'job-7' }),
    );
    const { requestId, bindings } = JSON.parse(stdout);
    expect(requestId).toBe('job-7');
    expect(bindings).toMatchObject([{ id: 'b1', state: 'reserved' }, { id: 'b2' }]);
    const yaml = await printed(() => bindOn(lively([]), { ...OPTIONS, output: 'yaml' }));
    expect(yaml.stdout).toMatch(/^requestId: [0-9a-f-]{36}\nbindings:\n {2}- id: b1\n/);
  });

  it('asks for what the options say', async () => {
    const asked: BindRequest[] = [];
    const pool = new FakePool({
      bind: (request) => {
        asked.push(request);
        return {};
      },
    });
    await printed(() =>
      bindOn(pool, {
        ...OPTIONS,
        model: 'm',
        memory: 2 ** 26,
        sameBox: true,
        nvlink: true,
        boxKind: 'nvswitch',
        maxRtt: 8000,
        dryRun: true,
        retry: false,
      }),
    );
    expect(asked[0]).toMatchObject({ dryRun: true, noRetry: true });
    expect(asked[0]?.demand).toMatchObject({
      gpus: 2,
      host: 'h1',
      model: 'm',
      memoryBytes: 67_108_864n,
      sameBox: true,
      nvlink: true,
      boxKind: 'nvswitch',
      maxRoundTripNs: 8000,
    });
  });

  it('--dry-run shows what would be bound, without ids, states and generations', async () => {
    const planned = { host: 'h1', hostSlot: 1, box: 'b1', boxSlot: 3, gpu: 'u3', model: 'm' };
    const pool = new FakePool({ bind: () => ({ bindings: [{ ...planned, path: 'p0' }] }) });
    const table = await printed(() => bindOn(pool, { ...OPTIONS, dryRun: true }));
    expect(table.stdout).toBe(
      `state           host  vslot  box  slot  model  path
would be bound  h1        1  b1      3  m      p0
`,
    );
    const json = await printed(() => bindOn(pool, { ...OPTIONS, dryRun: true, output: 'json' }));
    expect(JSON.parse(json.stdout)).toEqual({
      dryRun: true,
      bindings: [{ ...planned, path: 'p0' }],
    });
  });

  it('repeats a call that broke under the same id, and says so once', async () => {
    const ids: string[] = [];
    const pool = new FakePool({
      bind: ({ requestId }) => {
        ids.push(requestId);
        if (ids.length < 3) throw new ConnectError('the connection was lost', Code.Unavailable);
        return { bindings: [binding('b1', BindingState.RESERVED)] };
      },
    });
    const { stdout, stderr } = await printed(() => bindOn(pool, OPTIONS));
    expect(ids).toHaveLength(3);
    expect(new Set(ids).size).toBe(1);
    expect(stdout).toContain('b1');
    expect(stderr.match(/no answer from the manager at 127\.0\.0\.1:7400/g)).toHaveLength(1);
  });

  const unreachable = (): never => {
    const value = create(RefusalSchema, {
      summary: 'host h1 is not connected',
      reasons: [{ reason: 'host-unreachable', count: 2 }],
    });
    const details = [{ desc: RefusalSchema, value }];
    throw new ConnectError('host h1 is not connected', Code.ResourceExhausted, {}, details);
  };

  it('asks again when the manager came back before its agents, and only then', async () => {
    let calls = 0;
    const pool = new FakePool({
      bind: () => {
        calls++;
        if (calls === 1) throw new ConnectError('the connection was lost', Code.Unavailable);
        return calls < 4 ? unreachable() : { bindings: [binding('b1', BindingState.RESERVED)] };
      },
    });
    expect((await printed(() => bindOn(pool, OPTIONS))).stdout).toContain('b1');
    expect(calls).toBe(4);
    // Of a manager that was there all the time it is an answer.
    const settled = new FakePool({ bind: unreachable });
    expect((await printed(() => bindOn(settled, OPTIONS))).thrown).toMatchObject({
      code: 'resource_exhausted',
    });
  });

  it('--wait begun while the manager is away waits for its agents too (regression: refused)', async () => {
    const ids: string[] = [];
    let asked = 0;
    const pool = new FakePool({
      getStatus: () => {
        if (asked++ === 0) throw new ConnectError('nobody listens there', Code.Unavailable);
        return { position: 0n };
      },
      bind: ({ requestId }) => {
        ids.push(requestId);
        return ids.length < 3
          ? unreachable()
          : { bindings: [binding('b1', BindingState.ATTACHED)] };
      },
    });
    const { stdout, thrown } = await printed(() => bindOn(pool, { ...OPTIONS, wait: true }));
    expect(thrown).toBeUndefined();
    expect(stdout).toMatch(/b1 +attached /);
    expect(new Set(ids).size).toBe(1);
  });

  it.each([
    ['1 s ago waits for its agents, and says so', 1000, true],
    ['16 s ago has them all', 16_000, false],
  ])('of a manager that started %s', async (_title, ageMs, waits) => {
    let calls = 0;
    const pool = new FakePool({
      getStatus: () => ({ started: timestampFromMs(Date.now() - ageMs) }),
      bind: () =>
        ++calls < 3 ? unreachable() : { bindings: [binding('b1', BindingState.RESERVED)] },
    });
    const { stderr, thrown } = await printed(() => bindOn(pool, OPTIONS));
    expect(calls).toBe(waits ? 3 : 1);
    expect(thrown === undefined).toBe(waits);
    expect(stderr.match(/waiting for its agents, for 15 s at most/g)?.length ?? 0).toBe(
      waits ? 1 : 0,
    );
  });

  it('never waits for agents beyond its timeout', async () => {
    const pool = new FakePool({
      getStatus: () => ({ started: timestampFromMs(Date.now()) }),
      bind: unreachable,
    });
    const { thrown } = await printed(() => bindOn(pool, { ...OPTIONS, timeout: 2e8 }));
    expect(thrown).toMatchObject({ code: 'resource_exhausted' });
  });

  it('without an answer in time says that it may have arrived, and how to find out', async () => {
    const pool = new FakePool({
      bind: () => {
        throw new ConnectError('nobody listens there', Code.Unavailable);
      },
    });
    const options = { ...OPTIONS, timeout: 1e6, requestId: 'job-8' };
    const { thrown } = await printed(() => bindOn(pool, options));
    expect((thrown as DxpuError).code).toBe('unavailable');
    expect((thrown as DxpuError).message).toContain('repeat the command with --request-id job-8');
  });

  it('that does not fit prints the reasons with their counts and the way out', async () => {
    const refusal = create(RefusalSchema, {
      summary: '2 GPU nodes for host h1 do not fit: 1 would do; unbind some, or ask for fewer',
      reasons: [
        { reason: 'bound', count: 6, message: 'another binding has it' },
        { reason: 'model', count: 1, message: 'is dxpu-accel, not A100' },
      ],
    });
    const pool = new FakePool({
      bind: () => {
        throw new ConnectError('does not fit', Code.ResourceExhausted, {}, [
          { desc: RefusalSchema, value: refusal },
        ]);
      },
    });
    const { thrown } = await printed(() => bindOn(pool, OPTIONS));
    expect((thrown as DxpuError).message).toBe(
      `${refusal.summary}
gpus  reason
   6  bound   another binding has it
   1  model   is dxpu-accel, not A100`,
    );
    expect((thrown as DxpuError).details).toMatchObject({
      refusal: {
        reasons: [
          { reason: 'bound', count: 6 },
          { reason: 'model', count: 1 },
        ],
      },
    });
  });
});

describe('bind --wait', () => {
  const WAIT = { ...OPTIONS, wait: true };
  const { ATTACHING, ATTACHED, FAILED } = BindingState;

  it('returns once all are attached', async () => {
    const pool = lively([
      ['b1', ATTACHING],
      ['b1', ATTACHED, { attachment: { bdf: '01:00.0', bars: [] } }],
      ['b2', ATTACHED],
    ]);
    const { stdout } = await printed(() => bindOn(pool, WAIT));
    expect(stdout).toMatch(/b1 +attached +h1 +0 +01:00\.0 /);
    expect(stdout).toMatch(/b2 +attached /);
  });

  it('goes on behind what it has seen when the manager is lost', async () => {
    const pool = lively([['b1', ATTACHED]]);
    const running = printed(() => bindOn(pool, WAIT));
    // One entry from before, two reservations and b1.
    await expect.poll(() => pool.watchedFrom).toEqual([1]);
    pool.cut();
    pool.append({ binding: binding('b2', ATTACHED) });
    pool.mend();
    const { stdout, stderr } = await running;
    expect(pool.watchedFrom.at(-1)).toBe(4);
    expect(stdout).toMatch(/b2 +attached /);
    expect(stderr).toContain(
      'no answer from the manager at 127.0.0.1:7400: the connection was lost; waiting for it',
    );
  });

  it('waits for one that will be tried again, ends with one that will not', async () => {
    const pool = lively([
      ['b1', FAILED, { failure: failure('link-down', true) }],
      ['b2', ATTACHED],
      ['b1', ATTACHING],
      ['b1', FAILED, { failure: failure('no-space', false) }],
    ]);
    const { stdout, thrown } = await printed(() => bindOn(pool, WAIT));
    expect(stdout).toMatch(/b1 +failed\(no-space\) /);
    expect((thrown as DxpuError).message).toBe(
      'b1 failed(no-space): because of no-space\n' +
        'the bindings stay (b1, b2): look with dxpu describe binding b1, try again with ' +
        'dxpu retry b1 b2, give them back with dxpu unbind b1 b2',
    );
  });

  it('when the time is up says how things stand', async () => {
    const pool = lively([['b1', ATTACHED]]);
    const { stdout, thrown } = await printed(() => bindOn(pool, { ...WAIT, timeout: 2e8 }));
    expect(stdout).toMatch(/b1 +attached .*\nb2 +reserved /);
    expect((thrown as DxpuError).code).toBe('deadline_exceeded');
    expect((thrown as DxpuError).message).toMatch(
      /^not all attached within 200 ms\nthe bindings stay \(b1, b2\)/,
    );
  });

  // A retry of what its box had quarantined waited to the end, and then did not say why.
  it('when the time is up says why one has failed that is tried again', async () => {
    const pool = lively([['b1', FAILED, { failure: failure('link-down', true) }]]);
    const { thrown } = await printed(() => bindOn(pool, { ...WAIT, timeout: 2e8 }));
    expect((thrown as DxpuError).message).toMatch(
      /^not all attached within 200 ms\nb1 failed\(link-down\): because of link-down\nthe bindings stay/,
    );
  });

  // An entry from before the answer must not count.
  it('asked for again, long after, takes the answer as it is', async () => {
    const old = binding('b1', FAILED, { failure: failure('no-space', false) });
    const pool = new FakePool({
      bind: () => {
        pool.append({ binding: old });
        return { bindings: [binding('b1', ATTACHING)] };
      },
    });
    const running = printed(() => bindOn(pool, WAIT));
    await expect.poll(() => pool.watchedFrom).toHaveLength(1);
    pool.append({ binding: binding('b1', ATTACHED) });
    expect((await running).stdout).toMatch(/b1 +attached /);
  });
});
