/** A manager in this process, with its RPC server and its store on disk, and users who call it. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { RealClock } from '#base/clock';
import { createAuthority, issueCertificate, type KeyAndCertificate } from '#identity/certificates';
import type { Identity } from '#identity/identity';
import type { TlsCredentials } from '#identity/tls-identity';
import { type RunningManager, startManager } from '#cli/manager-process';
import { connectPool, type PoolClient } from '#manager/rpc/pool-client';
import { SqliteStore } from '#manager/store/sqlite-store';
import { InstantAgents, type Sizes } from '../../bench/support/store-agents.ts';

export class ManagerRig {
  readonly folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-manager-'));
  /** What the manager has complained of. */
  readonly complaints: string[] = [];
  readonly #authority: KeyAndCertificate;
  readonly #clients: PoolClient[] = [];
  readonly #credentials = new Map<string, TlsCredentials>();
  #manager: RunningManager | undefined;
  #agents: InstantAgents | undefined;

  private constructor(authority: KeyAndCertificate) {
    this.#authority = authority;
    mkdirSync(this.store);
  }

  static async prepare(): Promise<ManagerRig> {
    return new ManagerRig(await createAuthority('rig', Date.now()));
  }

  get store(): string {
    return path.join(this.folder, 'store');
  }

  get manager(): RunningManager {
    if (this.#manager === undefined) throw new Error('the manager was not started');
    return this.#manager;
  }

  /** With agents that answer each order at once; resolves once all GPU nodes without a row are known. */
  async start(sizes: Sizes, maxPages?: number): Promise<void> {
    const complain = (facts: object | string, message?: string): void => {
      this.complaints.push(message ?? JSON.stringify(facts));
    };
    this.#manager = await startManager({
      store: await SqliteStore.open(this.store, {
        version: '0.1.0',
        ...(maxPages === undefined ? {} : { maxPages }),
      }),
      credentials: await this.#credentialsOf({ kind: 'manager', id: 'm1' }),
      listen: [{ host: '127.0.0.1', port: 0 }],
      clock: new RealClock(),
      log: { debug: () => {}, info: () => {}, warn: complain, error: complain },
      onFatal: (error) => void this.complaints.push(`fatal: ${error.message}`),
    });
    this.#agents = new InstantAgents(this.manager.shell, sizes);
  }

  /** A connection of its own, as `user/NAME`. */
  async connect(user: string): Promise<PoolClient['pool']> {
    const [where] = this.manager.server.addresses;
    const client = connectPool({
      host: '127.0.0.1',
      port: where!.port,
      credentials: await this.#credentialsOf({ kind: 'user', id: user }),
      openWithinMs: 30_000,
    });
    this.#clients.push(client);
    return client.pool;
  }

  async #credentialsOf(identity: Identity): Promise<TlsCredentials> {
    const name = `${identity.kind}/${identity.id}`;
    const known = this.#credentials.get(name);
    if (known !== undefined) return known;
    const pair = await issueCertificate(this.#authority, identity, { nowMs: Date.now() });
    const credentials: TlsCredentials = {
      identity,
      ca: this.#authority.certPem,
      cert: pair.certPem,
      key: pair.keyPem,
    };
    this.#credentials.set(name, credentials);
    return credentials;
  }

  stop(): void {
    for (const client of this.#clients.splice(0)) client.close();
    this.#agents?.stop();
    this.#manager?.stop('the test is over');
    this.#manager = undefined;
  }

  end(): void {
    this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
