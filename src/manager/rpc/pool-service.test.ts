/** Calls of users over real sockets: what is checked, what is answered, and watching. */
import * as https from 'node:https';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DxpuError } from '#base/errors';
import { secureOptions } from '#identity/tls-identity';
import { failure, ServerRig } from '#testkit/server-rig';

let rig: ServerRig;
let first: ServerRig | undefined;
beforeEach(async () => {
  rig = await ServerRig.start(first);
  first ??= rig;
});
afterEach(() => {
  rig.end();
  expect(rig.faults).toEqual([]);
});

describe('requests', () => {
  it('are told which field is wrong', async () => {
    const { pool: rpc } = rig.client(rig.alice);
    const demand = { gpus: 1, host: 'h1' };
    const wrong: [() => Promise<unknown>, string][] = [
      [() => rpc.bind({ demand }), 'request_id'],
      [() => rpc.bind({ requestId: 'a b', demand }), 'request_id'],
      [() => rpc.bind({ requestId: 'x'.repeat(65), demand }), 'request_id'],
      [() => rpc.bind({ requestId: 'r1' }), 'demand'],
      [() => rpc.bind({ requestId: 'r1', demand: { ...demand, gpus: 0 } }), 'demand.gpus'],
      [() => rpc.bind({ requestId: 'r1', demand: { ...demand, gpus: 4097 } }), 'demand.gpus'],
      [() => rpc.bind({ requestId: 'r1', demand: { gpus: 1 } }), 'demand.host'],
      [() => rpc.bind({ requestId: 'r1', demand: { ...demand, host: '../h1' } }), 'demand.host'],
      [
        () => rpc.bind({ requestId: 'r1', demand: { ...demand, boxKind: 'usb' } }),
        'demand.box_kind',
      ],
      [
        () => rpc.bind({ requestId: 'r1', demand: { ...demand, model: '\u001b[2J' } }),
        'demand.model',
      ],
      [
        () => rpc.bind({ requestId: 'r1', demand: { ...demand, memoryBytes: 2n ** 60n } }),
        'demand.memory_bytes',
      ],
      [
        () => rpc.bind({ requestId: 'r1', demand: { ...demand, maxRoundTripNs: -1 } }),
        'demand.max_round_trip_ns',
      ],
      [() => rpc.unbind({ requestId: 'r1' }), 'bindings'],
      [() => rpc.unbind({ requestId: 'r1', bindings: ['b1', 'b1'] }), 'bindings[1]'],
      [() => rpc.unbind({ requestId: 'r1', bindings: ['b1', ''] }), 'bindings[1]'],
      [() => rpc.listBindings({ pageSize: 1001 }), 'page_size'],
      [() => rpc.listBindings({ pageSize: -1 }), 'page_size'],
      [() => rpc.listBindings({ pageToken: 'x' }), 'page_token'],
      [() => rpc.listBindings({ state: 8 }), 'state'],
      [() => rpc.listBoxes({ id: 'a/b' }), 'id'],
    ];
    for (const [call, field] of wrong) {
      const error = await failure(call());
      expect(error).toMatchObject({ code: 'invalid_argument', details: { field } });
      expect(error.message).toContain(`${field}: `);
    }
    expect(rig.pool.commands).toEqual([]);
  });

  it('of a million items are told how many they may have', async () => {
    const bindings = Array.from({ length: 1e6 }, (_, index) => `b${index}`);
    const error = await failure(rig.client(rig.alice).pool.unbind({ requestId: 'r1', bindings }));
    expect(error).toMatchObject({ code: 'invalid_argument', details: { field: 'bindings' } });
    expect(error.message).toContain('has 1000000 entries, at most 10000 can be');
  });

  it('larger than any request may be are refused before they are looked at', async () => {
    const { pool: rpc } = rig.client(rig.alice);
    const bindings = Array.from({ length: 300_000 }, () => 'x'.repeat(63));
    const error = await failure(rpc.unbind({ requestId: 'r1', bindings }));
    expect(error.code).toBe('resource_exhausted');
  });

  it('curl will do: JSON over HTTP/1.1', async () => {
    const answer = await postJson('GetStatus', {});
    expect(answer).toMatchObject({ status: 200, body: { version: '0.1.0', gpus: 5 } });
    const refusal = await postJson('Bind', {
      requestId: 'r1',
      demand: { gpus: 1, host: 'h1', gpu: 2 },
    });
    expect(refusal).toMatchObject({ status: 400, body: { code: 'invalid_argument' } });
    expect(refusal.body.message).toContain('gpu');
    const unknown = await postJson('Destroy', {});
    expect(unknown).toMatchObject({ status: 404, body: { code: 'unimplemented' } });
  });

  it('that are none are answered and harm nobody', async () => {
    const nonsense = await new Promise<number>((resolve, reject) => {
      const request = https.request(
        {
          ...rig.address,
          ...secureOptions(rig.alice),
          method: 'POST',
          path: '/dxpu.pool.v1.PoolService/GetStatus',
          headers: { host: '[', 'content-type': 'application/json' },
          checkServerIdentity: () => undefined,
        },
        (response) => resolve(response.statusCode ?? 0),
      );
      request.on('error', reject);
      request.end('{}');
    });
    expect(nonsense).toBe(400);
    expect(await rig.client(rig.alice).pool.getStatus({})).toMatchObject({ gpus: 5 });
  });
});

