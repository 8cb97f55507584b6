/** The rig of tests with a VM: a guest that takes commands, and a watchdog. */
import { describe, expect, it } from 'vitest';
import { CONSOLE_READY } from '#vm/guest-scripts';
import { TestVm } from '#testkit/vm/test-vm';
import { vmNeeds } from '#testkit/vm/vm-needs';

const needs = await vmNeeds();
const reason = typeof needs === 'string' ? ` (skipped: ${needs})` : '';

describe.skipIf(typeof needs === 'string')(`a VM for tests${reason}`, () => {
  const start = (watchdogMs: number): Promise<TestVm> => {
    if (typeof needs === 'string') throw new Error(needs);
    return TestVm.start(needs, { slots: 2, watchdogMs });
  };

  it('runs commands in a stock guest whose root ports are hot-plug slots', async () => {
    const vm = await start(100_000);
    try {
      expect(await vm.run('echo out; echo err >&2; exit 3')).toEqual({
        status: 3,
        text: 'out\nerr\n',
      });
      // A line break at the end, or none, is as it was printed; so is what looks like an answer.
      expect(await vm.shell('printf "1 0 5\\nfive"')).toBe('1 0 5\nfive');
      expect(vm.console).toContain(CONSOLE_READY);
      const slots = await vm.shell('ls /sys/bus/pci/slots');
      expect(slots.trim().split('\n')).toEqual(['1', '2']);
      expect(await vm.run('sgemm')).toEqual({
        status: 1,
        text: 'there is no accelerator (ddb0:0001)\n',
      });
      await expect(vm.until('false', 300)).rejects.toThrow('not within 300 ms');
    } finally {
      await vm.stop();
    }
    expect(await vm.ended).toBe('SIGKILL');
  });

  it('is ended by its watchdog, and nothing is left of it', async () => {
    await expect(start(1)).rejects.toThrow();
  });
});
