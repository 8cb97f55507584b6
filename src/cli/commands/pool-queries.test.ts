import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { DxpuError } from '#base/errors';
import {
  BindingSchema,
  BindingState,
  type ListBindingsRequest,
  type ListGpusRequest,
} from '#proto/generated/dxpu/pool/v1/pool_pb';
import { FakePool } from '#testkit/fake-pool';
import { printed } from '#testkit/printed';
import { describeOf } from './describe.ts';
import { eventsOf } from './events.ts';
import { explainOn } from './explain.ts';
import { getFrom } from './get.ts';

const TABLE = { output: 'table' } as const;

const BOUND: MessageInitShape<typeof BindingSchema> = {
  id: 'b7',
  state: BindingState.ATTACHED,
  host: 'h1',
  hostSlot: 1,
  box: 'b1',
  boxSlot: 3,
  gpu: '00000000-0000-4000-8000-000000000003',
  model: 'dxpu-accel',
  path: 'p0',
  generation: 12n,
  requestedBy: 'user/alice',
  requestId: 'r1',
  created: timestampFromMs(Date.UTC(2026, 0, 2, 3, 4, 5)),
  attachment: { bdf: '02:00.0', bars: [{ index: 0, address: 0xe000_0000n, sizeBytes: 65536n }] },
  live: { memoryEnable: true, busMaster: true, inUse: false, roundTripNs: 6800 },
};

describe('get', () => {
  it('goes through all pages, and is as wide as each needs', async () => {
    const tokens: string[] = [];
    const pool = new FakePool({
      listBoxes: ({ pageToken, pageSize }) => {
        tokens.push(pageToken);
        expect(pageSize).toBe(1000);
        return pageToken === ''
          ? { boxes: [{ id: 'b1', connected: true, kind: 'pcie', gpus: 4 }], nextPageToken: 'b1' }
          : { boxes: [{ id: 'a-long-name', kind: 'nvswitch', gpus: 8, gpusFree: 3 }] };
      },
    });
    const { stdout } = await printed(() => getFrom(pool, 'boxes', undefined, TABLE));
    expect(tokens).toEqual(['', 'b1']);
    expect(stdout).toBe(
      `box  agent      kind  zone  gpus  free  listens  problem
b1   connected  pcie           4     0
a-long-name  away       nvswitch           8     3
`,
    );
  });

  it('asks only for what the filters say', async () => {
    const asked: (ListGpusRequest | ListBindingsRequest)[] = [];
    const pool = new FakePool({
      listGpus: (request) => (asked.push(request), {}),
      listBindings: (request) => {
        asked.push(request);
        return { bindings: request.host === '' ? [BOUND] : [] };
      },
      listBoxes: () => ({ boxes: [{ id: 'b1' }] }),
      listHosts: () => ({ hosts: [{ id: 'h1' }] }),
    });
    const { stdout, stderr } = await printed(async () => {
      await getFrom(pool, 'gpus', undefined, { ...TABLE, box: 'b1', free: true });
      await getFrom(pool, 'bindings', 'b7', {
        ...TABLE,
        host: 'h1',
        bindingState: 'failed',
        requestId: 'r1',
      });
    });
    expect(asked).toMatchObject([
      { uuid: '', box: 'b1', freeOnly: true },
      { id: 'b7', host: 'h1', box: '', state: BindingState.FAILED, requestId: 'r1' },
      // Whether it is there at all, as none of that name fits.
      { id: 'b7', host: '', box: '', state: BindingState.UNSPECIFIED, requestId: '' },
    ]);
    // Nothing is an answer too; what is read by programs stays empty.
    expect(stdout).toBe('');
    expect(stderr).toBe('no GPU nodes\nno bindings\n');
  });

  it('gives JSON lines and one YAML list, with words and plain numbers', async () => {
    const pool = new FakePool({ listBindings: () => ({ bindings: [BOUND, { id: 'b8' }] }) });
    const json = await printed(() => getFrom(pool, 'bindings', undefined, { output: 'json' }));
    const [first = '', second = ''] = json.stdout.trimEnd().split('\n');
    expect(JSON.parse(first)).toMatchObject({
      id: 'b7',
      state: 'attached',
      generation: 12,
      created: '2026-01-02T03:04:05.000Z',
      attachment: { bdf: '02:00.0', bars: [{ index: 0, address: 0xe000_0000, sizeBytes: 65536 }] },
    });
    expect(JSON.parse(second)).toMatchObject({ id: 'b8', state: 'unspecified' });
    const yaml = await printed(() => getFrom(pool, 'bindings', undefined, { output: 'yaml' }));
    expect(parse(yaml.stdout)).toMatchObject([{ id: 'b7', leaving: false }, { id: 'b8' }]);
  });

  it.each([
    ['boxes', 'nix', {}, 'there is no box "nix"; dxpu get boxes shows'],
    ['hosts', 'nix', {}, 'there is no host "nix"; dxpu get hosts shows'],
    ['gpus', 'nix', {}, 'there is no GPU node "nix"; dxpu get gpus shows'],
    ['bindings', 'nix', {}, 'there is no binding "nix"; dxpu get bindings shows'],
    ['gpus', undefined, { box: 'nix' }, 'there is no box "nix"'],
    ['paths', undefined, { host: 'nix' }, 'there is no host "nix"'],
    ['bindings', undefined, { host: 'h1', box: 'nix' }, 'there is no box "nix"'],
  ] as const)('%s %s of %j, which is not there, is an error', async (kind, id, filter, message) => {
    const pool = new FakePool({
      listBoxes: () => ({}),
      listHosts: (request) => ({ hosts: request.id === 'h1' ? [{ id: 'h1' }] : [] }),
      listGpus: () => ({}),
      listPaths: () => ({}),
      listBindings: () => ({}),
    });
    const { stdout, thrown } = await printed(() =>
      getFrom(pool, kind, id, { output: 'yaml', ...filter }),
    );
    expect(stdout).toBe('');
    expect(thrown).toMatchObject({
      code: 'not_found',
      message: expect.stringContaining(message),
    });
  });

  it('of a box that is there and has none is an empty list', async () => {
    const pool = new FakePool({
      listBoxes: () => ({ boxes: [{ id: 'b1' }] }),
      listGpus: () => ({}),
    });
    const { stdout, thrown } = await printed(() =>
      getFrom(pool, 'gpus', undefined, { output: 'yaml', box: 'b1', free: true }),
    );
    expect(thrown).toBeUndefined();
    expect(stdout).toBe('[]\n');
  });

  it('of nobody says where it asked, and the way out', async () => {
    const pool = new FakePool({
      listHosts: () => {
        throw new ConnectError('nobody listens there', Code.Unavailable);
      },
    });
    const { thrown } = await printed(() => getFrom(pool, 'hosts', undefined, TABLE));
    expect((thrown as DxpuError).message).toMatch(
      /^no answer from the manager at 127\.0\.0\.1:7400: nobody listens there; is it running\?/,
    );
  });
});