describe('answers', () => {
  it('a refusal of placement arrives with its reasons', async () => {
    const demand = { gpus: 9, host: 'h1' } as never;
    const reasons = [{ reason: 'bound', count: 3, message: '3 are bound' }] as const;
    rig.pool.answer = {
      ok: false,
      refusal: { ok: false, demand, summary: 'not so many', reasons },
    };
    const error = await failure(
      rig.client(rig.alice).pool.bind({ requestId: 'r1', demand: { gpus: 9, host: 'h1' } }),
    );
    expect(error).toMatchObject({
      code: 'resource_exhausted',
      message: 'not so many',
      details: { refusal: { summary: 'not so many', reasons } },
    });
  });

  it('an error of the pool arrives with its code and details', async () => {
    const details = { binding: 'b7', known: 3 };
    rig.pool.answer = { ok: false, error: new DxpuError('not_found', 'no b7', { details }) };
    const error = await failure(
      rig.client(rig.alice).pool.retry({ requestId: 'r1', bindings: ['b7'] }),
    );
    expect(error).toMatchObject({ code: 'not_found', message: 'no b7', details });
  });

  it('a full disk is told to who asked, and nothing was done', async () => {
    rig.store.failNextCommit('resource_exhausted');
    const { pool: rpc } = rig.client(rig.alice);
    const error = await failure(rpc.retry({ requestId: 'r1', bindings: ['b1'] }));
    expect(error.code).toBe('resource_exhausted');
    expect(rig.store.log(0, 10)).toEqual([]);
    await vi.waitFor(async () => {
      await rpc.retry({ requestId: 'r1', bindings: ['b1'] });
    });
    expect(rig.store.log(0, 10).length).toBe(1);
  });
});

describe('watching', () => {
  it('goes on behind the last entry seen, over a restart of the manager: no gap, no repeat', async () => {
    const { pool: rpc } = rig.client(rig.alice);
    const seen: bigint[] = [];
    let position = 0n;
    let restarts = 0;
    const follow = async (): Promise<void> => {
      while (position < 300n) {
        try {
          for await (const one of rpc.watch({ after: position, follow: true })) {
            if (one.entry !== undefined) seen.push(one.entry.position);
            position = one.position;
            if (position >= 300n) return;
          }
        } catch (error) {
          expect(error).toMatchObject({ code: 'unavailable' });
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    };
    const done = follow();
    for (let round = 0; round < 30; round++) {
      for (let index = 0; index < 9; index++) rig.pool.entry('manager', `r${round}.${index}`);
      await rig.shell.command(
        { name: 'user/bob' },
        { kind: 'retry', requestId: 'r', bindings: [] },
      );
      if (round % 10 === 5) {
        const { port } = rig.address;
        rig.shell.stop('restart');
        rig.server.close();
        await vi.waitFor(() => rig.restart(port));
        restarts += 1;
      }
    }
    await done;
    // 30 rounds of nine entries and one command.
    expect(seen).toEqual(Array.from({ length: 300 }, (_, index) => BigInt(index + 1)));
    expect(restarts).toBe(3);
  });

  it('without follow ends at the end, having said where that is', async () => {
    const { pool: rpc } = rig.client(rig.alice);
    await rpc.retry({ requestId: 'r1', bindings: ['b1'] });
    const seen = [];
    for await (const one of rpc.watch({})) seen.push([one.entry?.requestId, one.position]);
    expect(seen).toEqual([
      ['r1', 1n],
      [undefined, 1n],
    ]);
    const beyond = await failure(rpc.watch({ after: 2n })[Symbol.asyncIterator]().next());
    expect(beyond).toMatchObject({ code: 'out_of_range', details: { after: 2, position: 1 } });
  });

  it('a watcher that goes is forgotten', async () => {
    const gone = rig.client(rig.alice);
    const watcher = gone.pool.watch({ follow: true })[Symbol.asyncIterator]();
    expect((await watcher.next()).value).toMatchObject({ position: 0n });
    expect(rig.server.connections().get('user/alice')).toBe(1);
    gone.close();
    await vi.waitFor(() => expect(rig.server.connections().size).toBe(0));
  });
});

function postJson(
  method: string,
  body: object,
): Promise<{ status: number; body: Record<string, unknown> }> {
  return new Promise((resolve, reject) => {
    const request = https.request(
      {
        ...rig.address,
        ...secureOptions(rig.alice),
        method: 'POST',
        path: `/dxpu.pool.v1.PoolService/${method}`,
        headers: { 'content-type': 'application/json' },
        checkServerIdentity: () => undefined,
      },
      (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => {
          text += chunk.toString();
        });
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            body: JSON.parse(text) as Record<string, unknown>,
          }),
        );
      },
    );
    request.on('error', reject);
    request.end(JSON.stringify(body));
  });
}
