/**
 * What can go wrong around a VM of a pool, made on purpose, with what must hold then: each part binds what it needs,
 * fails by an assertion, and leaves nothing bound. `test/vm` has each of them once, `npm run soak -- vm` many times.
 */
import assert from 'node:assert/strict';
import { askMonitor } from '#vm/qemu-monitor';
import { lookFor } from './look-for.ts';
import { type Holdings, holdingsOf, socketFiles } from './process-holdings.ts';
import { passedAtBoth, type SlotView } from './proxy-view.ts';
import type { TestVm } from './test-vm.ts';
import type { VmPool } from './vm-pool.ts';
import { type BindingRecord, type Kind, PLACES } from './vm-pool-parts.ts';

const PROXIES = ['host-vm1', 'box-b1', 'box-b2'] as const;
const FUNCTIONS = '/sys/bus/pci/devices';
const GUEST_MEMORY = '/memfd:memory-backend-memfd (deleted)';
const CUT_NS = 2e9;
const SAID_WITHIN_MS = 90_000;

export interface Held {
  readonly sockets: readonly string[];
  readonly processes: readonly Holdings[];
}

/** As the guest calls it: `0000:01:00.0`. */
export const bdfOf = ({ attachment }: BindingRecord): string => `0000:${attachment?.bdf}`;

/** The JSON that a program of the guest prints. */
export async function said<T>(vm: TestVm, command: string): Promise<T> {
  return JSON.parse(await vm.shell(command, SAID_WITHIN_MS)) as T;
}

export class VmFaults {
  readonly #pool: VmPool;

  constructor(pool: VmPool) {
    this.#pool = pool;
  }

