/** Who lies, or is somebody else, gets nothing: a host that keeps its row, certificates that do not fit. */
import { randomInt, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HostAgentCore } from '#agent/core/host-agent';
import { parseEndpoint } from '#agent/daemon/endpoint';
import { HostNode } from '#agent/daemon/host-node';
import { ManagerStream } from '#agent/daemon/manager-stream';
import { RealClock } from '#base/clock';
import { DxpuError } from '#base/errors';
import { type HostConfig, readHostConfig } from '#cli/host-config';
import { createLog } from '#cli/log';
import type { LinkPort } from '#fabric/link-user';
import { connectTransport } from '#fabric/socket-endpoint';
import { initAuthorityFiles, issueFiles } from '#identity/certificates';
import type { Identity } from '#identity/identity';
import { type CredentialFiles, loadCredentials, type TlsCredentials } from '#identity/tls-identity';
import { CompletionStatus, resetTlp, setTlpAddress, Tlp, TlpKind } from '#pcie/tlp';
import { decodeTlp } from '#pcie/tlp-codec';
import { helloToWire, reportToWire } from '#proto/agent-wire';
import { AgentService, type ConnectRequest } from '#proto/generated/dxpu/agent/v1/agent_pb';
import { BindingState, PoolService } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { connectManager } from '#proto/manager-connection';
import { fromRpcError } from '#proto/rpc-error';
import { buildDist, ManagedPool, Running, until } from './processes.ts';

const pool = new ManagedPool();
const elsewhere = mkdtempSync(path.join(os.tmpdir(), 'dxpu-other-'));

beforeAll(buildDist);
beforeAll(async () => {
  const args = ['--boxes', '1', '--gpus', '2', '--hosts', '2', '--slots', '2'];
  const { status, stderr } = await pool.up(...args);
  if (status !== 0) throw new Error(stderr);
});
afterAll(async () => {
  await pool.end();
  rmSync(elsewhere, { recursive: true, force: true });
});

const managerLog = (): string => readFileSync(pool.file('manager-m1.log'), 'utf8');

function logged(pattern: RegExp): Promise<true> {
  return until(
    () => (pattern.test(managerLog()) ? true : undefined),
    `${pattern} in the log of the manager:\n`,
    10_000,
    managerLog,
  );
}

const managerAddress = () =>
  parseEndpoint(
    /address: "([^"]+)"/.exec(readFileSync(pool.file('host-h1.yaml'), 'utf8'))?.[1] ?? '',
  );

/** Credentials as they are, without the checks an honest process makes of its own. */
function credentials(identity: Identity, files: CredentialFiles): TlsCredentials {
  const read = (file: string): string => readFileSync(file, 'utf8');
  return { identity, ca: read(files.ca), cert: read(files.cert), key: read(files.key) };
}

const ofPool = (identity: Identity): TlsCredentials =>
  credentials(identity, {
    ca: pool.file('ca.pem'),
    cert: pool.file(`${identity.kind}-${identity.id}.pem`),
    key: pool.file(`${identity.kind}-${identity.id}-key.pem`),
  });

/** How a stream of an agent with these credentials and messages ends. */
async function agentStream(
  withCredentials: TlsCredentials,
  messages: readonly ConnectRequest[],
): Promise<DxpuError> {
  const connection = connectManager({ ...managerAddress(), credentials: withCredentials });
  async function* say(): AsyncGenerator<ConnectRequest> {
    yield* messages;
    // Open until the manager ends it.
    await new Promise((resolve) => setTimeout(resolve, 30_000).unref());
  }
  try {
    await connection.open();
    const orders = createClient(AgentService, connection.transport).connect(say());
    for await (const _order of orders) if (messages.length > 2) break;
    return new DxpuError('unknown', 'the manager took it');
  } catch (error) {
    return fromRpcError(error);
  } finally {
    connection.close();
  }
}

const hello = (id: string): ConnectRequest =>
  helloToWire({ kind: 'host', id, instance: randomUUID(), version: '0', reach: [] });

/** A host of this test: everything real but for its agent, which lies. */
class LyingHost {
  readonly node: HostNode;
  readonly #stream: ManagerStream;
  /** Its session with the box. */
  link: LinkPort | undefined;
  /** Status of each completion that came, whatever the proxy made of it. */
  readonly answers: number[] = [];

