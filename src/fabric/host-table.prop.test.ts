/** The lookups of a host table against plain searches over its rows. */
import { expect, test } from 'vitest';
import { fc } from '#testkit/properties';
import { checkHostTable, HostTable } from './host-table.ts';
import type { HostRow } from './mapping-table.ts';

const MIB = 0x10_0000;

/** Windows cut one after the other out of the space below 4 GiB and out of that above. */
const rows = fc
  .array(
    fc.record({
      used: fc.constantFrom(true, true, true, false),
      gap: fc.integer({ min: 0, max: 3 }),
      lowMib: fc.integer({ min: 0, max: 4 }),
      highMib: fc.integer({ min: 0, max: 5000 }),
      box: fc.constantFrom('a', 'b'),
    }),
    { maxLength: 20 },
  )
  .map((parts) => {
    let low = 0x1000_0000;
    let high = 0x1_0000_0000;
    return parts.map((part, index): HostRow => {
      low += part.gap * MIB;
      high += part.gap * MIB;
      const nonPrefetchable = { base: low, limit: low + part.lowMib * MIB - 1 };
      const prefetchable = { base: high, limit: high + part.highMib * MIB - 1 };
      low += part.lowMib * MIB;
      high += part.highMib * MIB;
      return {
        virtualSlot: index,
        used: part.used,
        secondaryBus: index + 1,
        nonPrefetchable,
        prefetchable,
        box: part.box,
        slot: 100 - index,
        path: 'p',
        generation: index + 1,
      };
    });
  });

function holds(row: HostRow, address: number): boolean {
  return [row.nonPrefetchable, row.prefetchable].some(
    ({ base, limit }) => address >= base && address <= limit,
  );
}

test('addresses, buses and slots are found as a plain search finds them', () => {
  fc.assert(
    fc.property(rows, fc.array(fc.nat({ max: 6000 * 20 })), (table, mibs) => {
      expect(checkHostTable(table)).toEqual([]);
      const lookup = new HostTable(table);
      const addresses = [
        ...mibs.map((mib) => mib * MIB + 5),
        ...table.flatMap(({ nonPrefetchable: n, prefetchable: p }) =>
          [n.base, n.limit, p.base, p.limit].flatMap((edge) => [edge - 1, edge, edge + 1]),
        ),
      ];
      for (const address of addresses) {
        const plain = table.findIndex((row) => row.used && holds(row, address));
        expect(lookup.rowOfAddress(address)).toBe(plain);
        expect(lookup.rowOverlapping(address, address)).toBe(plain);
      }
      for (let bus = 0; bus < 256; bus++) {
        const plain = table.findIndex((row) => row.used && row.secondaryBus === bus);
        expect(lookup.rowOfBus(bus)).toBe(plain);
      }
      for (const box of ['a', 'b', 'c']) {
        for (let slot = 70; slot <= 101; slot++) {
          const plain = table.findIndex((row) => row.used && row.box === box && row.slot === slot);
          expect(lookup.rowOfSlot(box, slot)).toBe(plain);
        }
      }
    }),
    { numRuns: 50 },
  );
});

test('any shared address is an overlap, named by its row', () => {
  fc.assert(
    fc.property(
      rows.filter((table) =>
        table.some((row) => row.used && row.prefetchable.limit > row.prefetchable.base),
      ),
      fc.nat(),
      fc.integer({ min: -3, max: 3 }),
      (table, pick, shift) => {
        const wide = table.filter(
          (row) => row.used && row.prefetchable.limit > row.prefetchable.base,
        );
        const target = wide[pick % wide.length] as HostRow;
        const base = target.prefetchable.base + shift * MIB;
        const intruder: HostRow = {
          ...target,
          virtualSlot: 50,
          secondaryBus: 200,
          slot: 500,
          nonPrefetchable: { base: MIB, limit: 0xf_ffff },
          prefetchable: { base, limit: base + 2 * MIB - 1 },
        };
        const plain = table.some(
          (row) =>
            row.used &&
            row.prefetchable.base <= row.prefetchable.limit &&
            row.prefetchable.base <= intruder.prefetchable.limit &&
            row.prefetchable.limit >= base,
        );
        const fields = checkHostTable([...table, intruder]).map((e) => `${e.row} ${e.field}`);
        expect(fields).toEqual(plain ? [`${table.length} prefetchable.base`] : []);
      },
    ),
    { numRuns: 200 },
  );
});
