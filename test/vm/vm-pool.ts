/**
 * A pool whose host `vm1` is a real VM: a manager, box b1 with a virtio-gpu and an accelerator, box b2 with a
 * bochs-display, an accelerator, and one that another process serves, all processes of their own.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { vmHostYaml } from '#cli/pool-config-text';
import { poolManager } from '#cli/pool-connection';
import { preparePool } from '#cli/pool-files';
import { issueFiles } from '#identity/certificates';
import { type Picture, pictureOfPng } from '#testkit/vm/picture';
import { TestVm, type TestVmOptions } from '#testkit/vm/test-vm';
import type { VmNeeds } from '#testkit/vm/vm-needs';
import { ManagedPool, Running } from '../e2e/processes.ts';

const HOST = 'vm1';
/** Where each kind is. */
const PLACES = {
  'virtio-gpu': { box: 'b1', slot: 0 },
  accel: { box: 'b1', slot: 1 },
  'bochs-display': { box: 'b2', slot: 0 },
  'other-accel': { box: 'b2', slot: 1 },
  'remote-accel': { box: 'b2', slot: 2 },
} as const;
export type Kind = keyof typeof PLACES;

/**
 * Of the displays. Each pixel of a bochs-display is an MMIO write of its own, which an emulated processor makes
 * some ten thousand a second of.
 */
export const SIZES = {
  'virtio-gpu': { width: 1024, height: 768 },
  'bochs-display': { width: 320, height: 240 },
} as const;
export type Display = keyof typeof SIZES;

const DEVICES = {
  b1: ['{ slot: 0, kind: virtio-gpu }', '{ slot: 1, kind: accel, memory: 64MiB }'],
  b2: [
    `{ slot: 0, kind: bochs-display, width: ${SIZES['bochs-display'].width}, height: ${SIZES['bochs-display'].height} }`,
    '{ slot: 1, kind: accel, model: other-accel, memory: 64MiB }',
    '{ slot: 2, kind: vfio-user, model: remote-accel, socket: remote.sock }',
  ],
} as const;

export interface BindingRecord {
  readonly id: string;
  readonly state: string;
  readonly hostSlot: number;
  readonly box: string;
  readonly failure?: { readonly reason: string; readonly message: string };
  readonly attachment?: {
    readonly bdf: string;
    readonly bars: readonly {
      readonly index: number;
      readonly address: number;
      readonly sizeBytes: number;
    }[];
  };
}

export class VmPool {
  readonly #pool = new ManagedPool();
  readonly vm: TestVm;
  #remote: Running | undefined;

  private constructor(vm: TestVm) {
    this.vm = vm;
  }

  /** Boots the VM, then brings the pool up; returns when the host proxy is a member of it. */
  static async start(needs: VmNeeds, options: TestVmOptions): Promise<VmPool> {
    const vm = await TestVm.start(needs, options);
    const pool = new VmPool(vm);
    try {
      await pool.#up();
      return pool;
    } catch (error) {
      await pool.end();
      throw error;
    }
  }

  async #up(): Promise<void> {
    const { state } = this.#pool;
    await preparePool(state, { boxes: 2, gpus: 2, hosts: 1, slots: 1 });
    for (const [box, devices] of Object.entries(DEVICES)) {
      const file = this.#pool.file(`box-${box}.yaml`);
      const [head = ''] = readFileSync(file, 'utf8').split('devices:');
      const lines = devices.map((device) => `  - ${device}\n`);
      writeFileSync(file, `${head}devices:\n${lines.join('')}`);
    }
    this.#remote = new Running(['device', 'serve', 'accel', this.#pool.file('remote.sock')]);
    const { status, stderr } = await this.#pool.up();
    if (status !== 0) throw new Error(`dxpu up ended with ${status}:\n${stderr}`);
    await issueFiles(this.#pool.file(''), { kind: 'host', id: HOST }, { nowMs: Date.now() });
    const config = this.#pool.file(`host-${HOST}.yaml`);
    writeFileSync(config, vmHostYaml(HOST, this.vm.qmp, this.vm.ports, poolManager(state)));
    const host = this.#pool.begin('host', '--config', config, '--log-format', 'text');
    await host.says(/ready control=/);
  }

  /** Returns once the guest can use it. */
  async bind(kind: Kind): Promise<BindingRecord> {
    const { box } = PLACES[kind];
    const model = kind === 'accel' ? 'dxpu-accel' : kind;
    const demand = ['--gpus', '1', '--host', HOST, '--model', model];
    const answer = (await this.#pool.json('bind', ...demand, '--wait', '--timeout', '60s')) as {
      bindings: [BindingRecord];
    };
    const [binding] = answer.bindings;
    if (binding.box !== box) throw new Error(`${model} came from ${binding.box}, not from ${box}`);
    return binding;
  }

  /** The process that serves the device of slot 2 of box b2 ends as by a power cut. */
  async killRemote(): Promise<void> {
    await this.#remote?.stop('SIGKILL');
  }

  /** Returns once they are free. */
  async unbind(...ids: readonly string[]): Promise<void> {
    await this.#pool.json('unbind', ...ids, '--wait', '--timeout', '60s');
  }

  async bindings(): Promise<BindingRecord[]> {
    const lines = await this.#pool.jsonLines('get', 'bindings', '--host', HOST);
    return lines as unknown as BindingRecord[];
  }

  /** What the display of that kind shows. */
  async screenshot(kind: Display): Promise<Picture> {
    const { box, slot } = PLACES[kind];
    const file = this.#pool.file(`${kind}.png`);
    const words = ['box', 'screenshot', String(slot), file, '--process', `box-${box}`];
    const { status, stderr } = await this.#pool.run(...words);
    if (status !== 0) throw new Error(`no screenshot of ${kind}: ${stderr}`);
    return pictureOfPng(readFileSync(file));
  }

  async end(): Promise<void> {
    await this.vm.stop();
    await this.killRemote();
    await this.#pool.end();
  }
}
