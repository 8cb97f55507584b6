/** The pool of a benchmark with a VM: a manager, a box with one accelerator, and the VM's host proxy. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { OwnProcess } from '#cli/own-process';
import { vmHostYaml } from '#cli/pool-config-text';
import { openPool, poolManager, type PoolConnection } from '#cli/pool-connection';
import { demandOf } from '#cli/pool-demand';
import { poolProcesses, preparePool } from '#cli/pool-files';
import { configFile, logFile, poolFolder } from '#cli/pool-folder';
import type { WaitGoal } from '#cli/pool-wait';
import { type ProcessKind, processOf } from '#cli/state-folder';
import { issueFiles } from '#identity/certificates';
import type { Binding } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { changeBindings } from '#testkit/vm/binding-change';
import type { TestVm } from '#testkit/vm/test-vm';
import { pinProcess } from './pinned-process.ts';

const HOST = 'vm1';
const SIZES = { boxes: 1, gpus: 1, hosts: 1, slots: 1 };
const DAY_MS = 86_400_000;
/** Of a line of the log: its time of the day. */
const ADDING = /^(\d\d):(\d\d):(\d\d\.\d{3}).*adding the function to the VM/gm;

export class VmBenchPool {
  readonly state = mkdtempSync(path.join(os.tmpdir(), 'dxpu-bench-'));
  readonly #processes = new Map<ProcessKind, OwnProcess>();
  #pool: PoolConnection | undefined;
  #bound: readonly Binding[] = [];

  /** Its one virtual slot is the first root port of `vm`. */
  async start(vm: TestVm): Promise<void> {
    const { state } = this;
    await preparePool(state, SIZES);
    await issueFiles(poolFolder(state), { kind: 'host', id: HOST }, { nowMs: Date.now() });
    const config = configFile(state, `host-${HOST}`);
    writeFileSync(config, vmHostYaml(HOST, vm.qmp, vm.ports.slice(0, 1), poolManager(state)));
    const host = processOf(state, 'host', HOST);
    const others = poolProcesses(state, SIZES).filter(({ kind }) => kind !== 'host');
    for (const target of [...others, host]) {
      const process = new OwnProcess(state, target);
      this.#processes.set(target.kind, process);
      await process.ready();
    }
    this.#pool = await openPool({ state });
  }

  pin(kind: ProcessKind, cpu: number): void {
    pinProcess(this.#processes.get(kind)?.pid ?? 0, cpu);
  }

  /** Milliseconds from the call to `attached`. */
  bind(): Promise<number> {
    const demand = demandOf({ gpus: 1, host: HOST });
    return this.#change('attached', ({ pool }, requestId) =>
      pool.bind({ requestId, demand, dryRun: false, noRetry: false }),
    );
  }

  /** Milliseconds from the call until the GPU node is free for the next. */
  unbind(): Promise<number> {
    const bindings = this.#bound.map(({ id }) => id);
    return this.#change('free', ({ pool }, requestId) =>
      pool.unbind({ requestId, bindings, force: false }),
    );
  }

  /** When QEMU was last asked to add the function, as `Date.now` has it. */
  get addedMs(): number {
    const last = [...this.#hostLog().matchAll(ADDING)].at(-1);
    if (last === undefined) throw new Error('the host proxy has added nothing');
    const [hours = 0, minutes = 0, seconds = 0] = last.slice(1).map(Number);
    const now = Date.now();
    const ofDay = ((hours * 60 + minutes) * 60 + seconds) * 1000;
    return now - ((((now - ofDay) % DAY_MS) + DAY_MS) % DAY_MS);
  }

  async end(): Promise<void> {
    this.#pool?.close();
    await Promise.all([...this.#processes.values()].map((one) => one.stop()));
    rmSync(this.state, { recursive: true, force: true });
  }

  async #change(
    goal: WaitGoal,
    call: (pool: PoolConnection, requestId: string) => Promise<{ bindings: Binding[] }>,
  ): Promise<number> {
    const pool = this.#pool;
    if (pool === undefined) throw new Error('not started');
    let beganMs = Number.NaN;
    try {
      this.#bound = await changeBindings(pool, goal, (requestId) => {
        if (Number.isNaN(beganMs)) beganMs = performance.now();
        return call(pool, requestId);
      });
      return performance.now() - beganMs;
    } catch (cause) {
      throw new Error(`the host proxy says:\n${this.#hostLog()}`, { cause });
    }
  }

  #hostLog(): string {
    return readFileSync(logFile(this.state, `host-${HOST}`), 'utf8');
  }
}
