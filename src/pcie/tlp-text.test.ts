import { describe, expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import { bytesFromHex, faultText, tlpFromJson, tlpToJson, tlpToLine } from './tlp-text.ts';
import { decodeTlp, TlpDecode } from './tlp-codec.ts';
import { Tlp } from './tlp.ts';

const MWR = {
  kind: 'MWr64',
  trafficClass: 0,
  attributes: 0,
  poisoned: 0,
  tag: 0,
  lengthDw: 2,
  requesterId: 0x0100,
  address: '0x123456780',
  firstBe: 15,
  lastBe: 15,
  data: '0011223344556677',
};
const CPLD = {
  kind: 'CplD',
  tag: 92,
  lengthDw: 1,
  requesterId: 0x0100,
  completerId: 0,
  status: 0,
  byteCount: 4,
  lowerAddress: 0,
  data: 'deadbeef',
};
const CFG = {
  kind: 'CfgRd1',
  tag: 1,
  lengthDw: 1,
  requesterId: 0,
  firstBe: 15,
  lastBe: 0,
  completerId: 0x0219,
  register: 16,
};
const MSG = {
  kind: 'Msg',
  tag: 0,
  lengthDw: 0,
  requesterId: 0x0100,
  messageCode: 0x20,
  messageRouting: 4,
  messageDw2: 0,
  messageDw3: 0,
};

function read(fields: object): Tlp {
  const tlp = new Tlp();
  tlpFromJson(fields, tlp);
  return tlp;
}

describe('TLPs as JSON', () => {
  it('fields that are seldom set appear only when they are', () => {
    expect(tlpToJson(read(MWR))).toEqual(MWR);
    const rare = { ...MWR, addressType: 2, hints: 1, processingHint: 3, digest: 1 };
    expect(tlpToJson(read(rare))).toEqual(rare);
    expect(tlpToJson(read({ ...CPLD, byteCountModified: 1 }))).toMatchObject({
      byteCountModified: 1,
    });
  });

  it('an address has 0x and no leading zeros, but those between its halves', () => {
    expect(tlpToJson(read({ ...MWR, address: '0x0000000100000008' }))['address']).toBe(
      '0x100000008',
    );
    expect(tlpToJson(read({ ...MWR, kind: 'MWr32', address: '0x0' }))['address']).toBe('0x0');
  });

  const wrong: readonly [string, object, string][] = [
    ['no kind', { lengthDw: 1 }, 'kind'],
    ['an unknown kind', { ...MWR, kind: 'MRdLk32' }, 'kind'],
    ['a kind from the prototype', { ...MWR, kind: 'toString' }, 'kind'],
    ['a missing field', { ...MWR, requesterId: undefined }, 'requesterId'],
    ['a fraction', { ...MWR, tag: 1.5 }, 'tag'],
    ['a number as text', { ...MWR, tag: '1' }, 'tag'],
    ['a negative number', { ...MWR, tag: -1 }, 'tag'],
    ['tag 1024', { ...MWR, tag: 1024 }, 'tag'],
    ['requester 65536', { ...MWR, requesterId: 65536 }, 'requesterId'],
    ['TC 8', { ...MWR, trafficClass: 8 }, 'trafficClass'],
    ['poisoned 2', { ...MWR, poisoned: 2 }, 'poisoned'],
    ['an address without 0x', { ...MWR, address: '1000' }, 'address'],
    ['an address as a number', { ...MWR, address: 4096 }, 'address'],
    ['an address of 65 bits', { ...MWR, address: '0x10000000000000000' }, 'address'],
    ['a 33-bit address in the 32-bit form', { ...MWR, kind: 'MWr32' }, 'address'],
    ['an odd address', { ...MWR, address: '0x1001' }, 'address'],
    ['4 KiB crossed', { ...MWR, address: '0x100000ffc' }, 'address'],
    ['data too short', { ...MWR, data: '00112233' }, 'data'],
    ['data of a read', { ...MWR, kind: 'MRd64' }, 'data'],
    ['an odd digit', { ...MWR, data: '001122334455667' }, 'data'],
    ['not a digit', { ...MWR, data: '00112233445566zz' }, 'data'],
    ['length 0', { ...MWR, lengthDw: 0, data: '' }, 'lengthDw'],
    ['a length where there is no data', { ...MSG, lengthDw: 1 }, 'lengthDw'],
    ['last BE with one DW', { ...MWR, lengthDw: 1, data: '00000000' }, 'lastBe'],
    ['no last BE with two', { ...MWR, lastBe: 0 }, 'lastBe'],
    ['first BE 0 with two', { ...MWR, firstBe: 0 }, 'firstBe'],
    ['a hint without TH', { ...MWR, processingHint: 1 }, 'processingHint'],
    ['a register between words', { ...CFG, register: 18 }, 'register'],
    ['a register beyond 4 KiB', { ...CFG, register: 4096 }, 'register'],
    ['config in TC 1', { ...CFG, trafficClass: 1 }, 'trafficClass'],
    ['config with attributes', { ...CFG, attributes: 2 }, 'attributes'],
    ['config of two DW', { ...CFG, lengthDw: 2 }, 'lengthDw'],
    ['an unaligned FetchAdd', { ...MWR, kind: 'FetchAdd64', address: '0x100000004' }, 'address'],
    ['a status not in the table', { ...CPLD, status: 3 }, 'status'],
    ['byte count 0', { ...CPLD, byteCount: 0 }, 'byteCount'],
    ['more data than byte count', { ...CPLD, lengthDw: 2, data: '0011223344556677' }, 'lengthDw'],
    ['a field of another kind', { ...CPLD, address: '0x0' }, 'address'],
    ['a typo', { ...MWR, requestorId: 1 }, 'requestorId'],
    ['hex at odds with the fields', { ...CFG, hex: '05000001000001ff02190010' }, 'hex'],
  ];
  it.each(wrong)('%s', (_name, fields, field) => {
    let thrown: unknown;
    try {
      read(fields);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(DxpuError);
    expect(thrown).toMatchObject({ code: 'invalid_argument', details: { field } });
    expect((thrown as DxpuError).message).toContain(`TLP field ${field}: `);
  });

  it('what is no object is refused', () => {
    for (const value of [null, 1, 'x', [], undefined]) {
      expect(() => tlpFromJson(value, new Tlp())).toThrow(/JSON object/);
    }
  });

  it('hex that agrees is taken', () => {
    expect(read({ ...CFG, hex: '050000010000010f02190010' }).register).toBe(16);
  });

  it('hex digits may be spaced', () => {
    expect([...bytesFromHex('00 1F\nff', 'x')]).toEqual([0, 31, 255]);
  });
});

describe('TLPs as lines', () => {
  const lines: readonly [object, string][] = [
    [MWR, 'MWr64 01:00.0 tag 0 0x123456780 8 bytes: 00112233 44556677'],
    [
      {
        ...MWR,
        lengthDw: 5,
        firstBe: 12,
        lastBe: 1,
        attributes: 7,
        trafficClass: 2,
        poisoned: 1,
        digest: 1,
        data: '00'.repeat(20),
      },
      'MWr64 01:00.0 tag 0 0x123456780 20 bytes BE c/1 TC2 NS RO IDO EP TD: 00000000 00000000 00000000 00000000 …',
    ],
    [
      { ...MWR, kind: 'MRd64', lengthDw: 1, lastBe: 0, data: '', addressType: 1 },
      'MRd64 01:00.0 tag 0 0x123456780 4 bytes AT1',
    ],
    [CPLD, 'CplD 00:00.0 to 01:00.0 tag 92 SC 4 bytes of 4 left, low 0x00: deadbeef'],
    [
      { ...CPLD, kind: 'Cpl', lengthDw: 0, data: '', status: 2 },
      'Cpl 00:00.0 to 01:00.0 tag 92 CRS 0 bytes of 4 left, low 0x00',
    ],
    [CFG, 'CfgRd1 00:00.0 tag 1 to 02:03.1 register 0x010'],
    [
      { ...CFG, kind: 'CfgWr0', firstBe: 3, data: '06000000' },
      'CfgWr0 00:00.0 tag 1 to 02:03.1 register 0x010 BE 3/0: 06000000',
    ],
    [MSG, 'Msg 01:00.0 tag 0 Assert_INTA local 00000000 00000000'],
    [
      // Regression: an AtomicOp was shown with byte enables 0/0, which mean nothing there (2.2.5).
      { ...MWR, kind: 'FetchAdd64', firstBe: 0, lastBe: 0 },
      'FetchAdd64 01:00.0 tag 0 0x123456780 8 bytes: 00112233 44556677',
    ],
    [
      // Regression: the steering tag of a read, 0x5a in the byte enables (2.2.7.1), was shown as such.
      { ...MWR, kind: 'MRd64', data: '', hints: 1, processingHint: 2, firstBe: 10, lastBe: 5 },
      'MRd64 01:00.0 tag 0 0x123456780 8 bytes ST 0x5a PH2',
    ],
    [
      // That of a write is in its tag.
      { ...MWR, hints: 1, tag: 0x5a },
      'MWr64 01:00.0 ST 0x5a 0x123456780 8 bytes PH0: 00112233 44556677',
    ],
    [
      // Regression: BCM was not shown.
      { ...CPLD, byteCountModified: 1 },
      'CplD 00:00.0 to 01:00.0 tag 92 SC 4 bytes of 4 left, low 0x00 BCM: deadbeef',
    ],
    ...(
      [
        [0x01, 'Invalidate_Request'],
        [0x02, 'Invalidate_Completion'],
        [0x04, 'Page_Request'],
        [0x05, 'PRG_Response'],
        [0x52, 'PTM_Request'],
        [0x53, 'PTM_Response'],
      ] as const
    ).map(
      ([messageCode, name]) =>
        [
          { ...MSG, messageCode, messageRouting: 0 },
          `Msg 01:00.0 tag 0 ${name} to root 00000000 00000000`,
        ] satisfies [object, string],
    ),
  ];
  it.each(lines)('%o', (fields, line) => {
    expect(tlpToLine(read(fields))).toBe(line);
  });

  it('a reserved completion status is named (regression: shown as plain UR)', () => {
    // Cpl of 00:00.0 with status 3 (byte 6 bits 7:5), byte count 4, to 01:00.0, tag 92.
    const bytes = Buffer.from('0a000000' + '00006004' + '01005c00', 'hex');
    const tlp = new Tlp();
    expect(decodeTlp(bytes, 0, bytes.length, tlp)).toBe(TlpDecode.OK);
    expect(tlpToLine(tlp, bytes)).toContain('tag 92 UR (reserved status 3) 0 bytes');
    bytes[6] = 0x20;
    expect(decodeTlp(bytes, 0, bytes.length, tlp)).toBe(TlpDecode.OK);
    expect(tlpToLine(tlp, bytes)).toContain('tag 92 UR 0 bytes');
  });
});

describe('what is wrong with a TLP', () => {
  const faults: readonly [string, string, string][] = [
    // CfgRd0 of 1 DW; TC is byte 1 bits 6:4, Attr[1:0] byte 2 bits 5:4, AT byte 2 bits 3:2.
    ['TC 1', '04100001' + '0000000f' + '01000000', 'malformed TLP: field trafficClass: must be 0'],
    ['RO', '04002001' + '0000000f' + '01000000', 'malformed TLP: field attributes: must be 0'],
    ['AT 1', '04000401' + '0000000f' + '01000000', 'malformed TLP: field addressType: must be 0'],
    [
      'FetchAdd32 of 2 DW at 4',
      '4c000002' + '00000000' + '00001004' + '0000000000000000',
      'malformed TLP: field address: 0x1004 is not aligned to the operand',
    ],
    [
      'last BE with 1 DW',
      '00000001' + '000000ff' + '00001000',
      'malformed TLP: byte enables: lastBe (first 15, last 15, 1 DW)',
    ],
    ['a byte short', '00000001' + '0000000f' + '000010', 'malformed TLP: truncated'],
  ];
  it.each(faults)('%s names its field (regression: "malformed TLP: field")', (_name, hex, text) => {
    const bytes = Buffer.from(hex, 'hex');
    const tlp = new Tlp();
    expect(faultText(decodeTlp(bytes, 0, bytes.length, tlp), tlp)).toBe(text);
  });
});
