import { describe, expect, it } from 'vitest';
import { decodeTlp, encodedTlpBytes, encodeTlp, TLP_DECODE_NAMES, TlpDecode } from './tlp-codec.ts';
import { tlpFromJson, tlpToJson } from './tlp-text.ts';
import { CompletionStatus, FlowClass, flowClassOf, Tlp, TlpKind } from './tlp.ts';

function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex.replace(/[\s|]/g, ''), 'hex'));
}

function hexOf(tlp: Tlp): string {
  const bytes = new Uint8Array(encodedTlpBytes(tlp));
  expect(encodeTlp(tlp, bytes, 0)).toBe(bytes.length);
  return Buffer.from(bytes).toString('hex');
}

function decode(hex: string, into = new Tlp()): string {
  const bytes = bytesOf(hex);
  return TLP_DECODE_NAMES[decodeTlp(bytes, 0, bytes.length, into)] as string;
}

/** Worked by hand from the figures of 2.2.1 to 2.2.9; | between double words. */
const VECTORS: readonly { name: string; fields: Record<string, string | number>; hex: string }[] = [
  {
    // Length 1, first BE 1111, last BE 0; tag 5.
    name: 'MRd32 of one DW',
    fields: {
      kind: 'MRd32',
      tag: 5,
      lengthDw: 1,
      requesterId: 0x0100,
      firstBe: 15,
      lastBe: 0,
      address: '0xfee00000',
    },
    hex: '00000001|0100050f|fee00000',
  },
  {
    // No byte enabled: a zero-length read still asks for one DW (2.2.5).
    name: 'zero-length MRd32',
    fields: {
      kind: 'MRd32',
      tag: 0,
      lengthDw: 1,
      requesterId: 0x0208,
      firstBe: 0,
      lastBe: 0,
      address: '0x1000',
    },
    hex: '00000001|02080000|00001000',
  },
  {
    // 1024 DW are written as 0. Tag 0x2c5: T9 is byte 1 bit 7, T8 bit 3 (clear), 0xc5 in byte 6.
    // TC 5 is 101 in byte 1 bits 6:4; attributes 6: IDO in byte 1 bit 2, RO in byte 2 bit 5.
    name: 'MRd64 of 4 KiB, 10-bit tag, TC and attributes',
    fields: {
      kind: 'MRd64',
      trafficClass: 5,
      attributes: 6,
      tag: 0x2c5,
      lengthDw: 1024,
      requesterId: 0xff07,
      firstBe: 15,
      lastBe: 15,
      address: '0x123456789000',
    },
    hex: '20d42000|ff07c5ff|00001234|56789000',
  },
  {
    // Tag 0x1ff: T8 is byte 1 bit 3. AT 2 is byte 2 bits 3:2, so 0x08; length 0x100 is bits 1:0 = 01.
    name: 'MRd64 of 1 KiB with AT and T8',
    fields: {
      kind: 'MRd64',
      tag: 0x1ff,
      lengthDw: 256,
      requesterId: 1,
      firstBe: 15,
      lastBe: 15,
      address: '0x100000400',
      addressType: 2,
    },
    hex: '20080900|0001ffff|00000001|00000400',
  },
  {
    // TH is byte 1 bit 0; PH 3 sits in the two low address bits; byte 7 is the steering tag.
    name: 'MRd32 with a processing hint',
    fields: {
      kind: 'MRd32',
      tag: 0,
      lengthDw: 2,
      requesterId: 0,
      firstBe: 0,
      lastBe: 10,
      address: '0x2000',
      hints: 1,
      processingHint: 3,
    },
    hex: '00010002|000000a0|00002003',
  },
  {
    // EP is byte 2 bit 6. Bytes 3 to 5 of two DW: first BE 1000, last BE 0011.
    name: 'MWr32, poisoned, three bytes over two DW',
    fields: {
      kind: 'MWr32',
      poisoned: 1,
      tag: 0,
      lengthDw: 2,
      requesterId: 0x0100,
      firstBe: 8,
      lastBe: 3,
      address: '0x80000004',
      data: '000000aabbcc0000',
    },
    hex: '40004002|01000038|80000004|000000aa|bbcc0000',
  },
  {
    name: 'MWr64 of one DW with NS',
    fields: {
      kind: 'MWr64',
      attributes: 1,
      tag: 0,
      lengthDw: 1,
      requesterId: 0x0100,
      firstBe: 15,
      lastBe: 0,
      address: '0x8000000000000ffc',
      data: '01020304',
    },
    hex: '60001001|0100000f|80000000|00000ffc|01020304',
  },
  {
    name: 'IOWr of one byte',
    fields: {
      kind: 'IOWr',
      tag: 7,
      lengthDw: 1,
      requesterId: 0,
      firstBe: 2,
      lastBe: 0,
      address: '0x3f8',
      data: '00410000',
    },
    hex: '42000001|00000702|000003f8|00410000',
  },
  {
    // Destination 02:03.1 is 0x0219; register 0x104: extended 1, number 0x04.
    name: 'CfgRd1 of an extended register',
    fields: {
      kind: 'CfgRd1',
      tag: 1,
      lengthDw: 1,
      requesterId: 0,
      firstBe: 15,
      lastBe: 0,
      completerId: 0x0219,
      register: 0x104,
    },
    hex: '05000001|0000010f|02190104',
  },
  {
    name: 'CfgWr0 of the command register',
    fields: {
      kind: 'CfgWr0',
      tag: 2,
      lengthDw: 1,
      requesterId: 0,
      firstBe: 3,
      lastBe: 0,
      completerId: 0x0100,
      register: 4,
      data: '06000000',
    },
    hex: '44000001|00000203|01000004|06000000',
  },
  {
    // Status in byte 6 bits 7:5: UR is 001. Byte count 4.
    name: 'Cpl with UR',
    fields: {
      kind: 'Cpl',
      tag: 1,
      lengthDw: 0,
      requesterId: 0,
      completerId: 0x0219,
      status: 1,
      byteCount: 4,
      lowerAddress: 0,
    },
    hex: '0a000000|02192004|00000100',
  },
  {
    // Byte count 4096 is written as 0; lower address 0x7c. Tag 0x300: T9 and T8, byte 10 zero.
    name: 'CplD, first of 4 KiB',
    fields: {
      kind: 'CplD',
      tag: 0x300,
      lengthDw: 1,
      requesterId: 0x0100,
      completerId: 0,
      status: 0,
      byteCount: 4096,
      lowerAddress: 0x7c,
      data: 'deadbeef',
    },
    hex: '4a880001|00000000|0100007c|deadbeef',
  },
  {
    // BCM is byte 6 bit 4; byte count 0x123 has its top four bits beside it.
    name: 'CplD with BCM',
    fields: {
      kind: 'CplD',
      tag: 9,
      lengthDw: 1,
      requesterId: 0x0100,
      completerId: 0x00f8,
      status: 0,
      byteCount: 0x123,
      lowerAddress: 4,
      byteCountModified: 1,
      data: '00000001',
    },
    hex: '4a000001|00f81123|01000904|00000001',
  },
  {
    // Routing 4 (local) is in the low bits of Type: 0x30 | 4. Code 0x20, Assert_INTA.
    name: 'Msg Assert_INTA',
    fields: {
      kind: 'Msg',
      tag: 0,
      lengthDw: 0,
      requesterId: 0x0100,
      messageCode: 0x20,
      messageRouting: 4,
      messageDw2: 0,
      messageDw3: 0,
    },
    hex: '34000000|01000020|00000000|00000000',
  },
  {
    // Routed by ID: destination and vendor in DW 2.
    name: 'MsgD vendor-defined',
    fields: {
      kind: 'MsgD',
      trafficClass: 3,
      tag: 4,
      lengthDw: 1,
      requesterId: 0x0100,
      messageCode: 0x7f,
      messageRouting: 2,
      messageDw2: 0x02001ab4,
      messageDw3: 0xfedcba98,
      data: '11223344',
    },
    hex: '72300001|0100047f|02001ab4|fedcba98|11223344',
  },
  {
    name: 'FetchAdd32 of 64 bits',
    fields: {
      kind: 'FetchAdd32',
      tag: 3,
      lengthDw: 2,
      requesterId: 0x0100,
      firstBe: 15,
      lastBe: 15,
      address: '0x1008',
      data: '0100000000000000',
    },
    hex: '4c000002|010003ff|00001008|01000000|00000000',
  },
  {
    name: 'Swap64 of 32 bits',
    fields: {
      kind: 'Swap64',
      tag: 3,
      lengthDw: 1,
      requesterId: 0x0100,
      firstBe: 15,
      lastBe: 0,
      address: '0x100001004',
      data: '01000000',
    },
    hex: '6d000001|0100030f|00000001|00001004|01000000',
  },
  {
    name: 'CAS64 of 128 bits',
    fields: {
      kind: 'CAS64',
      tag: 3,
      lengthDw: 8,
      requesterId: 0x0100,
      firstBe: 15,
      lastBe: 15,
      address: '0x100001010',
      data: '00'.repeat(16) + 'ff'.repeat(16),
    },
    hex: `6e000008|010003ff|00000001|00001010|${'00'.repeat(16)}${'ff'.repeat(16)}`,
  },
];

