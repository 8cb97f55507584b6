import { describe, expect, it, vi } from 'vitest';
import { fc } from '#testkit/properties';
import {
  type CapturedTlp,
  encodeHeader,
  encodePacket,
  encodeStatistics,
  wholeBlocks,
} from './pcapng.ts';
import { isPcapng, PcapngReader, type ReadPacket } from './pcapng-reader.ts';

function read(file: Uint8Array): ReadPacket[] {
  const reader = new PcapngReader();
  const packets = [...reader.push(file)];
  reader.end();
  return packets;
}

const tlp = Buffer.from('05000001ca9a5c0ff74807a4', 'hex');
const packet: CapturedTlp = {
  timeNs: 0x0102_0304_0506_0708n,
  slot: 0x0a0b,
  direction: 'up',
  tlp,
};

/** The blocks of a file, each handed over by itself, as a file of big blocks comes in. */
function inChunks(file: Uint8Array, chunkBytes: number): ReadPacket[] {
  const reader = new PcapngReader();
  const found: ReadPacket[] = [];
  for (let at = 0; at < file.length; at += chunkBytes) {
    found.push(...reader.push(file.subarray(at, at + chunkBytes)));
  }
  reader.end();
  return found;
}

describe('pcapng', () => {
  it('is written as the format asks, byte by byte', () => {
    // Section Header Block: type, length, magic, 1.0, section length unknown, options, length.
    const section =
      '0a0d0d0a' +
      '28000000' +
      '4d3c2b1a' +
      '01000000' +
      'ffffffffffffffff' +
      '04000300' +
      '61707000' + // shb_userappl, 3 bytes: app
      '00000000' +
      '28000000';
    // Interface Description Block: link type 147, snap length 0, if_name, if_tsresol 9, end.
    const description =
      '01000000' +
      '28000000' +
      '93000000' +
      '00000000' +
      '02000200' +
      '69660000' +
      '09000100' +
      '09000000' +
      '00000000' +
      '28000000';
    expect(encodeHeader('if', 'app').toString('hex')).toBe(section + description);
    // Enhanced Packet Block: interface 0, time high and low, 16 bytes captured and original; the
    // packet (version 1, up, slot, TLP); epb_flags 1 (inbound); end.
    expect(encodePacket(packet).toString('hex')).toBe(
      '06000000' +
        '3c000000' +
        '00000000' +
        '04030201' +
        '08070605' +
        '10000000' +
        '10000000' +
        '01010a0b' +
        '05000001ca9a5c0ff74807a4' +
        '02000400' +
        '01000000' +
        '00000000' +
        '3c000000',
    );
  });

  it('comes back as it was written, however it is cut', () => {
    const one = fc.record({
      timeNs: fc.bigInt({ min: 0n, max: 2n ** 63n }),
      slot: fc.integer({ min: 0, max: 65535 }),
      direction: fc.constantFrom('down' as const, 'up' as const),
      tlp: fc.uint8Array({ minLength: 12, maxLength: 60 }),
    });
    fc.assert(
      fc.property(fc.array(one, { maxLength: 6 }), fc.integer({ min: 1, max: 90 }), (list, cut) => {
        const file = Buffer.concat([
          encodeHeader('x', 'y'),
          ...list.map((one) => encodePacket(one)),
        ]);
        const reader = new PcapngReader();
        const found: ReadPacket[] = [];
        for (let at = 0; at < file.length; at += cut) {
          found.push(...reader.push(file.subarray(at, at + cut)));
        }
        reader.end();
        expect(
          found.map((item) => {
            if (!('packet' in item)) throw new Error(item.error);
            return { ...item.packet, tlp: new Uint8Array(item.packet.tlp) };
          }),
        ).toEqual(list);
      }),
    );
  });

  it('carries the config space of the function', () => {
    const configSpace = Uint8Array.from({ length: 256 }, (_, index) => index);
    const reader = new PcapngReader();
    expect([
      ...reader.push(encodeHeader('if', 'app', { function: { bdf: 0x0108, configSpace } })),
    ]).toEqual([]);
    expect(reader.capturedFunction?.bdf).toBe(0x0108);
    expect(new Uint8Array(reader.capturedFunction!.configSpace)).toEqual(configSpace);
  });

  it('says whether the function was in use, and what was lost where', () => {
    const reader = new PcapngReader();
    expect([...reader.push(encodeHeader('if', 'app', { inUse: true }))]).toEqual([]);
    expect(reader.inUse).toBe(true);
    expect([...reader.push(encodePacket(packet, 2 ** 32 + 7))]).toEqual([
      { number: 1, lostBefore: 2 ** 32 + 7, packet },
    ]);
    expect(reader.lost).toBe(2 ** 32 + 7);
    // 9 more were lost after the last packet.
    expect([...reader.push(encodeStatistics(5n, 1, 2 ** 32 + 16))]).toEqual([]);
    expect(reader.lost).toBe(2 ** 32 + 16);
    const unused = new PcapngReader();
    expect([...unused.push(encodeHeader('if', 'app', { inUse: false }))]).toEqual([]);
    expect(unused.inUse).toBe(false);
  });

  it('statistics are written as the format asks, byte by byte', () => {
    // Type, length, interface 0, time high and low; isb_ifrecv 4 of 8 bytes: 3 + 2; isb_ifdrop 5: 2.
    expect(encodeStatistics(0x0102_0304_0506_0708n, 3, 2).toString('hex')).toBe(
      '05000000' +
        '34000000' +
        '00000000' +
        '04030201' +
        '08070605' +
        '04000800' +
        '0500000000000000' +
        '05000800' +
        '0200000000000000' +
        '00000000' +
        '34000000',
    );
  });

  it('counts the blocks that are whole (regression: a full disk left half a packet uncounted)', () => {
    const one = encodePacket(packet);
    const blocks = Buffer.concat([one, one, one]);
    expect(wholeBlocks(blocks, blocks.length)).toEqual({ count: 3, end: 3 * one.length });
    expect(wholeBlocks(blocks, 2 * one.length + 13)).toEqual({ count: 2, end: 2 * one.length });
    expect(wholeBlocks(blocks, 11)).toEqual({ count: 0, end: 0 });
  });

  it('of an unknown major version is refused (regression: read as if it were version 1)', () => {
    const file = encodeHeader('if', 'app');
    file.writeUInt16LE(2, 12);
    expect(() => read(file)).toThrow('pcapng version 2.0; known is 1.x');
  });

  it('honours if_tsoffset (regression: ignored)', () => {
    // Time in ns (if_tsresol 9), counted from second 1000 (if_tsoffset 14): 1000 s + 5 ns.
    const description =
      '01000000' +
      '2c000000' +
      '93000000' +
      '00000000' +
      '09000100' +
      '09000000' +
      '0e000800' +
      'e803000000000000' +
      '00000000' +
      '2c000000';
    const section = encodeHeader('if', 'app').subarray(0, 40);
    const file = Buffer.concat([
      section,
      Buffer.from(description, 'hex'),
      encodePacket({ ...packet, timeNs: 5n }),
    ]);
    expect(read(file)).toEqual([{ number: 1, packet: { ...packet, timeNs: 1_000_000_000_005n } }]);
  });

  it('joins a large block once (regression: a copy of all of it for each chunk)', () => {
    const foreign = Buffer.alloc(1 << 20);
    foreign.writeUInt32LE(0x0bad, 0);
    foreign.writeUInt32LE(foreign.length, 4);
    foreign.writeUInt32LE(foreign.length, foreign.length - 4);
    const file = Buffer.concat([encodeHeader('if', 'app'), foreign, encodePacket(packet)]);
    const concat = vi.spyOn(Buffer, 'concat');
    try {
      expect(inChunks(file, 1024)).toEqual([{ number: 1, packet }]);
      // 1024 chunks; once for the header, once to see the length, once for the block, once for the rest.
      expect(concat.mock.calls.length).toBeLessThan(10);
    } finally {
      concat.mockRestore();
    }
  });

  it('of a big-endian machine with microseconds is understood', () => {
    // Written out by hand: no options, so time is in microseconds; 2 µs after 1970.
    const section =
      '0a0d0d0a' + '0000001c' + '1a2b3c4d' + '00010000' + 'ffffffffffffffff' + '0000001c';
    const description = '00000001' + '00000014' + '00930000' + '00000000' + '00000014';
    const block =
      '00000006' +
      '00000030' +
      '00000000' +
      '00000000' +
      '00000002' +
      '00000010' +
      '00000010' +
      '01000003' +
      '05000001ca9a5c0ff74807a4' +
      '00000030';
    expect(read(Buffer.from(section + description + block, 'hex'))).toEqual([
      { number: 1, packet: { timeNs: 2000n, slot: 3, direction: 'down', tlp } },
    ]);
  });

  it('with foreign packets names them and goes on', () => {
    const header = encodeHeader('if', 'app');
    const foreign = Buffer.from(header);
    foreign.writeUInt16LE(1, header.indexOf(Buffer.from('93000000', 'hex')));
    expect(read(Buffer.concat([foreign, encodePacket(packet)]))).toEqual([
      { number: 1, error: 'has link type 1, TLP captures have 147' },
    ]);
    const bad = encodePacket(packet);
    bad[28] = 2; // Version of our header.
    const found = read(Buffer.concat([header, bad, encodePacket(packet)]));
    expect(found[0]).toEqual({ number: 1, error: expect.stringContaining('no header of a dxpu') });
    expect(found[1]).toMatchObject({ number: 2, packet: { slot: 0x0a0b } });
  });

  it('that is damaged names the byte', () => {
    const header = encodeHeader('if', 'app');
    const file = Buffer.concat([header, encodePacket(packet)]);
    expect(() => read(file.subarray(0, file.length - 1))).toThrow(
      `damaged at byte ${header.length}: it ends within a block`,
    );
    const lying = Buffer.from(file);
    lying.writeUInt32LE(0xfffffff0, header.length + 4);
    expect(() => read(lying)).toThrow(
      `byte ${header.length}: a block claims a length of 4294967280`,
    );
    const uneven = Buffer.from(file);
    uneven.writeUInt32LE(64, file.length - 4);
    expect(() => read(uneven)).toThrow('the two lengths of a block differ');
  });

  it('never throws anything but its own errors, and reads nothing that is not there', () => {
    const file = Buffer.concat([encodeHeader('if', 'app'), encodePacket(packet)]);
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(file.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        (changes) => {
          const mutated = Buffer.from(file);
          for (const [at, value] of changes) mutated[at] = value;
          try {
            read(mutated);
          } catch (error) {
            expect((error as Error).name).toBe('DxpuError');
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('is told from text by its first bytes', () => {
    expect(isPcapng(encodeHeader('if', 'app'))).toBe(true);
    expect(isPcapng(Buffer.from('0a0d0d0a05000001ca9a5c0f\n'))).toBe(false);
  });
});