describe('describe', () => {
  it('shows a binding with its live fields and its own log', async () => {
    const pool = new FakePool({ listBindings: () => ({ bindings: [BOUND] }) });
    const binding = create(BindingSchema, BOUND);
    for (const action of ['requested', 'reserved', 'attached']) {
      pool.append({ action, actor: 'manager', subjectKind: 'binding', subject: 'b7', binding });
    }
    pool.append({ action: 'connected', subjectKind: 'box', subject: 'b1' });
    const { stdout } = await printed(() => describeOf(pool, 'binding', 'b7', { ...TABLE, log: 2 }));
    expect(stdout).toContain(
      `binding:      b7
state:        attached
host:         h1, virtual slot 1
GPU node:     00000000-0000-4000-8000-000000000003, dxpu-accel, box b1 slot 3
path:         p0
generation:   12
function:     02:00.0, BAR0 64 KiB at 0xe0000000
live:         memory space on, bus master on, not in use, round trip 6.8 us
asked for by: user/alice, request r1
`,
    );
    expect(stdout).toMatch(/reserved\n.*attached\n$/);
    expect(stdout).not.toContain('requested');
    expect(stdout).not.toContain('connected');
  });

  it('shows the end of one that was given back, from the log', async () => {
    const pool = new FakePool({ listBindings: () => ({}) });
    // As the manager logs it; what it was to become has come true.
    const gone = create(BindingSchema, { ...BOUND, state: BindingState.FREE, leaving: true });
    pool.append({ action: 'free', subjectKind: 'binding', subject: 'b7', binding: gone });
    const { stdout } = await printed(() =>
      describeOf(pool, 'binding', 'b7', { ...TABLE, log: 10 }),
    );
    expect(stdout).toContain('state:        free\n');
  });

  it('finds a GPU node by its place; says where to look for what is not there', async () => {
    const pool = new FakePool({
      listGpus: ({ box, uuid }) => ({
        gpus:
          box === 'b1' && uuid === ''
            ? [
                { uuid: 'u0', slot: 0 },
                { uuid: 'u1', slot: 1 },
              ]
            : [],
      }),
    });
    const options = { ...TABLE, log: 10 };
    const { stdout } = await printed(() => describeOf(pool, 'gpu', 'b1/1', options));
    expect(stdout).toMatch(/^GPU node: u1\n/);
    const { thrown } = await printed(() => describeOf(pool, 'gpu', 'b1/2', options));
    expect((thrown as DxpuError).message).toBe(
      'there is no GPU node "b1/2"; dxpu get gpus shows those there are',
    );
  });

  it('gives a host with all that belongs to it, for machines in one document', async () => {
    const pool = new FakePool({
      listHosts: () => ({ hosts: [{ id: 'h1', slots: [{ slot: 0, binding: 'b7' }] }] }),
      listPaths: () => ({ paths: [{ host: 'h1', box: 'b1', path: 'p0', up: true }] }),
      listBindings: () => ({ bindings: [BOUND] }),
    });
    pool.append({ action: 'connected', subjectKind: 'host', subject: 'h2' });
    pool.append({ action: 'connected', subjectKind: 'host', subject: 'h1' });
    const { stdout } = await printed(() =>
      describeOf(pool, 'host', 'h1', { output: 'json', log: 10 }),
    );
    expect(JSON.parse(stdout)).toMatchObject({
      host: {
        id: 'h1',
        slots: [{ binding: 'b7' }],
        paths: [{ up: true }],
        bindings: [{ id: 'b7' }],
      },
      log: [{ action: 'connected', subject: 'h1' }],
    });
  });
});

