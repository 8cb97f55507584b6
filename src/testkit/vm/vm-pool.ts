/**
 * A pool whose hosts are real VMs: a manager, box b1 with a virtio-gpu and two accelerators, box b2 with a
 * bochs-display, an accelerator, and one that another process serves, and host `vm1`, all processes of their own;
 * more hosts where they are asked for.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { askProcess } from '#cli/control-client';
import { OwnProcess } from '#cli/own-process';
import { vmHostYaml } from '#cli/pool-config-text';
import { openPool, type PoolConnection, poolManager } from '#cli/pool-connection';
import { demandOf } from '#cli/pool-demand';
import { preparePool } from '#cli/pool-files';
import { LoggedProcess } from '#cli/logged-process';
import { configFile, logFile, poolFolder } from '#cli/pool-folder';
import { all, bindingPages, gpuPages, pathPages } from '#cli/pool-lists';
import { plainOf } from '#cli/pool-plain';
import { newRequestId } from '#cli/pool-request';
import { type ProcessKind, processOf } from '#cli/state-folder';
import type { ScreenshotResult } from '#cli/take-screenshot';
import { issueFiles } from '#identity/certificates';
import { type Gpu, GpuSchema } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { changeBindings } from './binding-change.ts';
import { lookFor } from './look-for.ts';
import { type Picture, pictureOfPng } from './picture.ts';
import type { LinkView, ProxyView, SlotView } from './proxy-view.ts';
import { TestVm, type TestVmOptions } from './test-vm.ts';
import type { VmNeeds } from './vm-needs.ts';
import {
  type BindingRecord,
  bindingRecord,
  DEVICES,
  type Display,
  found,
  type GpuRecord,
  type Kind,
  PLACES,
  REMOTE_SOCKET,
} from './vm-pool-parts.ts';

const MAIN = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));
const FIRST_HOST = 'vm1';
const WITHIN_NS = 60e9;
const QUIET_MS = 200;
/** As long as may be: after a cut of two seconds the next try is half a second later, and a busy machine is slow. */
const LINK = 'link: { resumeWindow: 3900ms }\n';

const BOXES = Object.keys(DEVICES);

export class VmPool {
  readonly state = mkdtempSync(path.join(os.tmpdir(), 'dxpu-vm-pool-'));
  readonly #processes = new Map<string, OwnProcess>();
  readonly #vms = new Map<string, TestVm>();
  #connection: PoolConnection | undefined;
  #remote: LoggedProcess | undefined;

