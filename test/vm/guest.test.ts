/** The rig of tests with a VM: a guest that takes commands, and a watchdog. */
import { describe, expect, it } from 'vitest';
import { TestVm } from '#testkit/vm/test-vm';
import { vmNeeds } from '#testkit/vm/vm-needs';

const needs = await vmNeeds();
const reason = typeof needs === 'string' ? ` (skipped: ${needs})` : '';

describe.skipIf(typeof needs === 'string')(`a VM for tests${reason}`, () => {
  const start = (watchdogMs: number): Promise<TestVm> => {
    if (typeof needs === 'string') throw new Error(needs);
    return TestVm.start(needs, { slots: 2, watchdogMs });
  };

  it('is ended by its watchdog, and nothing is left of it', async () => {
    await expect(start(1)).rejects.toThrow();
  });
});