  constructor(config: HostConfig) {
    const clock = new RealClock();
    const log = createLog(`liar-${config.id}`, { level: 'error' });
    const identity = { kind: 'host', id: config.id } as const;
    const own = loadCredentials(config.credentialFiles, identity, Date.now());
    this.node = new HostNode({
      id: config.id,
      softHost: config.softHost,
      isManaged: true,
      onChanged: (now) => this.#stream.changed(now),
      clock,
      log,
      newSessionId: () => randomInt(1, 2 ** 47),
      connect: ({ host, port, box }) =>
        connectTransport({
          host,
          port,
          clock,
          protection: { kind: 'tls', credentials: own, expected: { kind: 'box', id: box } },
        }),
    });
    this.#listen();
    this.#stream = new ManagerStream({
      agent: new HostAgentCore({
        hello: { kind: 'host', id: config.id, instance: randomUUID(), version: '0', reach: [] },
        plane: this.node.plane,
        faults: { keepsOldRow: true, reportsWhatShouldBe: true },
      }),
      address: managerAddress(),
      credentials: own,
      clock,
      log,
      random: () => 0,
      settle: () => this.node.settle(),
    });
    this.#stream.start();
  }

  #listen(): void {
    const { proxy } = this.node;
    const linkUp = proxy.linkUp.bind(proxy);
    const linkTlp = proxy.linkTlp.bind(proxy);
    proxy.linkUp = (now, link) => {
      this.link = link;
      linkUp(now, link);
    };
    const tlp = new Tlp();
    proxy.linkTlp = (now, link, arrived) => {
      decodeTlp(arrived.bytes, arrived.offset, arrived.length, tlp);
      if (tlp.kind === TlpKind.Cpl || tlp.kind === TlpKind.CplD) this.answers.push(tlp.status);
      return linkTlp(now, link, arrived);
    };
  }

  /** A write and a read of BAR 0, as they were right under this generation. */
  reach(slot: number, generation: number, address: number): void {
    const now = this.node.now();
    const tlp = new Tlp();
    setTlpAddress(tlp, address, TlpKind.MWr32, TlpKind.MWr64);
    tlp.lengthDw = 1;
    tlp.firstBe = 15;
    tlp.payload = Uint8Array.of(1, 2, 3, 4);
    tlp.payloadBytes = 4;
    this.link?.sendTlp(now, slot, generation, tlp);
    resetTlp(tlp);
    setTlpAddress(tlp, address, TlpKind.MRd32, TlpKind.MRd64);
    tlp.lengthDw = 1;
    tlp.firstBe = 15;
    this.link?.sendTlp(now, slot, generation, tlp);
    this.link?.flush(now);
    this.node.settle();
  }

  stop(): void {
    this.#stream.stop();
    this.node.stop('the test is over');
  }
}

describe('a host proxy that keeps its old row after an unbind', () => {
  interface BoxStatus {
    readonly processes: readonly {
      readonly slots: readonly { readonly counters: { readonly faults: Record<string, number> } }[];
    }[];
  }
  const faultsOf = async (slot: number): Promise<Record<string, number>> =>
    ((await pool.json('status', '--process', 'box-b1')) as BoxStatus).processes[0]?.slots[slot]
      ?.counters.faults ?? {};

  it('gets nothing through to its next owner, and the box counts it', async () => {
    await pool.run('stop', '--process', 'host-h2');
    const liar = new LyingHost(readHostConfig(pool.file('host-h2.yaml')));
    try {
      const ask = ['bind', '--gpus', '1', '--host', 'h2', '--wait', '--output', 'json'];
      // Until the manager knows it, and its paths.
      const bound = await until(async () => {
        const { status, stdout } = await pool.run(...ask);
        return status === 0 ? (JSON.parse(stdout) as { bindings: [{ id: string }] }) : undefined;
      }, 'a binding of the lying host');
      const [{ id }] = bound.bindings;
      const [binding] = await pool.bindings({ id });
      const { boxSlot = -1, generation = 0n, attachment } = binding ?? {};
      const address = Number(attachment?.bars[0]?.address);
      // While it is bound, the same two pass.
      const seen = liar.answers.length;
      liar.reach(boxSlot, Number(generation), address);
      await until(() => (liar.answers.length > seen ? true : undefined), 'an answer');
      expect(liar.answers[seen]).toBe(CompletionStatus.SC);
      expect(await faultsOf(boxSlot)).toEqual({});

      expect((await pool.run('unbind', id, '--wait')).status).toBe(0);
      // The manager believes that it is out; the proxy has kept its row.
      expect(liar.node.proxy.rows).toMatchObject([{ used: true, generation: Number(generation) }]);
      const next = await pool.run('bind', '--gpus', '2', '--host', 'h1', '--wait');
      expect(next.status).toBe(0);

      const before = liar.answers.length;
      liar.reach(boxSlot, Number(generation), address);
      await until(() => liar.answers[before], 'an answer that is not 0, success');
      expect(liar.answers[before]).toBe(CompletionStatus.UR);
      expect(await faultsOf(boxSlot)).toEqual({ 'stale-posted': 1, 'stale-non-posted': 1 });
      // Not with the new generation either: the row is another host's.
      const [owner] = (await pool.bindings({ host: 'h1' })).filter(
        (one) => one.boxSlot === boxSlot,
      );
      expect(owner?.state).toBe(BindingState.ATTACHED);
      liar.reach(boxSlot, Number(owner?.generation), address);
      await until(() => liar.answers[before + 1], 'a second answer');
      expect(liar.answers[before + 1]).toBe(CompletionStatus.UR);
      expect(await faultsOf(boxSlot)).toEqual({ 'stale-posted': 2, 'stale-non-posted': 2 });
      for (const slot of [0, 1]) await pool.sgemm('h1', slot);
    } finally {
      liar.stop();
    }
  });
});