  /** What host and box processes hold: to be taken while nothing is bound. */
  held(): Held {
    return {
      sockets: socketFiles(this.#pool.state),
      processes: PROXIES.map((name) => holdingsOf(this.#pool.process(name).pid)),
    };
  }

  /** All at the same time. While they are bound there must be more than `before`. */
  async bindAndUnbind(kinds: readonly Kind[], before: Held): Promise<void> {
    const bindings = await Promise.all(kinds.map((kind) => this.#pool.bind(kind)));
    const used = this.held();
    // A socket for each slot, and the guest's memory.
    assert.equal(used.sockets.length, before.sockets.length + kinds.length);
    assert(
      (used.processes[0]?.mappings[GUEST_MEMORY] ?? 0) > 0,
      'the memory of the guest is mapped',
    );
    await this.#pool.unbind(...bindings.map(({ id }) => id));
  }

  /** What was held before is held now, and no more. */
  async assertNothingLeft(before: Held): Promise<void> {
    let now = before;
    await lookFor(
      () => {
        now = this.held();
        return JSON.stringify(now) === JSON.stringify(before) || undefined;
      },
      () => 'what was held before',
      5000,
    ).catch(() => {}); // The comparison says what there is too much of.
    assert.deepEqual(now, before);
  }

  /** The link, for two seconds, under a multiplication that goes on. No TLP is lost or there twice. */
  async cutLink(runs: number): Promise<void> {
    const pool = this.#pool;
    const binding = await pool.bind('accel');
    const slots = (): Promise<[SlotView, SlotView]> =>
      Promise.all([
        pool.slotView('host-vm1', binding.hostSlot),
        pool.slotView('box-b1', PLACES.accel.slot),
      ]);
    const link = await pool.linkView('host-vm1', 'box b1');
    await pool.untilQuiet('host-vm1', binding.hostSlot);
    const before = await slots();
    const interrupts = async (): Promise<number> =>
      (await slots())[0].counters.interrupts - before[0].counters.interrupts;
    const result = said<object>(pool.vm, `sgemm -d ${bdfOf(binding)} -n ${runs}`);
    await lookFor(
      async () => (await interrupts()) >= 2 || undefined,
      () => 'the second result',
    );
    await pool.ask('host-vm1', 'fault', { cutNs: CUT_NS });
    assert((await interrupts()) < runs, 'it runs when the link is cut');
    assertEqualRuns(await result, runs);
    const [here, there] = await passedAtBoth(before, slots);
    assert.deepEqual(here, there, 'host and box have counted the same TLPs');
    // Of each run the device reads two matrices of 256 x 256, in completions of at most 128 bytes.
    assert((here['down CplD'] ?? 0) >= (runs * 2 * 256 * 256 * 4) / 128);
    assert.equal(await interrupts(), runs);
    assert.deepEqual((await slots())[0].counters.faults, before[0].counters.faults);
    const after = await pool.linkView('host-vm1', 'box b1');
    assert.equal(after.sessionId, link.sessionId, 'the session has lived on');
    assert(after.counters.resumes > link.counters.resumes, 'it was resumed');
    await pool.unbind(binding.id);
  }

  /** The guest sees a lost device; the next host proxy removes it, and attaches it anew. */
  async killHost(): Promise<void> {
    const pool = this.#pool;
    const binding = await pool.bind('accel');
    // QEMU 11.1.3 ends by an assertion when a server goes that has not read all it was sent (docs/vm.md).
    await pool.untilQuiet('host-vm1', binding.hostSlot);
    await pool.kill('host-vm1');
    await this.#readsAllOnes(binding);
    await pool.untilFailed(binding.id, 'link-down');
    await pool.startProcess('host', 'vm1');
    // QEMU has the old device at the root port until it is removed.
    const again = await pool.untilBinding(binding.id, ({ state }) => state === 'attached');
    assert(again.generation > binding.generation, 'under a new generation');
    await this.#multiplies(again);
    await pool.unbind(binding.id);
  }

  /** The guest goes on with the GPU node of another box; that of this one is free once the box is back. */
  async killBox(): Promise<void> {
    const pool = this.#pool;
    const binding = await pool.bind('accel');
    await pool.kill('box-b1');
    await this.#readsAllOnes(binding);
    await pool.untilFailed(binding.id, 'link-down');
    await pool.giveBack(binding.id);
    await pool.vm.until(`[ ! -e ${FUNCTIONS}/${bdfOf(binding)} ]`);
    const other = await pool.bind('other-accel');
    await this.#multiplies(other);
    await pool.startProcess('box', 'b1');
    await pool.untilFree(binding.id);
    assert.equal((await pool.gpu('accel')).state, 'free');
    await pool.unbind(other.id);
  }

  /** With GPU nodes of two boxes attached, which it has afterwards. */
  async reset(): Promise<void> {
    await this.#restart((vm) => vm.restarted(() => askMonitor(vm.toolQmp, 'system_reset', 10_000)));
  }

  /** A guest that stays as it is, panicked, until it is reset. */
  async panic(): Promise<void> {
    await this.#restart(async (vm) => {
      const panics = (): number => vm.console.split('Kernel panic').length;
      const before = panics();
      const command = vm.run(
        'echo 0 >/proc/sys/kernel/panic; echo c >/proc/sysrq-trigger',
        120_000,
      );
      const lost = assert.rejects(command, /the guest has restarted/);
      await lookFor(
        () => panics() > before || undefined,
        () => 'a panic',
      );
      const states = (await this.#pool.bindings()).map(({ state }) => state);
      assert.deepEqual(states, ['attached', 'attached']);
      await vm.restarted(() => askMonitor(vm.toolQmp, 'system_reset', 10_000));
      await lost;
    });
  }

  async #restart(how: (vm: TestVm) => Promise<void>): Promise<void> {
    const pool = this.#pool;
    const both = await Promise.all([pool.bind('accel'), pool.bind('other-accel')]);
    await how(pool.vm);
    for (const one of both) {
      // Firmware and kernel have given out addresses anew: the record comes to say which.
      const text = await pool.vm.shell(`cat ${FUNCTIONS}/${bdfOf(one)}/resource`);
      const begins = text.split('\n').map((line) => Number(line.split(' ')[0]));
      await pool.untilBinding(
        one.id,
        ({ state, attachment }) =>
          state === 'attached' &&
          attachment?.bars.every(({ index, address }) => begins[index] === address) === true,
      );
      await this.#multiplies(one);
    }
    await pool.unbind(...both.map(({ id }) => id));
  }

  async #multiplies(binding: BindingRecord, runs = 1): Promise<void> {
    assertEqualRuns(
      await said<object>(this.#pool.vm, `sgemm -d ${bdfOf(binding)} -n ${runs}`),
      runs,
    );
  }

  async #readsAllOnes(binding: BindingRecord): Promise<void> {
    const word = `hexdump -v -n 4 -e '1/4 "%08x"' ${FUNCTIONS}/${bdfOf(binding)}/config`;
    await this.#pool.vm.until(`[ "$(${word})" = ffffffff ]`);
  }
}

function assertEqualRuns(result: object, runs: number): void {
  const { equal, interrupts } = result as { equal: number; interrupts: number };
  assert.deepEqual({ equal, interrupts }, { equal: runs, interrupts: runs });
}
