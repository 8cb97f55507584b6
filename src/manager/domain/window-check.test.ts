import { expect, it } from 'vitest';
import type { HostSlotReport } from '#proto/agent-messages';
import { portOf } from '#testkit/core-pool-host';
import { windowFaults } from './window-check.ts';

const MIB = 2 ** 20;

function port(slot: number, change: Partial<HostSlotReport> = {}): HostSlotReport {
  return {
    slot,
    ...portOf(slot),
    row: undefined,
    state: 'unused',
    function: undefined,
    inUse: false,
    problem: undefined,
    reason: '',
    ...change,
  };
}

it('takes what firmware sets up, and what it has not yet', () => {
  const bare = { base: MIB, limit: 0 };
  const ports = [
    port(0),
    port(1),
    port(7, { secondaryBus: 0, nonPrefetchable: bare, prefetchable: bare }),
    port(8, { secondaryBus: 0, nonPrefetchable: bare, prefetchable: bare }),
  ];
  expect([...windowFaults(ports)]).toEqual([]);
});

it.each([
  ['a window over that of a lower slot', { nonPrefetchable: portOf(0).nonPrefetchable }, 'slot 0'],
  ['its two windows over each other', { prefetchable: portOf(1).nonPrefetchable }, 'two windows'],
  [
    'half a MiB',
    { nonPrefetchable: { base: 0xd000_0000, limit: 0xd000_0000 + MIB / 2 - 1 } },
    'whole MiB',
  ],
  [
    'non-prefetchable memory above 4 GiB',
    { nonPrefetchable: { base: 2 ** 33, limit: 2 ** 33 + MIB - 1 } },
    'out of reach',
  ],
  ['the bus of another', { secondaryBus: 1 }, 'that of slot 0'],
  ['no bus there is', { secondaryBus: 256 }, 'no bus 256'],
] as const)('does not believe %s', (_what, change, text) => {
  const faults = windowFaults([port(1, change), port(0)]);
  expect([...faults.keys()]).toEqual([1]);
  expect(faults.get(1)).toContain(text);
});

it('finds a window that encloses another', () => {
  const wide = { base: 0xc000_0000 - MIB, limit: 0xc000_0000 + 8 * MIB - 1 };
  expect([...windowFaults([port(0), port(9, { nonPrefetchable: wide })]).keys()]).toEqual([9]);
});