describe('explain', () => {
  const OPTIONS = { gpus: 2, host: 'h1' };
  const CANDIDATES = Array.from({ length: 1201 }, (_, slot) => ({
    message: {
      case: 'candidate' as const,
      value: { box: 'b1', slot, gpu: `u${slot}`, reason: slot === 0 ? '' : 'bound' },
    },
  }));
  const REFUSAL = {
    message: {
      case: 'refusal' as const,
      value: { summary: 'no: 1 would do', reasons: [{ reason: 'bound', count: 1200 }] },
    },
  };
  const PLAN = {
    message: {
      case: 'plan' as const,
      value: {
        gpus: [{ box: 'b1', slot: 3, hostSlot: 1, path: 'p0', roundTripNs: 6800, gpu: 'u' }],
      },
    },
  };

  it('shows the grouped reasons, or the plan', async () => {
    const no = new FakePool({
      async *explain() {
        yield REFUSAL;
      },
    });
    expect((await printed(() => explainOn(no, { ...TABLE, ...OPTIONS }))).stdout).toBe(
      'no: 1 would do\ngpus  reason\n1200  bound\n',
    );
    const yes = new FakePool({
      async *explain() {
        yield PLAN;
      },
    });
    expect((await printed(() => explainOn(yes, { ...TABLE, ...OPTIONS }))).stdout).toBe(
      `it fits: 1 GPU node for host h1
vslot  box  slot  path  round trip  uuid
    1  b1      3  p0    6.8 us      u
`,
    );
  });

  it('streams every candidate with --all, the answer last', async () => {
    const pool = new FakePool({
      async *explain({ all }) {
        expect(all).toBe(true);
        yield* CANDIDATES;
        yield REFUSAL;
      },
    });
    const table = await printed(() => explainOn(pool, { ...TABLE, ...OPTIONS, all: true }));
    const lines = table.stdout.trimEnd().split('\n');
    expect(lines[1]).toMatch(/^b1 +0 +u0 +would do$/);
    // Header, all candidates, an empty line, summary and a table of one reason.
    expect(lines).toHaveLength(1 + 1201 + 1 + 3);
    const json = await printed(() => explainOn(pool, { output: 'json', ...OPTIONS, all: true }));
    const items = json.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(items).toHaveLength(1202);
    expect(items[1200]).toEqual({
      candidate: { box: 'b1', slot: 1200, gpu: 'u1200', reason: 'bound', message: '' },
    });
    expect(items[1201]).toMatchObject({ fits: false, refusal: { summary: 'no: 1 would do' } });
  });
});

