/** An accelerator that a process of its own serves over vfio-user, in a slot of box b2: the guest sees no difference. */
import { expect, it } from 'vitest';
import { functionText } from '#testkit/vm/guest-function';
import { bdfOf, said } from '#testkit/vm/vm-faults';
import type { VmPool } from '#testkit/vm/vm-pool';
import type { BindingRecord } from '#testkit/vm/vm-pool-parts';

/** Nothing is bound before, nor afterwards. `golden` is what the built-in accelerator looks like. */
export function remoteDeviceParts(pool: () => VmPool, golden: () => string): void {
  let remote: BindingRecord;
  let other: BindingRecord;
  const multiplies = async (binding: BindingRecord, runs: number): Promise<void> => {
    const result = await said(pool().vm, `sgemm -n ${runs} -d ${bdfOf(binding)}`);
    expect(result).toMatchObject({ runs, equal: runs, interrupts: runs });
  };

  it('uses an accelerator of another process as the built-in one', async () => {
    [remote, other] = await Promise.all([pool().bind('remote-accel'), pool().bind('other-accel')]);
    expect(await functionText(pool().vm, bdfOf(remote))).toBe(golden());
    await multiplies(remote, 5);
  });

  it('loses it with a reason when that process dies, and nothing else', async () => {
    await pool().killRemote();
    const message = await pool().untilFailed(remote.id, 'quarantined');
    expect(message).toMatch(/the vfio-user device .*: the peer closed the connection/);
    await pool().vm.until(`[ ! -e /sys/bus/pci/devices/${bdfOf(remote)} ]`);
    await multiplies(other, 3);
    await pool().unbind(remote.id, other.id);
  });
}
