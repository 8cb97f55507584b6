/**
 * A pool of real processes whose manager can be made to die at any point: victims are box b1 and host
 * h1, which see each other alone, and agents that a scenario plays itself (`ScriptedPair`); box b2 and
 * host h2 have the binding nobody may disturb.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { expect } from 'vitest';
import { askProcess } from '#cli/control-client';
import type { KnownProcess } from '#cli/state-folder';
import { initAuthorityFiles, issueFiles } from '#identity/certificates';
import type { Identity } from '#identity/identity';
import { loadCredentials, type TlsCredentials } from '#identity/tls-identity';
import type { PoolTimeouts } from '#manager/domain/pool-options';
import { connectPool } from '#manager/rpc/pool-client';
import { freePort } from '../e2e/processes.ts';
import { until } from './until.ts';
import type { Programs } from './bundle.ts';
import { Bystander } from './bystander.ts';
import { BYSTANDING_SLOTS, boxYaml, hostYaml, managerYaml, SLOTS } from './crash-configs.ts';
import { AgentProcess, CrashManager } from './crash-process.ts';
import { CrashUser, PATIENCE_MS } from './crash-user.ts';

/** What a failed binding waits before it is tried again: nothing, as this takes all of the time else. */
const SOON = { firstRetryMs: 20, lastRetryMs: 100 };
/** Steps that are not to be too late are not, however busy this machine is. */
const LATE_ENOUGH = { programmingMs: 60_000, detachingMs: 60_000 };

export type Timeouts = Partial<PoolTimeouts>;

export class CrashPool {
  readonly folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-crash-'));
  /** How long this machine takes from the death of a manager until all is as before. */
  paceMs = 0;
  /** Points at which a manager has died. */
  readonly covered = new Set<string>();
  readonly #state = path.join(this.folder, 's');
  readonly #processes = new Map<string, AgentProcess>();
  readonly #programs: Programs;
  #user: CrashUser | undefined;
  #manager: CrashManager | undefined;
  #standby: CrashManager | undefined;
  #bystander: Bystander | undefined;
  #ports: Record<'manager' | 'b1' | 'b2', number> = { manager: 0, b1: 0, b2: 0 };

  constructor(programs: Programs) {
    this.#programs = programs;
  }