describe('events', () => {
  const never = new AbortController().signal;
  function pool(entries: number): FakePool {
    const fake = new FakePool({});
    for (let position = 1; position <= entries; position++) fake.append({ action: `a${position}` });
    return fake;
  }
  const actions = (stdout: string): string[] => stdout.match(/\ba\d+\b/g) ?? [];

  it('begins where it is told to', async () => {
    const all = await printed(() => eventsOf(pool(3), { ...TABLE }, never));
    expect(actions(all.stdout)).toEqual(['a1', 'a2', 'a3']);
    const after = await printed(() => eventsOf(pool(3), { ...TABLE, after: 2 }, never));
    expect(actions(after.stdout)).toEqual(['a3']);
    const last = await printed(() => eventsOf(pool(3), { ...TABLE, last: 2 }, never));
    expect(actions(last.stdout)).toEqual(['a2', 'a3']);
  });

  it('follows over a lost manager: nothing missed, nothing twice', async () => {
    const fake = pool(2);
    const stop = new AbortController();
    const texts = { stdout: '', stderr: '' };
    const running = printed(() => eventsOf(fake, { ...TABLE, follow: true }, stop.signal), texts);
    await expect.poll(() => fake.watchedFrom).toEqual([0]);
    fake.cut();
    fake.append({ action: 'a3' });
    // Tried in vain at least once before it is back.
    await expect.poll(() => fake.watchedFrom.length).toBeGreaterThan(1);
    fake.append({ action: 'a4' });
    fake.mend();
    const tries = fake.watchedFrom.length;
    await expect.poll(() => fake.watchedFrom.length).toBeGreaterThan(tries);
    fake.append({ action: 'a5' });
    await expect.poll(() => texts.stdout).toContain('a5');
    stop.abort();
    const { stdout, stderr, thrown } = await running;
    expect(thrown).toBeUndefined();
    expect(actions(stdout)).toEqual(['a1', 'a2', 'a3', 'a4', 'a5']);
    expect(fake.watchedFrom.slice(1).every((after) => after === 2)).toBe(true);
    expect(stderr.match(/resuming when it is back/g)).toHaveLength(1);
    expect(stderr).toContain('the manager is back; nothing was missed\n');
  });

  it('says so when the manager came back with an older log', async () => {
    const fake = pool(2);
    const running = printed(() => eventsOf(fake, { ...TABLE, follow: true }, never));
    await expect.poll(() => fake.watchedFrom).toEqual([0]);
    fake.log.pop();
    fake.cut();
    fake.mend();
    expect((await running).thrown).toMatchObject({
      code: 'data_loss',
      message: expect.stringContaining('no longer reaches position 2'),
    });
  });

  it.each([{}, { last: 2 }])(
    '--follow %j waits for a manager that is away from the start (regression: status 1)',
    async (more) => {
      let isAway = true;
      const fake: FakePool = new FakePool({
        getStatus: () => {
          if (isAway) throw new ConnectError('nobody listens there', Code.Unavailable);
          return { position: BigInt(fake.log.length) };
        },
      });
      for (const action of ['a1', 'a2']) fake.append({ action });
      fake.cut();
      const stop = new AbortController();
      const texts = { stdout: '', stderr: '' };
      const options = { ...TABLE, follow: true, ...more };
      const running = printed(() => eventsOf(fake, options, stop.signal), texts);
      await expect.poll(() => texts.stderr).toContain('no answer from the manager');
      isAway = false;
      fake.mend();
      await expect.poll(() => texts.stdout, { timeout: 5000 }).toContain('a2');
      stop.abort();
      const { stdout, stderr, thrown } = await running;
      expect(thrown).toBeUndefined();
      expect(actions(stdout)).toEqual(['a1', 'a2']);
      expect(stderr.match(/no answer from the manager/g)).toHaveLength(1);
    },
  );
});