describe('vectors worked by hand', () => {
  for (const { name, fields, hex } of VECTORS) {
    it(name, () => {
      const tlp = new Tlp();
      tlpFromJson(fields, tlp);
      expect(hexOf(tlp)).toBe(hex.replaceAll('|', ''));
      const back = new Tlp();
      expect(decode(hex, back)).toBe('OK');
      const defaults = { trafficClass: 0, attributes: 0, poisoned: 0, data: '' };
      expect(tlpToJson(back)).toEqual({ ...defaults, ...fields });
    });
  }
});

describe('what is malformed', () => {
  const cases: readonly [string, string, keyof typeof TlpDecode][] = [
    ['nothing', '', 'MALFORMED_TRUNCATED'],
    ['three bytes', '000000', 'MALFORMED_TRUNCATED'],
    ['a header cut short', '00000001|0100050f|fee000', 'MALFORMED_TRUNCATED'],
    ['a 4 DW header of 3 DW', '20000001|0100050f|00000001', 'MALFORMED_TRUNCATED'],
    ['data missing', '40000002|010000ff|80000000|00000000', 'MALFORMED_TRUNCATED'],
    ['1024 DW claimed, none there', '40000000|010000ff|80000000', 'MALFORMED_TRUNCATED'],
    ['data too long', '40000001|0100000f|80000000|00000000|00000000', 'MALFORMED_LENGTH'],
    ['data behind a read', '00000001|0100050f|fee00000|00000000', 'MALFORMED_LENGTH'],
    ['odd byte behind', '00000001|0100050f|fee00000|00', 'MALFORMED_LENGTH'],
    ['TD without a digest', '00008001|0100050f|fee00000', 'MALFORMED_TRUNCATED'],
    ['a digest without TD', '00000001|0100050f|fee00000|12345678', 'MALFORMED_LENGTH'],
    ['reserved Fmt 101', 'a0000001|0100050f|fee00000|00000000', 'MALFORMED_FORMAT'],
    ['reserved Type 00011', '03000001|0100050f|fee00000', 'MALFORMED_FORMAT'],
    ['FetchAdd without data', '0c000001|0100050f|fee00000', 'MALFORMED_FORMAT'],
    ['a 64-bit config request', '24000001|0000010f|02190104|00000000', 'MALFORMED_FORMAT'],
    ['a 3 DW message', '10000000|01000020|00000000', 'MALFORMED_FORMAT'],
    ['length 1 with last BE', '00000001|010005ff|fee00000', 'MALFORMED_BYTE_ENABLES'],
    ['length 2 without first BE', '00000002|010005f0|fee00000', 'MALFORMED_BYTE_ENABLES'],
    ['length 2 without last BE', '00000002|0100050f|fee00000', 'MALFORMED_BYTE_ENABLES'],
    ['holes, not QW aligned', '00000002|010005f5|fee00004', 'MALFORMED_BYTE_ENABLES'],
    ['holes over three DW', '00000003|010005f5|fee00000', 'MALFORMED_BYTE_ENABLES'],
    ['first BE stops short of the next DW', '00000003|010005f7|fee00000', 'MALFORMED_BYTE_ENABLES'],
    ['last BE starts late', '00000003|010005ef|fee00000', 'MALFORMED_BYTE_ENABLES'],
    ['one DW past 4 KiB', '00000002|010005ff|fee00ffc', 'MALFORMED_4K_CROSSING'],
    ['1024 DW not at a page', '20000000|010005ff|00000001|00000004', 'MALFORMED_4K_CROSSING'],
    ['config of two DW', '04000002|0000010f|02190104', 'MALFORMED_LENGTH'],
    ['config with last BE', '04000001|000001ff|02190104', 'MALFORMED_BYTE_ENABLES'],
    ['config in TC 1', '04100001|0000010f|02190104', 'MALFORMED_FIELD'],
    ['config with NS', '04001001|0000010f|02190104', 'MALFORMED_FIELD'],
    ['config with AT', '04000401|0000010f|02190104', 'MALFORMED_FIELD'],
    ['I/O of two DW', '02000002|0000010f|00000400', 'MALFORMED_LENGTH'],
    ['I/O in TC 7', '02700001|0000010f|00000400', 'MALFORMED_FIELD'],
    ['I/O with RO', '02002001|0000010f|00000400', 'MALFORMED_FIELD'],
    ['FetchAdd of three DW', `4c000003|010003ff|00001000|${'00'.repeat(12)}`, 'MALFORMED_LENGTH'],
    ['CAS of one DW', '4e000001|0100030f|00001000|00000000', 'MALFORMED_LENGTH'],
    ['CAS of six DW', `4e000006|010003ff|00001000|${'00'.repeat(24)}`, 'MALFORMED_LENGTH'],
    ['Swap of 64 bits at 4', `4d000002|010003ff|00001004|${'00'.repeat(8)}`, 'MALFORMED_FIELD'],
    // Two operands of 64 bits: aligned to 8, though there are 16 bytes.
    ['CAS of 64 bits at 4', `4e000004|010003ff|00001004|${'00'.repeat(16)}`, 'MALFORMED_FIELD'],
    ['INTx in TC 1', '34100000|01000020|00000000|00000000', 'MALFORMED_FIELD'],
    ['more data than remains', '4a000002|00000004|01000000|0000000000000000', 'MALFORMED_LENGTH'],
  ];
  it.each(cases)('%s', (_name, hex, outcome) => {
    expect(decode(hex)).toBe(outcome);
  });
});

