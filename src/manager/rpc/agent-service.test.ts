/** Streams of agents over real sockets: who may speak for whom, what ends them, who is silent. */
import { spawn } from 'node:child_process';
import * as http2 from 'node:http2';
import { create } from '@bufbuild/protobuf';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { secureOptions } from '#identity/tls-identity';
import { helloToWire, reportToWire } from '#proto/agent-wire';
import { ConnectRequestSchema } from '#proto/generated/dxpu/agent/v1/agent_pb';
import { hello, report, ServerRig } from '#testkit/server-rig';

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

describe('agents', () => {
  it('a host says hello and reports, and gets orders', async () => {
    const agent = rig.agent(rig.h1).say(helloToWire(hello('h1')), reportToWire(report()));
    await vi.waitFor(() => expect(agent.orders).toEqual([1]));
    await vi.waitFor(() => expect(rig.pool.reports).toEqual([report()]));
    agent.finish();
    expect(await agent.ended).toBeUndefined();
    await vi.waitFor(() =>
      expect(rig.pool.calls).toEqual(['connected 1', 'report 1', 'disconnected 1']),
    );
  });

  it.each([
    ['a user', 'user', 'alice', hello('alice'), 'permission_denied', 'is a user: AgentService'],
    ['another host', 'host', 'h2', hello('h1'), 'permission_denied', 'nobody speaks for another'],
    ['a box as a host', 'box', 'h1', hello('h1'), 'permission_denied', 'nobody speaks for another'],
  ] as const)('%s is refused and reported', async (_what, kind, id, says, code, words) => {
    const agent = rig.agent(await rig.issued.of(kind, id)).say(helloToWire(says));
    const error = await agent.ended;
    expect(error?.code).toBe(code);
    expect(error?.message).toContain(words);
    expect(rig.refused.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^connection from 127\.0\.0\.1:\d+ refused: /),
    ]);
    expect(rig.pool.calls).toEqual([]);
  });

  it.each([
    ['strange', 'another CA'],
    ['expired', 'expired on'],
  ] as const)('one whose certificate is %s is refused', async (how, words) => {
    const agent = rig.agent(await rig.issued[how]('host', 'h1')).say(helloToWire(hello('h1')));
    expect((await agent.ended)?.message).toContain(words);
    expect(rig.pool.calls).toEqual([]);
  });

  it('a second live stream of one identity is refused and reported, the first goes on', async () => {
    const first = rig.agent(rig.h1).say(helloToWire(hello('h1')), reportToWire(report()));
    await vi.waitFor(() => expect(first.orders).toEqual([1]));
    const second = rig.agent(rig.h1).say(helloToWire(hello('h1')), reportToWire(report()));
    expect((await second.ended)?.code).toBe('already_exists');
    expect(rig.refused.map(({ code }) => code)).toEqual(['already_exists']);
    first.say(reportToWire(report()));
    await vi.waitFor(() =>
      expect(rig.pool.calls.filter((one) => one === 'report 1').length).toBe(2),
    );
    first.finish();
    await first.ended;
    await vi.waitFor(async () => {
      const third = rig.agent(rig.h1).say(helloToWire(hello('h1')));
      await vi.waitFor(() => expect(third.orders).toEqual([1]));
    });
  });

  it.each([
    [
      'a report first',
      [reportToWire(report())],
      'failed_precondition',
      'the first message is a hello',
    ],
    [
      'a second hello',
      [helloToWire(hello('h1')), helloToWire(hello('h1'))],
      'failed_precondition',
      'a second hello',
    ],
    [
      "a box's report",
      [
        helloToWire(hello('h1')),
        reportToWire({ kind: 'box', applied: 0, whole: true, slots: [], refused: '' }),
      ],
      'failed_precondition',
      "a box's report",
    ],
    [
      'a first report that is not whole',
      [helloToWire(hello('h1')), reportToWire(report('', false))],
      'failed_precondition',
      'whole',
    ],
    [
      'a number above 2^53 - 1',
      [
        helloToWire(hello('h1')),
        create(ConnectRequestSchema, {
          message: { case: 'hostReport', value: { applied: 2n ** 60n, whole: true } },
        }),
      ],
      'invalid_argument',
      'applied: ',
    ],
    [
      'a lie',
      [helloToWire(hello('h1')), reportToWire(report('lie'))],
      'failed_precondition',
      'that cannot be',
    ],
  ])('%s ends the stream with the reason', async (_what, messages, code, words) => {
    const agent = rig.agent(rig.h1).say(...messages);
    const error = await agent.ended;
    expect(error?.code).toBe(code);
    expect(error?.message).toContain(words);
    expect(rig.refused.map((one) => one.code)).toEqual([code]);
    await vi.waitFor(() => expect(rig.server.connections().has('user/nobody')).toBe(false));
  });

  it('one that reads nothing any more is ended before its orders fill the memory', async () => {
    const session = http2.connect(`https://127.0.0.1:${rig.address.port}`, {
      ...secureOptions(rig.h1),
      checkServerIdentity: () => undefined,
      // What the other side may send before we have read: nothing to speak of.
      settings: { initialWindowSize: 0 },
    });
    session.on('error', () => {});
    rig.keep({ close: () => session.destroy() });
    const stream = session.request({
      ':method': 'POST',
      ':path': '/dxpu.agent.v1.AgentService/Connect',
      'content-type': 'application/connect+json',
    });
    stream.on('error', () => {});
    stream.pause();
    stream.write(enveloped({ hello: { id: 'h1', instance: 'i', version: '1', host: {} } }));
    stream.write(enveloped({ hostReport: { whole: true } }));
    await vi.waitFor(() => expect(rig.pool.calls).toContain('report 1'));
    for (let revision = 2; revision < 1200; revision++) rig.pool.order(1, 'host', revision);
    await vi.waitFor(() => expect(rig.pool.calls).toContain('disconnected 1'));
    expect(rig.refused.map(({ code }) => code)).toEqual(['resource_exhausted']);
  });

  it('one that does not even answer pings is ended', async () => {
    // A process of its own that is stopped: its connection stays, and nobody is there.
    const script = `
      const http2 = require('node:http2');
      const options = JSON.parse(process.argv[1]);
      options.checkServerIdentity = () => undefined;
      const session = http2.connect(options.url, options);
      session.on('error', () => {});
      const stream = session.request({ ':method': 'POST',
        ':path': '/dxpu.agent.v1.AgentService/Connect',
        'content-type': 'application/connect+json' });
      stream.on('error', () => {});
      for (const message of options.messages) stream.write(Buffer.from(message, 'base64'));
      setInterval(() => {}, 1000);
    `;
    const options = {
      ca: rig.h1.ca,
      cert: rig.h1.cert,
      key: rig.h1.key,
      url: `https://127.0.0.1:${rig.address.port}`,
      messages: [
        enveloped({ hello: { id: 'h1', instance: 'i', version: '1', host: {} } }),
        enveloped({ hostReport: { whole: true } }),
      ].map((one) => one.toString('base64')),
    };
    const child = spawn(process.execPath, ['-e', script, JSON.stringify(options)], {
      stdio: 'ignore',
    });
    rig.keep({ close: () => child.kill('SIGKILL') });
    await vi.waitFor(() => expect(rig.pool.calls).toContain('report 1'), { timeout: 10_000 });
    // It answers: it stays.
    const heard = rig.server.connections().get('host/h1');
    expect(heard).toBe(1);
    child.kill('SIGSTOP');
    await vi.waitFor(() => expect(rig.pool.calls).toContain('disconnected 1'), { timeout: 10_000 });
    expect(rig.refused.at(-1)?.message).toContain('does not answer pings');
  });
});

/** A message of a stream, as the Connect protocol frames it: flags, length, JSON. */
function enveloped(message: object): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}
