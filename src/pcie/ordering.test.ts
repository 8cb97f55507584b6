/**
 * Every cell of the ordering rules summary (PCIe 5.0 base, table 2-40), under every attribute its
 * notes speak of. N: must not pass. YN: may. Y: must be able to.
 */
import { describe, expect, it } from 'vitest';
import { OrderingClass, type OrderingSubject, Pass, mayPass, orderingClassOf } from './ordering.ts';
import { ATTR_ID_BASED_ORDERING, ATTR_RELAXED_ORDERING, TlpKind } from './tlp.ts';

const { NO: N, MAY: YN, MUST: Y } = Pass;
const ROWS = ['A posted', 'B read', 'C NPR with data', 'D completion'];
const COLUMNS = ['2 posted', '3 read', '4 NPR with data', '5 completion'];
const CLASSES = [
  OrderingClass.POSTED,
  OrderingClass.READ,
  OrderingClass.NON_POSTED_WITH_DATA,
  OrderingClass.COMPLETION,
] as const;

const BASE: Omit<OrderingSubject, 'ordering'> = {
  attributes: 0,
  sourceId: 0x100,
  transactionId: 1,
  completesIoOrConfigWrite: false,
};

function table(
  name: string,
  later: Partial<OrderingSubject>,
  earlier: Partial<OrderingSubject>,
  expected: Pass[][],
): void {
  describe(name, () => {
    for (const [row, rowName] of ROWS.entries()) {
      for (const [column, columnName] of COLUMNS.entries()) {
        it(`${rowName} against ${columnName}`, () => {
          const pass = mayPass(
            { ...BASE, ...later, ordering: CLASSES[row]! },
            { ...BASE, ...earlier, ordering: CLASSES[column]! },
          );
          expect(pass).toBe(expected[row]![column]);
        });
      }
    }
  });
}

// A2a B2a C2a D2a: No. A3 A4 D3 D4: Yes. B3 B4 C3 C4, A5a, B5, C5: Y/N. D5a: different IDs, Y/N.
table('no attribute, different transactions', { transactionId: 2 }, {}, [
  [N, Y, Y, YN],
  [N, YN, YN, YN],
  [N, YN, YN, YN],
  [N, Y, Y, YN],
]);

// D5b: completions of one transaction stay in order.
table('no attribute, same transaction', {}, {}, [
  [N, Y, Y, YN],
  [N, YN, YN, YN],
  [N, YN, YN, YN],
  [N, Y, Y, N],
]);

// A2b, C2b, D2b: relaxed ordering lets pass. B2b does not speak of it.
table(
  'relaxed ordering on the later one',
  { attributes: ATTR_RELAXED_ORDERING, transactionId: 2 },
  {},
  [
    [YN, Y, Y, YN],
    [N, YN, YN, YN],
    [YN, YN, YN, YN],
    [YN, Y, Y, YN],
  ],
);

// The earlier one's attributes are no licence to pass it.
table(
  'relaxed and ID-based ordering on the earlier one alone',
  { sourceId: 0x200, transactionId: 2 },
  { attributes: ATTR_RELAXED_ORDERING | ATTR_ID_BASED_ORDERING },
  [
    [N, Y, Y, YN],
    [N, YN, YN, YN],
    [N, YN, YN, YN],
    [N, Y, Y, YN],
  ],
);

// A2b, B2b, C2b: requester IDs differ. D2b: completer ID against requester ID.
table(
  'ID-based ordering, different functions',
  { attributes: ATTR_ID_BASED_ORDERING, sourceId: 0x200, transactionId: 2 },
  {},
  [
    [YN, Y, Y, YN],
    [YN, YN, YN, YN],
    [YN, YN, YN, YN],
    [YN, Y, Y, YN],
  ],
);

table(
  'ID-based ordering, same function',
  { attributes: ATTR_ID_BASED_ORDERING, transactionId: 2 },
  {},
  [
    [N, Y, Y, YN],
    [N, YN, YN, YN],
    [N, YN, YN, YN],
    [N, Y, Y, YN],
  ],
);

// D2b: completions of I/O and configuration writes. The flag means nothing in the other rows.
table(
  'completion of an I/O or configuration write',
  { completesIoOrConfigWrite: true, transactionId: 2 },
  {},
  [
    [N, Y, Y, YN],
    [N, YN, YN, YN],
    [N, YN, YN, YN],
    [YN, Y, Y, YN],
  ],
);

it('sorts every kind into its row', () => {
  const rows = Object.entries(TlpKind).map(([name, kind]) => [name, ROWS[orderingClassOf(kind)]]);
  expect(Object.fromEntries(rows)).toEqual({
    MRd32: 'B read',
    MRd64: 'B read',
    MWr32: 'A posted',
    MWr64: 'A posted',
    IORd: 'B read',
    IOWr: 'C NPR with data',
    CfgRd0: 'B read',
    CfgWr0: 'C NPR with data',
    CfgRd1: 'B read',
    CfgWr1: 'C NPR with data',
    Msg: 'A posted',
    MsgD: 'A posted',
    Cpl: 'D completion',
    CplD: 'D completion',
    FetchAdd32: 'C NPR with data',
    FetchAdd64: 'C NPR with data',
    Swap32: 'C NPR with data',
    Swap64: 'C NPR with data',
    CAS32: 'C NPR with data',
    CAS64: 'C NPR with data',
  });
});
