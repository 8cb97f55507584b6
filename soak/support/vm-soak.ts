/** The parts of `npm run soak -- vm`, each as often as it is asked for, and what they count. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mappingCount } from '#testkit/vm/process-holdings';
import { VmFaults } from '#testkit/vm/vm-faults';
import { VmPool } from '#testkit/vm/vm-pool';
import type { Kind } from '#testkit/vm/vm-pool-parts';
import type { VmNeeds } from '#testkit/vm/vm-needs';

/** Each at the same time: of the three kinds, in other slots each time. */
const BATCHES: readonly (readonly Kind[])[] = [
  ['accel', 'virtio-gpu', 'bochs-display'],
  ['virtio-gpu', 'second-accel', 'bochs-display', 'accel'],
  ['bochs-display', 'other-accel', 'virtio-gpu'],
];
const PROXIES = ['host-vm1', 'box-b1', 'box-b2'];
const SLOTS = 4;
const WATCHDOG_MS = 1_800_000;
const RUNS_A_CUT = 60;

type Part = 'cutLink' | 'killHost' | 'killBox' | 'reset' | 'panic';

export class VmSoak {
  readonly #pool: VmPool;
  readonly #faults: VmFaults;
  readonly #say: (text: string) => void;
  readonly #counts = new Map<string, number>();

  private constructor(pool: VmPool, say: (text: string) => void) {
    this.#pool = pool;
    this.#faults = new VmFaults(pool);
    this.#say = say;
  }

  static async start(needs: VmNeeds, say: (text: string) => void): Promise<VmSoak> {
    const pool = await VmPool.start(needs, { slots: SLOTS, watchdogMs: WATCHDOG_MS });
    say('a guest is up, with a manager, two boxes and its host proxy');
    return new VmSoak(pool, say);
  }

  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  /** At least so many GPU nodes are bound and unbound, several at the same time. */
  async rounds(count: number): Promise<void> {
    if (count === 0) return;
    const before = this.#faults.held();
    let done = 0;
    for (let batch = 0; done < count; batch++) {
      const kinds = BATCHES[batch % BATCHES.length] ?? [];
      await this.#faults.bindAndUnbind(kinds, before);
      done += kinds.length;
      for (const kind of kinds) this.#add(`rounds of ${kind}`);
      await this.#faults.assertNothingLeft(before);
      this.#say(`${done} of ${count} rounds; mappings: ${this.#mappings()}`);
    }
  }

  async times(count: number, parts: readonly Part[]): Promise<void> {
    for (let at = 0; at < count; at++) {
      for (const part of parts) {
        if (part === 'cutLink') await this.#faults.cutLink(RUNS_A_CUT);
        else await this.#faults[part]();
        this.#add(part);
        this.#say(`${part} ${at + 1} of ${count}`);
      }
    }
  }

  /** With all of it in use. Its bindings fail, and are free once they are given back. */
  async killVm(): Promise<void> {
    const pool = this.#pool;
    const before = this.#faults.held();
    const bound = await Promise.all([pool.bind('accel'), pool.bind('other-accel')]);
    process.kill(pool.vm.pid, 'SIGKILL');
    for (const { id } of bound) await pool.untilFailed(id, 'function-unusable');
    await pool.unbind(...bound.map(({ id }) => id));
    for (const kind of ['accel', 'other-accel'] as const) {
      assert.equal((await pool.gpu(kind)).state, 'free');
    }
    // What the host proxy had of QEMU went with it.
    const [host] = this.#faults.held().processes;
    assert.deepEqual(host?.mappings, before.processes[0]?.mappings);
    this.#add('killVm');
    this.#say('QEMU killed: its GPU nodes are free');
  }

  /** The end of what the host proxy logged. */
  lastWords(): string {
    const text = readFileSync(this.#pool.process('host-vm1').logFile, 'utf8');
    return text.split('\n').slice(-30).join('\n');
  }

  end(): Promise<void> {
    return this.#pool.end();
  }

  #add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  /** Of any kind: those of the heap come and go. */
  #mappings(): string {
    return PROXIES.map((name) => `${name} ${mappingCount(this.#pool.process(name).pid)}`).join(
      ', ',
    );
  }
}