describe('the manager refuses', () => {
  it('an agent of another CA, and so does the agent; both say why', async () => {
    await initAuthorityFiles(elsewhere, 'another pool', { nowMs: Date.now() });
    const stranger = { kind: 'host', id: 'h1' } as const;
    const files = await issueFiles(elsewhere, stranger, { nowMs: Date.now() });
    const honest = await agentStream(credentials(stranger, files), [hello('h1')]);
    expect(honest.code).toBe('unauthenticated');
    expect(honest.message).toContain('its certificate is of another CA');
    // One that would talk to anybody.
    const lax = credentials(stranger, { ...files, ca: pool.file('ca.pem') });
    expect((await agentStream(lax, [hello('h1')])).code).toMatch(/unavailable|unauthenticated/);
    await logged(/refused: its certificate is of another CA/);
  });

  it('an expired certificate', async () => {
    const late = { kind: 'host', id: 'late' } as const;
    writeFileSync(path.join(elsewhere, 'ca.pem'), readFileSync(pool.file('ca.pem')));
    writeFileSync(path.join(elsewhere, 'ca-key.pem'), readFileSync(pool.file('ca-key.pem')));
    const files = await issueFiles(elsewhere, late, { nowMs: Date.now(), days: -1 });
    const refused = await agentStream(credentials(late, files), [hello('late')]);
    expect(refused.code).toMatch(/unavailable|unauthenticated/);
    await logged(/refused: its certificate expired on .*dxpu cert issue/);
  });

  it('a certificate of a wrong kind, on either side', async () => {
    const user = readFileSync(pool.file('client.yaml'), 'utf8').match(/user-(.+?)\.pem/)?.[1] ?? '';
    const asAgent = await agentStream(ofPool({ kind: 'user', id: user }), [hello('h1')]);
    expect(asAgent.code).toBe('permission_denied');
    expect(asAgent.message).toContain(
      `/user/${user} is a user: AgentService is for hosts and boxes`,
    );
    const asBox = await agentStream(ofPool({ kind: 'box', id: 'b1' }), [hello('b1')]);
    expect(asBox.message).toMatch(/its certificate says .*\/box\/b1, its hello host\/b1/);
    const connection = connectManager({
      ...managerAddress(),
      credentials: ofPool({ kind: 'host', id: 'h1' }),
    });
    const asUser = await createClient(PoolService, connection.transport)
      .unbind({ requestId: 'x', bindings: ['b1'] })
      .then(() => undefined, fromRpcError);
    connection.close();
    expect(asUser?.code).toBe('permission_denied');
    // The command line says so too.
    const { host, port } = managerAddress();
    const args = ['--manager', `${host}:${port}`, '--ca', pool.file('ca.pem')];
    const keys = ['--cert', pool.file('host-h1.pem'), '--key', pool.file('host-h1-key.pem')];
    const wrong = await new Running(['get', 'gpus', ...args, ...keys]).ended;
    expect(wrong.status).toBe(1);
    expect(wrong.stderr).toMatch(/names spiffe:\/\/pool\/host\/h1, this process is .*\/user\//);
  });

  it('who claims another’s identity, and takes no word of one about another’s rows', async () => {
    const asH2 = ofPool({ kind: 'host', id: 'h2' });
    const claims = await agentStream(asH2, [hello('h1')]);
    expect(claims.code).toBe('permission_denied');
    expect(claims.message).toContain('its hello host/h1: nobody speaks for another');
    await logged(/its hello host\/h1/);

    // h2 says that it has the row of a binding of h1: that is no reason to change anything.
    const [first] = await pool.bindings({ host: 'h1' });
    const { box = '', boxSlot = 0, generation = 0n } = first ?? {};
    const report = reportToWire({
      kind: 'host',
      applied: 0,
      whole: true,
      refused: '',
      paths: [],
      slots: [
        {
          slot: 0,
          secondaryBus: 1,
          nonPrefetchable: { base: 0xe000_0000, limit: 0xe00f_ffff },
          prefetchable: { base: 0x40_0000_0000, limit: 0x40_03ff_ffff },
          row: { box, boxSlot, generation: Number(generation) },
          state: 'ready',
          function: undefined,
          inUse: false,
          problem: undefined,
          reason: '',
        },
      ],
    });
    await agentStream(asH2, [hello('h2'), report, report]);
    expect(await pool.bindings({ id: first?.id ?? '' })).toMatchObject([
      { state: BindingState.ATTACHED, generation, host: 'h1' },
    ]);
    await pool.sgemm('h1', first?.hostSlot ?? 0);
  });

  it('a second live session of one identity, which both report', async () => {
    const second = new Running([
      'host',
      '--config',
      pool.file('host-h1.yaml'),
      '--state',
      elsewhere,
      '--log-format',
      'text',
    ]);
    try {
      await second.says(/no manager: .*host\/h1/);
      await logged(/host\/h1.*(?:live|second|another)/);
    } finally {
      await second.stop();
    }
    await pool.sgemm('h1', 0);
  });
});