  /** With one VM, when its host proxy and both boxes are members of the pool. dist must be built. */
  static async start(needs: VmNeeds, options: TestVmOptions): Promise<VmPool> {
    const pool = new VmPool();
    try {
      await Promise.all([pool.#up(), pool.#boot(FIRST_HOST, needs, options)]);
      await pool.#startHost(FIRST_HOST);
      return pool;
    } catch (error) {
      await pool.end();
      throw error;
    }
  }

  get vm(): TestVm {
    return this.vmOf(FIRST_HOST);
  }

  vmOf(host: string): TestVm {
    return found(this.#vms, host);
  }

  /** Boots another VM as a host of the pool. */
  async addVm(host: string, needs: VmNeeds, options: TestVmOptions): Promise<void> {
    await this.#boot(host, needs, options);
    await this.#startHost(host);
  }

  /** Returns once the guest can use it. */
  async bind(kind: Kind, host = FIRST_HOST): Promise<BindingRecord> {
    const { box, model } = PLACES[kind];
    const demand = demandOf({ gpus: 1, host, model });
    const [binding] = await changeBindings(this.#pool(), 'attached', (requestId, call) =>
      this.#pool().pool.bind({ requestId, demand, dryRun: false, noRetry: false }, call),
    );
    const one = binding && bindingRecord(binding);
    if (one?.box !== box) throw new Error(`${model} came from ${one?.box}, not from ${box}`);
    return one;
  }

  /** Returns once they are free. */
  async unbind(...bindings: readonly string[]): Promise<void> {
    await this.#unbind(bindings, false);
  }

  /** As `unbind --force`: the guest is not asked. */
  async unbindByForce(...bindings: readonly string[]): Promise<void> {
    await this.#unbind(bindings, true);
  }

  /** Does not wait for anything: see `untilFree`. */
  async giveBack(...bindings: readonly string[]): Promise<void> {
    const requestId = newRequestId();
    await this.#pool().pool.unbind({ requestId, bindings: [...bindings], force: false });
  }

  async untilFree(id: string): Promise<void> {
    await lookFor(
      async () => !(await this.bindings()).some((one) => one.id === id) || undefined,
      () => `the end of binding ${id}`,
    );
  }

  /** Of all hosts. */
  async bindings(): Promise<BindingRecord[]> {
    return (await all(bindingPages(this.#pool(), {}))).map(bindingRecord);
  }

  /** Once a binding is as `isThere` says. */
  untilBinding(id: string, isThere: (one: BindingRecord) => boolean): Promise<BindingRecord> {
    let last: BindingRecord | undefined;
    return lookFor(
      async () => {
        last = (await this.bindings()).find((one) => one.id === id);
        return last !== undefined && isThere(last) ? last : undefined;
      },
      () => `binding ${id}, which is ${JSON.stringify(last)}`,
    );
  }

  /**
   * What a failed binding says once its reason is this one. The host may tell of a fault first, as of a link that is
   * down, and the box may then know better: that is written over it.
   */
  async untilFailed(id: string, reason: string): Promise<string> {
    const { failure } = await this.untilBinding(
      id,
      (one) => one.state === 'failed' && one.failure?.reason === reason,
    );
    return failure?.message ?? '';
  }

  async gpu(kind: Kind): Promise<GpuRecord> {
    const { box, slot } = PLACES[kind];
    const one = (await all(gpuPages(this.#pool(), { box }))).find((gpu: Gpu) => gpu.slot === slot);
    if (one === undefined) throw new Error(`the pool has no ${kind}`);
    return plainOf(GpuSchema, one) as unknown as GpuRecord;
  }

  /** What the display of that kind shows. */
  async screenshot(kind: Display): Promise<Picture> {
    const { box, slot } = PLACES[kind];
    const { png } = (await this.ask(`box-${box}`, 'screenshot', { slot })) as ScreenshotResult;
    return pictureOfPng(Buffer.from(png, 'base64'));
  }

  /** By the control socket of a process; `name` as `host-vm1`. */
  ask(name: string, method: string, params: object): Promise<unknown> {
    return askProcess(this.process(name).target, method, params);
  }

  /** As `dxpu status` shows it. */
  async view(name: string): Promise<ProxyView> {
    return (await this.ask(name, 'status', {})) as ProxyView;
  }

  async slotView(name: string, slot: number): Promise<SlotView> {
    const one = (await this.view(name)).slots.find((view) => view.slot === slot);
    if (one === undefined) throw new Error(`${name} has no slot ${slot}`);
    return one;
  }

  /** Until nothing passes at a slot: the guest leaves its function alone. */
  async untilQuiet(name: string, slot: number): Promise<void> {
    let last = '';
    await lookFor(
      async () => {
        const now = JSON.stringify((await this.slotView(name, slot)).counters);
        if (now === last) return true;
        last = now;
        return undefined;
      },
      () => `an idle slot ${slot} of ${name}`,
      WITHIN_NS / 1e6,
      QUIET_MS,
    );
  }

  async linkView(name: string, peer: string): Promise<LinkView> {
    const one = (await this.view(name)).links.find((view) => view.peer === peer);
    if (one === undefined) throw new Error(`${name} has no link to ${peer}`);
    return one;
  }

  process(name: string): OwnProcess {
    return found(this.#processes, name);
  }

  /** As a power cut would. */
  kill(name: string): Promise<void> {
    return this.process(name).kill();
  }

  /** One that was killed, or one that is new; returns once it serves. */
  async startProcess(kind: ProcessKind, id: string): Promise<void> {
    const { state } = this;
    const process = new OwnProcess(state, processOf(state, kind, id), MAIN);
    this.#processes.set(process.target.name, process);
    await process.ready();
  }

  /** The process that serves the device of slot 2 of box b2. */
  async killRemote(): Promise<void> {
    this.#remote?.child.kill('SIGKILL');
    await this.#remote?.ended;
  }

  async end(): Promise<void> {
    this.#connection?.close();
    await this.killRemote();
    await Promise.all([...this.#vms.values()].map((vm) => vm.stop()));
    await Promise.all([...this.#processes.values()].map((process) => process.kill()));
    rmSync(this.state, { recursive: true, force: true });
  }

  async #up(): Promise<void> {
    await preparePool(this.state, { boxes: 2, gpus: 2, hosts: 1, slots: 1 });
    for (const [box, devices] of Object.entries(DEVICES)) {
      const file = configFile(this.state, `box-${box}`);
      const [head = ''] = readFileSync(file, 'utf8').split('devices:');
      const lines = devices.map((device) => `  - ${device}\n`);
      writeFileSync(file, `${head}devices:\n${lines.join('')}${LINK}`);
    }
    const socket = path.join(poolFolder(this.state), REMOTE_SOCKET);
    const words = [MAIN, 'device', 'serve', 'accel', socket];
    const log = logFile(this.state, 'remote');
    this.#remote = new LoggedProcess('remote', process.execPath, words, log, 'ours');
    await this.startProcess('manager', 'm1');
    await Promise.all(BOXES.map((box) => this.startProcess('box', box)));
    this.#connection = await openPool({ state: this.state });
  }

  async #boot(host: string, needs: VmNeeds, options: TestVmOptions): Promise<void> {
    this.#vms.set(host, await TestVm.start(needs, options));
  }

  async #startHost(host: string): Promise<void> {
    const { state } = this;
    const { qmp, ports } = this.vmOf(host);
    await issueFiles(poolFolder(state), { kind: 'host', id: host }, { nowMs: Date.now() });
    const config = configFile(state, `host-${host}`);
    writeFileSync(config, vmHostYaml(host, qmp, ports, poolManager(state)) + LINK);
    await this.startProcess('host', host);
    await lookFor(
      async () => {
        const paths = await all(pathPages(this.#pool(), { host }));
        return paths.filter(({ up }) => up).length === BOXES.length || undefined;
      },
      () => `ways of ${host} to both boxes`,
    );
  }

  #pool(): PoolConnection {
    if (this.#connection === undefined) throw new Error('the pool is not up');
    return this.#connection;
  }

  async #unbind(bindings: readonly string[], force: boolean): Promise<void> {
    await changeBindings(this.#pool(), 'free', (requestId, call) =>
      this.#pool().pool.unbind({ requestId, bindings: [...bindings], force }, call),
    );
  }
}