describe('what is not', () => {
  const cases: readonly [string, string][] = [
    ['holes in one DW', '00000001|0100050a|fee00004'],
    ['holes in two QW-aligned DW', '00000002|010005a5|fee00008'],
    ['a page of its own', '00000000|010005ff|fee00000'],
    ['the last DW of a page', '00000001|0100050f|fee00ffc'],
    // 2.2.4.1 forbids requesters to send it, and says nothing of receivers.
    ['the 64-bit form below 4 GiB', '20000001|0100050f|00000000|fee00000'],
    ['CAS of 64 bits at 8', `4e000004|010003ff|00001008|${'00'.repeat(16)}`],
    // The hint in the address's low bits is no part of the address.
    ['a processing hint in the last DW of a page', '00010001|0100000f|fee00fff'],
    // Byte enables of AtomicOps mean nothing.
    ['FetchAdd without byte enables', '4c000001|01000300|00001000|00000001'],
    ['a vendor message in TC 3', '34300000|0100007e|00000000|00000000'],
    // Byte count 1, lower address 3: the data is one DW, its last byte counts.
    ['one byte in one DW', '4a000001|00000001|01000003|00000000'],
    // Byte count 2 from lower address 3 reaches into a second DW.
    ['two bytes in two DW', '4a000002|00000002|01000003|0000000000000000'],
  ];
  it.each(cases)('%s', (_name, hex) => {
    expect(decode(hex)).toBe('OK');
  });

  it('reserved bits are ignored, and not kept', () => {
    const tlp = new Tlp();
    // Attr[2] and TH of a config request, bits 7:4 of byte 10 and 1:0 of byte 11.
    expect(decode('04050001|0000010f|0219f107', tlp)).toBe('OK');
    expect(tlp.attributes).toBe(0);
    expect(tlp.hints).toBe(false);
    expect(tlp.register).toBe(0x104);
    // Length of a Cpl, bit 7 of byte 11, AT.
    expect(decode('0a000455|02192004|00000180', tlp)).toBe('OK');
    expect([tlp.lengthDw, tlp.lowerAddress, tlp.addressType]).toEqual([0, 0, 0]);
    // PH without TH.
    expect(decode('00000001|0100050f|fee00003', tlp)).toBe('OK');
    expect([tlp.addressLo, tlp.processingHint]).toEqual([0xfee00000, 0]);
  });

  it('reserved completion status is UR', () => {
    const tlp = new Tlp();
    const read = [0, 1, 2, 3, 4, 5, 6, 7].map((status) => {
      expect(decode(`0a000000|0219${(status * 2).toString(16)}004|00000100`, tlp)).toBe('OK');
      return tlp.status;
    });
    const { SC, UR, CRS, CA } = CompletionStatus;
    expect(read).toEqual([SC, UR, CRS, UR, CA, UR, UR, UR]);
  });
});

