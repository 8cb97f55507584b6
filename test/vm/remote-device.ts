/** An accelerator that a process of its own serves over vfio-user, in a slot of box b2: the guest sees no difference. */
import { expect, it } from 'vitest';
import { functionText } from '#testkit/vm/guest-function';
import type { VmPool } from '#testkit/vm/vm-pool';
import type { BindingRecord } from '#testkit/vm/vm-pool-parts';

/** Nothing is bound before, nor afterwards. `golden` is what the built-in accelerator looks like. */
export function remoteDeviceParts(pool: () => VmPool, golden: () => string): void {
  const bound = new Map<'remote-accel' | 'other-accel', BindingRecord>();
  const bdfOf = (binding: BindingRecord | undefined): string => `0000:${binding?.attachment?.bdf}`;
  const multiplies = async (binding: BindingRecord | undefined, runs: number): Promise<void> => {
    const said = await pool().vm.shell(`sgemm -n ${runs} -d ${bdfOf(binding)}`, 90_000);
    expect(JSON.parse(said)).toMatchObject({ runs, equal: runs, interrupts: runs });
  };

  it('uses an accelerator of another process as the built-in one', async () => {
    const kinds = ['remote-accel', 'other-accel'] as const;
    const bindings = await Promise.all(kinds.map((kind) => pool().bind(kind)));
    for (const [at, kind] of kinds.entries()) bound.set(kind, bindings[at] as BindingRecord);
    const binding = bound.get('remote-accel');
    expect(await functionText(pool().vm, bdfOf(binding))).toBe(golden());
    await multiplies(binding, 5);
  });

  it('loses it with a reason when that process dies, and nothing else', async () => {
    const binding = bound.get('remote-accel');
    await pool().killRemote();
    const failed = await pool().untilBinding(binding?.id ?? '', ({ state }) => state === 'failed');
    expect(failed.failure).toMatchObject({ reason: 'quarantined' });
    expect(failed.failure?.message).toMatch(
      /the vfio-user device .*: the peer closed the connection/,
    );
    await pool().vm.until(`[ ! -e /sys/bus/pci/devices/${bdfOf(binding)} ]`);
    await multiplies(bound.get('other-accel'), 3);
    await pool().unbind(...[...bound.values()].map(({ id }) => id));
  });
}
