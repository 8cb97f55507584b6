import { expect, it } from 'vitest';
import { HostSlotStatuses, type HostSlotStatusesOptions } from './host-slot-status.ts';

// A port that a guest holds after `dxpu unbind --force`, and a QEMU that is not there, were just "unused".
it('an empty slot says why nothing can be plugged into it', () => {
  const statuses = new HostSlotStatuses({
    proxy: { rows: [], slotState: () => 'unused' },
    software: { noteAt: (slot: number) => (slot === 1 ? 'QEMU is not connected' : undefined) },
  } as unknown as HostSlotStatusesOptions);
  expect([0, 1].map((slot) => statuses.reasonOf(slot))).toEqual([
    undefined,
    'QEMU is not connected',
  ]);
});