describe('what is well formed, but not handled', () => {
  const cases: readonly [string, string, FlowClass][] = [
    ['MRdLk32', '01000001|0100050f|fee00000', FlowClass.NON_POSTED],
    ['MRdLk64', '21000001|0100050f|00000001|fee00000', FlowClass.NON_POSTED],
    ['TCfgRd', '1b000001|0000010f|02190104', FlowClass.NON_POSTED],
    ['DMWr32', '5b000001|0100050f|fee00000|00000000', FlowClass.NON_POSTED],
    ['DMWr64', '7b000001|0100050f|00000001|fee00000|00000000', FlowClass.NON_POSTED],
    ['CplLk', '0b000000|02192004|00000100', FlowClass.COMPLETION],
    ['CplDLk', '4b000001|02190004|00000100|00000000', FlowClass.COMPLETION],
  ];
  it.each(cases)('%s', (_name, hex, flow) => {
    const tlp = new Tlp();
    expect(decode(hex, tlp)).toBe('UNSUPPORTED_KIND');
    // Enough is known to answer it.
    expect(tlp.kind).toBe(Number.parseInt(hex.slice(0, 2), 16));
    expect(flowClassOf(tlp.kind)).toBe(flow);
    if (flow === FlowClass.NON_POSTED)
      expect([tlp.requesterId >>> 8, tlp.tag]).toEqual([
        hex.startsWith('1b') ? 0 : 1,
        Number.parseInt(hex.slice(13, 15), 16),
      ]);
  });

  it('prefixes, local and end-to-end', () => {
    for (let prefix = 0x80; prefix < 0xa0; prefix++) {
      expect(decode(`${prefix.toString(16)}000000|00000001|0100050f|fee00000`)).toBe(
        'UNSUPPORTED_KIND',
      );
    }
  });

  it('but lies about its length are malformed all the same', () => {
    expect(decode('01000001|0100050f|fee00000|00000000')).toBe('MALFORMED_LENGTH');
    expect(decode('5b000002|0100050f|fee00000|00000000')).toBe('MALFORMED_TRUNCATED');
  });

  it('every value of byte 0 is one of the table, unsupported, or reserved', () => {
    const known = new Set<number>(Object.values(TlpKind));
    for (let routing = 0; routing < 8; routing++) known.add(0x30 | routing).add(0x70 | routing);
    let reserved = 0;
    for (let byte0 = 0; byte0 < 256; byte0++) {
      const outcome = decode(byte0.toString(16).padStart(2, '0') + '00000100000000');
      if (outcome === 'MALFORMED_FORMAT') {
        expect(known.has(byte0)).toBe(false);
        reserved++;
      }
    }
    // 20 kinds, of which Msg and MsgD count 8 times; 7 unsupported; 32 prefixes.
    expect(reserved).toBe(256 - (18 + 16) - 7 - 32);
  });
});

