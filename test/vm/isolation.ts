/**
 * What a device reaches of a guest's memory, and what of another guest's. All of it is asked of the guest's own
 * program `reach`, which has the accelerator read and write where it must not.
 */
import { expect, it } from 'vitest';
import { passed, passedAtBoth } from '#testkit/vm/proxy-view';
import { bdfOf, said } from '#testkit/vm/vm-faults';
import type { VmPool } from '#testkit/vm/vm-pool';
import { type BindingRecord, PLACES } from '#testkit/vm/vm-pool-parts';

/** docs/accelerator-datasheet.md, 6: a DMA read was answered Unsupported Request. */
const DMA_UNSUPPORTED = 6;
const PAGE_BYTES = 4096;
/** Lent to the accelerator of the second VM alone. */
const CANARY = '0x80000000';

/** An address that no memory has is in the window of a port, or in nothing at all. */
const refused = (faults: Readonly<Record<string, number>>): number =>
  (faults['refused-unregistered'] ?? 0) + (faults['refused-peer-to-peer'] ?? 0);

/** `startSecond` boots the VM `vm2`. Nothing is bound before, nor afterwards. */
export function isolationParts(pool: () => VmPool, startSecond: () => Promise<void>): void {
  let first: BindingRecord;
  let second: BindingRecord;

  it('two VMs get GPU nodes of the same box', async () => {
    await startSecond();
    [first, second] = await Promise.all([pool().bind('accel'), pool().bind('second-accel', 'vm2')]);
    expect([first.box, second.box]).toEqual(['b1', 'b1']);
  });

  it('a device told to read or write what is not lent to it gets Unsupported Request', async () => {
    const outside = ['behind', 'physical', '0x10000000000', '0x1000'];
    const { counters: before } = await pool().slotView('host-vm1', first.hostSlot);
    const reached = await said(pool().vm, `reach -d ${bdfOf(first)} inside ${outside.join(' ')}`);
    expect(reached).toEqual([
      // What a page changes that is lent: all of it, so that the next ones say something.
      { at: 'inside', readError: 0, named: false, inside: PAGE_BYTES, outside: 0 },
      ...outside.map((at) => ({
        at,
        readError: DMA_UNSUPPORTED,
        named: true,
        inside: 0,
        outside: 0,
      })),
    ]);
    const { counters } = await pool().slotView('host-vm1', first.hostSlot);
    // Of each address at least one read, and all writes: 4 KiB in TLPs of at most 128 bytes.
    const least = outside.length * (1 + PAGE_BYTES / 128);
    expect(refused(counters.faults)).toBeGreaterThanOrEqual(refused(before.faults) + least);
  });

  it('a device without bus mastering gets Unsupported Request, and writes nothing', async () => {
    const seen = await said(pool().vm, `reach -d ${bdfOf(first)} masterless`);
    expect(seen).toMatchObject({
      // Of a copy that was under way: what it had asked for was refused, the end of it was not reached.
      readError: DMA_UNSUPPORTED,
      cutOff: [0, 0],
      // Of one that was begun without: nothing, until it was allowed to.
      without: 0,
      with: PAGE_BYTES,
    });
    const { counters } = await pool().slotView('host-vm1', first.hostSlot);
    expect(counters.faults['refused-bus-master-off']).toBeGreaterThan(0);
  });

  it('what one VM lends its device is not there for the device of the other', async () => {
    const other = pool().vmOf('vm2');
    const its = '/run/hold';
    await other.shell(`reach -d ${bdfOf(second)} hold ${CANARY} >${its} 2>&1 &`);
    await other.until(`grep -q own ${its}`);
    const reached = await said(pool().vm, `reach -d ${bdfOf(first)} ${CANARY}`);
    await other.shell('touch /run/let-go');
    await other.until(`grep -q changed ${its}`);
    // The device it is lent to reads and writes it.
    const [own, later] = (await other.shell(`cat ${its}`)).trim().split('\n');
    expect(JSON.parse(own ?? '')).toEqual({ readError: 0, own: PAGE_BYTES });
    expect(JSON.parse(later ?? '')).toEqual({ changed: 0 });
    expect(reached).toEqual([
      { at: CANARY, readError: DMA_UNSUPPORTED, named: true, inside: 0, outside: 0 },
    ]);
    // The program ends, and with it the maps of its device.
    await other.until('! pidof reach');
  });

  it('no TLP of one VM shows in the slots of the other', async () => {
    const here = () =>
      Promise.all([
        pool().slotView('host-vm1', first.hostSlot),
        pool().slotView('box-b1', PLACES.accel.slot),
      ]);
    const there = () =>
      Promise.all([
        pool().slotView('host-vm2', second.hostSlot),
        pool().slotView('box-b1', PLACES['second-accel'].slot),
      ]);
    await pool().untilQuiet('host-vm1', first.hostSlot);
    await pool().untilQuiet('host-vm2', second.hostSlot);
    const [before, beforeThere] = [await here(), await there()];
    const other = pool().vmOf('vm2');
    expect(await said(other, `sgemm -d ${bdfOf(second)} -n 2`)).toMatchObject({ equal: 2 });
    const [host, box] = await passedAtBoth(beforeThere, there);
    expect(host).toEqual(box);
    // Of each run two matrices of 256 x 256 by reads, in completions of at most 128 bytes.
    expect(host['down CplD']).toBeGreaterThanOrEqual((2 * 2 * 256 * 256 * 4) / 128);
    const now = await here();
    expect([passed(before[0], now[0]), passed(before[1], now[1])]).toEqual([{}, {}]);
    expect(await said(pool().vm, `sgemm -d ${bdfOf(first)} -n 2`)).toMatchObject({ equal: 2 });
  });

  it('a GPU node whose VM was killed is free and scrubbed once it is unbound', async () => {
    const memory = await said<{ nonzero: number }>(pool().vmOf('vm2'), 'reach memory');
    expect(memory.nonzero).toBeGreaterThan(0);
    process.kill(pool().vmOf('vm2').pid, 'SIGKILL');
    const message = await pool().untilFailed(second.id, 'function-unusable');
    expect(message).toContain('the VM has ended');
    // It is still the binding's: what has failed owns its GPU node.
    expect(await pool().gpu('second-accel')).toMatchObject({ state: 'bound', binding: second.id });
    await pool().unbind(second.id);
    expect(await pool().gpu('second-accel')).toMatchObject({ state: 'free' });
    const again = await pool().bind('second-accel');
    expect(await said(pool().vm, `reach -d ${bdfOf(again)} memory`)).toEqual({ nonzero: 0 });
    await pool().unbind(first.id, again.id);
  });
}