  /** Everything runs, and the bystander computes. */
  async start(): Promise<void> {
    mkdirSync(this.#state);
    mkdirSync(path.join(this.folder, 'store'));
    this.#ports = { manager: await freePort(), b1: await freePort(), b2: await freePort() };
    const nowMs = Date.now();
    await initAuthorityFiles(this.folder, 'crash', { nowMs });
    const identities: Identity[] = [
      { kind: 'manager', id: 'm1' },
      ...['b1', 'b2'].map((id) => ({ kind: 'box', id }) as const),
      ...['h1', 'h2'].map((id) => ({ kind: 'host', id }) as const),
    ];
    for (const identity of identities) await issueFiles(this.folder, identity, { nowMs });
    writeFileSync(this.#file('manager.yaml'), managerYaml(this.#ports.manager));
    const credentials = await this.credentialsOf({ kind: 'user', id: 'u' });
    const client = connectPool({ host: '127.0.0.1', port: this.#ports.manager, credentials });
    this.#user = new CrashUser(client);
    for (const id of ['h1', 'h2']) {
      writeFileSync(this.#file(`${id}.yaml`), hostYaml(id, this.#ports.manager));
    }
    await Promise.all([
      this.launch(),
      ...['h1', 'h2'].map((id) => this.startHost(id)),
      ...(['b1', 'b2'] as const).map((id) => this.startBox(id)),
    ]);
    const { hostSlot } = await this.user.reaches(await this.user.bind('h2'), 'ATTACHED');
    this.#bystander = await Bystander.start(this.process('host-h2'), hostSlot);
    await this.isReady();
    this.paceMs = Infinity;
    for (let time = 0; time < 2; time++) {
      const began = performance.now();
      await this.restart();
      await this.isReady();
      this.paceMs = Math.min(this.paceMs, performance.now() - began);
    }
  }

  #file(name: string): string {
    return path.join(this.folder, name);
  }

  async startBox(id: 'b1' | 'b2', slots = id === 'b1' ? SLOTS : BYSTANDING_SLOTS): Promise<void> {
    const config = this.#file(`${id}.yaml`);
    writeFileSync(config, boxYaml(id, slots, this.#ports[id], this.#ports.manager));
    await this.#startProcess('box', id, config);
  }

  startHost(id: string): Promise<void> {
    return this.#startProcess('host', id, this.#file(`${id}.yaml`));
  }

  async #startProcess(kind: 'box' | 'host', id: string, config: string): Promise<void> {
    const args = [kind, '--config', config, '--state', this.#state, '--log-format', 'text'];
    this.#processes.set(id, await AgentProcess.start(this.#programs.dxpu, args));
  }

  signal(id: string, signal: NodeJS.Signals): void {
    this.#processes.get(id)?.signal(signal);
  }

  /** Kills a box or a host, stopped or not. */
  async kill(id: string): Promise<void> {
    await this.#processes.get(id)?.kill();
  }

  /** The control socket of `host-h1`, `box-b1`. */
  process(name: string): KnownProcess {
    const kind = name.startsWith('host') ? 'host' : 'box';
    return { name, kind, socket: path.join(this.#state, `${name}.sock`) };
  }

  /** No connection between host h1 and its box for `ms`. */
  async cut(ms: number): Promise<void> {
    await askProcess(this.process('host-h1'), 'fault', { cutNs: ms * 1e6 });
  }

  async clearCut(): Promise<void> {
    await askProcess(this.process('host-h1'), 'fault', { clear: true });
  }

  #stand(): CrashManager {
    return new CrashManager(this.#programs.manager, this.#file('manager.yaml'));
  }

  /** A manager in place of one that is dead. */
  async launch(timeouts: Timeouts = {}, points: readonly string[] = []): Promise<void> {
    const manager = this.#standby ?? this.#stand();
    this.#standby = undefined;
    this.#manager = manager;
    await manager.tell({ go: { timeouts: { ...SOON, ...LATE_ENOUGH, ...timeouts }, points } });
    this.#standby = this.#stand();
  }

  /** A manager in place of the one that runs. */
  async restart(timeouts: Timeouts = {}): Promise<void> {
    await this.#manager?.kill();
    await this.launch(timeouts);
  }

  /**
   * Lets the manager die at each of `points`, at whichever comes next, and starts one anew each time;
   * `provoke` makes the first come. `whileDown` runs after the first death, before the next manager
   * starts.
   */
  async crashAt(
    points: readonly string[],
    provoke: () => unknown,
    whileDown?: () => unknown,
  ): Promise<void> {
    await this.#manager?.tell({ points });
    const provoked = Promise.resolve(provoke());
    // Seen below, when the manager has died as often as it should.
    provoked.catch(() => {});
    await this.#die(points, {}, whileDown);
    await provoked;
  }

  /** As `crashAt`, of points that come when `timeouts` are over; managers after them have others. */
  async expire(points: readonly string[], timeouts: Timeouts): Promise<void> {
    await this.#manager?.kill();
    await this.launch(timeouts, points);
    await this.#die(points, timeouts);
  }

  async #die(
    points: readonly string[],
    timeouts: Timeouts,
    whileDown?: () => unknown,
  ): Promise<void> {
    let left = points;
    while (left.length > 0) {
      const died = await this.#deathAt(left);
      for (const point of died) this.covered.add(point);
      if (left === points) await whileDown?.();
      left = left.filter((point) => !died.includes(point));
      await this.launch(left.length > 0 ? timeouts : {}, left);
    }
  }

  /** The points at which the manager died, all of one commit. */
  async #deathAt(points: readonly string[]): Promise<readonly string[]> {
    const manager = this.#manager;
    if (manager === undefined) throw new Error('there is no manager');
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(true), PATIENCE_MS);
    });
    const isLate = await Promise.race([manager.ended.then(() => false), late]);
    clearTimeout(timer);
    const died = [...manager.output.matchAll(/^died (.*)$/gm)].map((match) => match[1] ?? '');
    if (!isLate && died.length > 0) return died;
    const log = isLate ? await this.user.log() : [];
    const last = [...log, ...manager.output.split('\n')].slice(-30).join('\n');
    throw new Error(`the manager did not come to one of: ${points.join(', ')}\n${last}`);
  }

  get user(): CrashUser {
    if (this.#user === undefined) throw new Error('not started');
    return this.#user;
  }

  /** The manager's, on this machine. */
  get managerPort(): number {
    return this.#ports.manager;
  }

  /** With a certificate of its own. */
  async credentialsOf(identity: Identity): Promise<TlsCredentials> {
    const nowMs = Date.now();
    await issueFiles(this.folder, identity, { nowMs });
    const name = `${identity.kind}-${identity.id}`;
    const files = {
      ca: this.#file('ca.pem'),
      cert: this.#file(`${name}.pem`),
      key: this.#file(`${name}-key.pem`),
    };
    return loadCredentials(files, identity, nowMs);
  }

  /** The GPU nodes of b1 can be bound to h1. */
  async isReady(): Promise<void> {
    await until(
      async () => {
        const { gpus } = await this.user.persist((pool) => pool.listGpus({ box: 'b1' }));
        if (gpus.length !== SLOTS.length || gpus.some((gpu) => gpu.state !== 'free'))
          return undefined;
        const { hosts } = await this.user.persist((pool) => pool.listHosts({ id: 'h1' }));
        if (hosts[0]?.connected !== true) return undefined;
        const { paths } = await this.user.persist((pool) =>
          pool.listPaths({ host: 'h1', box: 'b1' }),
        );
        return paths.some((one) => one.up) ? true : undefined;
      },
      'the GPU nodes of b1 to be free and h1 to reach them',
      PATIENCE_MS,
    );
  }

  /** Nothing of the victims is owned or in force, and the bystander has not noticed anything. */
  async isClean(): Promise<void> {
    await this.isReady();
    expect(await this.user.bindingsOf('h1')).toEqual([]);
    // As soon as box b2, which nothing happens to, has reported again.
    await until(
      async () => {
        const { gpusFree } = await this.user.persist((pool) => pool.getStatus({}));
        return gpusFree === SLOTS.length + BYSTANDING_SLOTS.length - 1 ? true : undefined;
      },
      'all GPU nodes but one to be free',
      PATIENCE_MS,
    );
    const { hosts } = await this.user.persist((pool) => pool.listHosts({ id: 'h1' }));
    expect(hosts[0]!.slots.map((one) => one.binding)).toEqual(SLOTS.map(() => ''));
    for (const name of ['box-b1', 'host-h1']) {
      const { table } = (await askProcess(this.process(name), 'status', {})) as { table: unknown };
      expect(table, `rows of ${name}`).toEqual([]);
    }
    await this.#bystander?.goesOn();
  }

  /** Begins anew after a scenario that failed halfway. */
  async reset(): Promise<void> {
    await Promise.all([this.kill('b1'), this.kill('h1'), this.#manager?.kill()]);
    await Promise.all([this.launch(), this.startBox('b1'), this.startHost('h1')]);
    for (const { id } of await this.user.bindingsOf('h1')) {
      await this.user.unbind([id], true);
      await this.user.isGone(id);
    }
  }

  async end(): Promise<void> {
    await this.#bystander?.stop();
    this.#user?.close();
    await Promise.all([
      this.#manager?.kill(),
      this.#standby?.kill(),
      ...[...this.#processes.values()].map((one) => one.kill()),
    ]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