describe('ECRC', () => {
  const fields = {
    kind: 'MWr64',
    tag: 0,
    lengthDw: 1,
    requesterId: 0x0100,
    firstBe: 15,
    lastBe: 0,
    address: '0x100000ffc',
    data: '01020304',
    digest: 1,
  };
  const tlp = new Tlp();
  tlpFromJson(fields, tlp);
  const good = hexOf(tlp);

  it('is written, checked, and taken off', () => {
    const back = new Tlp();
    expect(good).toHaveLength(2 * (16 + 4 + 4));
    expect(good.slice(0, 8)).toBe('60008001'); // TD is byte 2 bit 7
    expect(decode(good, back)).toBe('OK');
    expect(tlpToJson(back)).toEqual({ trafficClass: 0, attributes: 0, poisoned: 0, ...fields });
  });

  it('finds every single wrong bit, save those a switch may change', () => {
    const bytes = bytesOf(good);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const wrong = bytes.slice();
      wrong[bit >> 3] = (wrong[bit >> 3] as number) ^ (0x80 >> (bit & 7));
      const outcome = decodeTlp(wrong, 0, wrong.length, new Tlp());
      const isEp = bit === 17;
      expect(outcome === TlpDecode.OK, `bit ${bit}`).toBe(isEp);
    }
  });

  it('comes after malformed and before unsupported', () => {
    expect(decode('04108001|0000010f|02190104|00000000')).toBe('MALFORMED_FIELD');
    expect(decode('01008001|0100050f|fee00000|00000000')).toBe('BAD_ECRC');
  });

  it('is carried by TLPs without data', () => {
    const read = new Tlp();
    tlpFromJson(
      {
        kind: 'CfgRd0',
        tag: 1,
        lengthDw: 1,
        requesterId: 0,
        firstBe: 15,
        lastBe: 0,
        completerId: 8,
        register: 0,
        digest: 1,
      },
      read,
    );
    expect(decode(hexOf(read))).toBe('OK');
  });
});

