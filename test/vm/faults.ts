/** What a guest, its host proxy and the boxes have when one of them goes, and what is left of it. */
import { it } from 'vitest';
import { VmFaults } from '#testkit/vm/vm-faults';
import type { VmPool } from '#testkit/vm/vm-pool';

/** Nothing is bound before, nor afterwards. */
export function faultParts(pool: () => VmPool): void {
  const faults = (): VmFaults => new VmFaults(pool());

  it('a link that is cut for two seconds and resumed loses and doubles no TLP', async () => {
    await faults().cutLink(20);
  });

  it('a host proxy that is killed is a lost device to the guest, and the next one attaches it anew', async () => {
    await faults().killHost();
  });

  it('a box that is killed takes its GPU node from a guest that goes on with that of another', async () => {
    await faults().killBox();
  });

  it('a guest that panics keeps its GPU nodes, and has them after its reset', async () => {
    await faults().panic();
  });
}
