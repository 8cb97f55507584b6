import { describe, expect, test } from 'vitest';
import { BoxTable, checkBoxTable } from './box-table.ts';
import { checkHostTable, HostTable } from './host-table.ts';
import type { BoxRow, HostRow } from './mapping-table.ts';

const ROW: HostRow = {
  virtualSlot: 0,
  used: true,
  secondaryBus: 3,
  nonPrefetchable: { base: 0x4000_0000, limit: 0x401f_ffff },
  prefetchable: { base: 0x10_0000_0000, limit: 0x10_3fff_ffff },
  box: 'b',
  slot: 7,
  path: 'net',
  generation: 11,
};
const OTHER: HostRow = {
  ...ROW,
  virtualSlot: 1,
  secondaryBus: 4,
  nonPrefetchable: { base: 0x4020_0000, limit: 0x402f_ffff },
  prefetchable: { base: 0x10_4000_0000, limit: 0x10_7fff_ffff },
  slot: 8,
};

describe('a host table is checked as a whole, each error names row and field', () => {
  const np = (base: number, limit: number) => ({ nonPrefetchable: { base, limit } });
  const cases: [string, Partial<HostRow>, string, RegExp][] = [
    ['virtual slot twice', { virtualSlot: 0 }, 'virtualSlot', /virtual slot 0 .*row 0/],
    ['virtual slot no number', { virtualSlot: -1 }, 'virtualSlot', /0 to 65535/],
    ['bus 0', { secondaryBus: 0 }, 'secondaryBus', /1 to 255/],
    ['bus twice', { secondaryBus: 3 }, 'secondaryBus', /bus 3 .*row 0/],
    ['no box', { box: '' }, 'box', /empty/],
    ['box slot twice', { slot: 7 }, 'slot', /slot 7 of box b .*row 0/],
    ['slot beyond 16 bits', { slot: 65536 }, 'slot', /65535/],
    ['generation 0', { generation: 0 }, 'generation', /1 to 9007199254740991/],
    ['generation 2^53', { generation: 2 ** 53 }, 'generation', /9007199254740991/],
    ['half a granule', np(0x4028_0000, 0x402f_ffff), 'nonPrefetchable.base', /1 MiB/],
    ['limit in a granule', np(0x4020_0000, 0x402f_fffe), 'nonPrefetchable.limit', /1 MiB/],
    ['above 4 GiB', np(0x1_0000_0000, 0x1_000f_ffff), 'nonPrefetchable.base', /4294967295/],
    ['overlap', np(0x4010_0000, 0x402f_ffff), 'nonPrefetchable.base', /overlaps.*row 0/],
    ['interrupts', np(0xfee0_0000, 0xfeef_ffff), 'nonPrefetchable.base', /interrupt range/],
    [
      'the one in the other',
      { prefetchable: { base: 0x4010_0000, limit: 0x401f_ffff } },
      'prefetchable.base',
      /nonPrefetchable 40000000-401fffff of row 0/,
    ],
    [
      'its own two windows',
      { prefetchable: { base: 0x4020_0000, limit: 0x402f_ffff } },
      'prefetchable.base',
      /row 1/,
    ],
    [
      'not exact',
      { prefetchable: { base: 0x10_4000_0000, limit: 2 ** 53 } },
      'prefetchable.limit',
      /9007199254740991/,
    ],
  ];
  test.each(cases)('%s', (_name, change, field, message) => {
    const errors = checkHostTable([ROW, { ...OTHER, ...change }]);
    expect(errors.map((error) => [error.row, error.field])).toContainEqual([1, field]);
    expect(errors.find((error) => error.field === field)?.message).toMatch(message);
  });

  test('nothing of an unused row counts but its virtual slot', () => {
    const unused = { ...ROW, virtualSlot: 1, used: false, generation: 0, secondaryBus: 0 };
    expect(checkHostTable([ROW, unused])).toEqual([]);
    expect(new HostTable([unused]).rowOfAddress(0x4000_0000)).toBe(-1);
    expect(new HostTable([unused]).rowOfSlot('b', 7)).toBe(-1);
  });

  test('a window whose base is above its limit is empty', () => {
    const row = { ...ROW, nonPrefetchable: { base: 0xfff0_0000, limit: 0x000f_ffff } };
    expect(checkHostTable([row])).toEqual([]);
    expect(new HostTable([row]).rowOfAddress(0x4000_0000)).toBe(-1);
  });
});

describe('a box table', () => {
  const row: BoxRow = {
    slot: 7,
    valid: true,
    used: true,
    host: 'h',
    path: 'net',
    generation: 11,
  };
  test.each<[string, Partial<BoxRow>, string]>([
    ['slot twice', {}, 'slot'],
    ['slot beyond 16 bits', { slot: 65536 }, 'slot'],
    ['no host', { slot: 8, host: '' }, 'host'],
    ['generation 1.5', { slot: 8, generation: 1.5 }, 'generation'],
  ])('%s', (_name, change, field) => {
    const errors = checkBoxTable([row, { ...row, ...change }]);
    expect(errors.map((error) => [error.row, error.field])).toEqual([[1, field]]);
  });

  test('finds the row of a slot, valid or not', () => {
    const table = new BoxTable([row, { ...row, slot: 9, valid: false }]);
    expect([7, 8, 9].map((slot) => table.rowOfSlot(slot))).toEqual([0, -1, 1]);
  });
});