describe('encoding what is not valid is a bug, and says where', () => {
  const valid = (): Tlp =>
    Object.assign(new Tlp(), {
      kind: TlpKind.MWr32,
      lengthDw: 1,
      firstBe: 15,
      addressLo: 0x1000,
      payload: new Uint8Array(8),
      payloadOffset: 0,
      payloadBytes: 4,
    });
  const wrong: readonly [string, Partial<Tlp>, RegExp][] = [
    ['trafficClass', { trafficClass: 8 }, /trafficClass/],
    ['attributes', { attributes: 8 }, /attributes/],
    ['tag', { tag: 1024 }, /tag/],
    ['negative tag', { tag: -1 }, /tag/],
    ['requesterId', { requesterId: 0x10000 }, /requesterId/],
    ['firstBe', { firstBe: 16 }, /firstBe/],
    ['lengthDw 0', { lengthDw: 0, payloadBytes: 0 }, /lengthDw/],
    [
      'lengthDw 1025',
      { lengthDw: 1025, payloadBytes: 4100, payload: new Uint8Array(4100) },
      /lengthDw/,
    ],
    ['payloadBytes', { payloadBytes: 8 }, /payloadBytes/],
    ['payload outside its buffer', { payloadOffset: 5 }, /payload/],
    ['negative payloadOffset', { payloadOffset: -4 }, /payload/],
    ['a read with payload', { kind: TlpKind.MRd32 }, /payloadBytes/],
    ['an unaligned address', { addressLo: 2 }, /address/],
    ['an address above 32 bits', { addressHi: 1 }, /address/],
    ['addressType', { addressType: 4 }, /addressType/],
    ['processingHint', { hints: true, processingHint: 4 }, /processingHint/],
    ['an unknown kind', { kind: 0x01 as TlpKind }, /kind/],
    ['a broken rule', { lastBe: 1 }, /not valid: 4/],
    ['config with hints', { kind: TlpKind.CfgWr0, hints: true }, /hints/],
    ['config register', { kind: TlpKind.CfgWr0, register: 2 }, /register/],
    ['config register range', { kind: TlpKind.CfgWr0, register: 4096 }, /register/],
    ['completerId', { kind: TlpKind.CplD, byteCount: 4, completerId: -1 }, /completerId/],
    ['byteCount 0', { kind: TlpKind.CplD, byteCount: 0 }, /byteCount/],
    ['byteCount 4097', { kind: TlpKind.CplD, byteCount: 4097 }, /byteCount/],
    ['status', { kind: TlpKind.CplD, byteCount: 4, status: 3 as CompletionStatus }, /status/],
    ['lowerAddress', { kind: TlpKind.CplD, byteCount: 4, lowerAddress: 128 }, /lowerAddress/],
    ['messageCode', { kind: TlpKind.MsgD, messageCode: 256 }, /messageCode/],
    ['messageRouting', { kind: TlpKind.MsgD, messageRouting: 8 }, /messageRouting/],
    ['message words', { kind: TlpKind.MsgD, messageDw2: 2 ** 32 }, /messageDw2/],
  ];
  it.each(wrong)('%s', (_name, change, message) => {
    const bytes = new Uint8Array(5000);
    expect(encodeTlp(valid(), bytes, 0)).toBe(16);
    expect(() => encodeTlp(Object.assign(valid(), change), bytes, 0)).toThrow(message);
  });

  it('no room', () => {
    expect(() => encodeTlp(valid(), new Uint8Array(15), 0)).toThrow(/no room/);
    expect(() => encodeTlp(valid(), new Uint8Array(16), 1)).toThrow(/no room/);
    expect(encodeTlp(valid(), new Uint8Array(16), 0)).toBe(16);
  });
});

describe('places', () => {
  it('an unaligned place encodes and decodes like an aligned one', () => {
    const tlp = new Tlp();
    for (const { fields, hex } of VECTORS) {
      tlpFromJson(fields, tlp);
      for (let offset = 0; offset < 5; offset++) {
        const bytes = new Uint8Array(64).fill(0xee).subarray(1);
        const size = encodeTlp(tlp, bytes, offset);
        expect(Buffer.from(bytes.subarray(offset, offset + size)).toString('hex')).toBe(
          hex.replaceAll('|', ''),
        );
        expect(bytes.subarray(0, offset).every((b) => b === 0xee)).toBe(true);
        expect(bytes.subarray(offset + size).every((b) => b === 0xee)).toBe(true);
        expect(decodeTlp(bytes, offset, size, new Tlp())).toBe(TlpDecode.OK);
      }
    }
  });

  it('a range that leaves the buffer is truncated', () => {
    const bytes = bytesOf('00000001|0100050f|fee00000');
    expect(decodeTlp(bytes, 4, 12, new Tlp())).toBe(TlpDecode.MALFORMED_TRUNCATED);
    expect(decodeTlp(bytes, 0, 16, new Tlp())).toBe(TlpDecode.MALFORMED_TRUNCATED);
  });
});
