import { describe, expect, it } from 'vitest';
import {
  byteEnablesAt,
  completeWithData,
  completeWithoutData,
  firstByteAddress,
  isContiguous,
  requestByteCount,
} from './completion.ts';
import { completionChunk, setMemoryRead, setMemoryWrite } from './split.ts';
import { decodeTlp, encodedTlpBytes, encodeTlp, TlpDecode } from './tlp-codec.ts';
import { CompletionStatus, Tlp, TlpKind } from './tlp.ts';

function request(fields: Partial<Tlp>): Tlp {
  return Object.assign(new Tlp(), { lengthDw: 1, firstBe: 15 }, fields);
}

describe('byte count of a request (table 2-38)', () => {
  // First BE, last BE, length in DW, bytes: the table's rows, for a length of 4 where it says Length.
  const rows: readonly [number, number, number, number][] = [
    [0b1001, 0, 1, 4],
    [0b1011, 0, 1, 4],
    [0b1111, 0, 1, 4],
    [0b0101, 0, 1, 3],
    [0b0111, 0, 1, 3],
    [0b1010, 0, 1, 3],
    [0b1110, 0, 1, 3],
    [0b0011, 0, 1, 2],
    [0b0110, 0, 1, 2],
    [0b1100, 0, 1, 2],
    [0b0001, 0, 1, 1],
    [0b0010, 0, 1, 1],
    [0b0100, 0, 1, 1],
    [0b1000, 0, 1, 1],
    [0b0000, 0, 1, 1],
    [0b0001, 0b1000, 4, 16],
    [0b0001, 0b0100, 4, 15],
    [0b0001, 0b0010, 4, 14],
    [0b0001, 0b0001, 4, 13],
    [0b0010, 0b1111, 4, 15],
    [0b0110, 0b0100, 4, 14],
    [0b1110, 0b0011, 4, 13],
    [0b1010, 0b0001, 4, 12],
    [0b0100, 0b1010, 4, 14],
    [0b1100, 0b0111, 4, 13],
    [0b1100, 0b0010, 4, 12],
    [0b1100, 0b0001, 4, 11],
    [0b1000, 0b1000, 4, 13],
    [0b1000, 0b0101, 4, 12],
    [0b1000, 0b0011, 4, 11],
    [0b1000, 0b0001, 4, 10],
  ];
  it.each(rows)('first BE %i, last BE %i, %i DW: %i bytes', (firstBe, lastBe, lengthDw, bytes) => {
    expect(requestByteCount(request({ kind: TlpKind.MRd64, firstBe, lastBe, lengthDw }))).toBe(
      bytes,
    );
  });

  it('of other requests', () => {
    expect(requestByteCount(request({ kind: TlpKind.CfgRd0, firstBe: 1 }))).toBe(4);
    expect(requestByteCount(request({ kind: TlpKind.CfgWr1, firstBe: 8 }))).toBe(4);
    expect(requestByteCount(request({ kind: TlpKind.IORd, firstBe: 0 }))).toBe(4);
    expect(requestByteCount(request({ kind: TlpKind.FetchAdd64, lengthDw: 2, firstBe: 0 }))).toBe(
      8,
    );
    expect(requestByteCount(request({ kind: TlpKind.Swap32 }))).toBe(4);
    expect(requestByteCount(request({ kind: TlpKind.CAS32, lengthDw: 8, firstBe: 0 }))).toBe(16);
  });

  it('of a read with a steering tag: every byte', () => {
    const read = request({
      kind: TlpKind.MRd32,
      addressLo: 0x40,
      lengthDw: 3,
      firstBe: 8,
      lastBe: 0,
      hints: true,
    });
    expect(requestByteCount(read)).toBe(12);
    expect(firstByteAddress(read)).toBe(0x40);
    expect([0, 1, 2].map((index) => byteEnablesAt(read, index))).toEqual([15, 15, 15]);
  });

  it('of writes: none enabled is none', () => {
    expect(requestByteCount(request({ kind: TlpKind.MWr32, firstBe: 0 }))).toBe(0);
    expect(requestByteCount(request({ kind: TlpKind.MWr32, firstBe: 4 }))).toBe(1);
  });
});

describe('byte enables of each double word', () => {
  it('first, inner, last', () => {
    const write = request({ kind: TlpKind.MWr32, lengthDw: 4, firstBe: 8, lastBe: 1 });
    expect([0, 1, 2, 3].map((index) => byteEnablesAt(write, index))).toEqual([8, 15, 15, 1]);
    expect(byteEnablesAt(request({ kind: TlpKind.CfgWr0, firstBe: 3 }), 0)).toBe(3);
    expect(byteEnablesAt(request({ kind: TlpKind.CAS64, lengthDw: 2, firstBe: 0 }), 0)).toBe(15);
  });

  it('holes are seen', () => {
    expect(isContiguous(request({ kind: TlpKind.MWr32, firstBe: 0b1010 }))).toBe(false);
    expect(isContiguous(request({ kind: TlpKind.MWr32, firstBe: 0b0110 }))).toBe(true);
    const two = { kind: TlpKind.MWr32, lengthDw: 2 };
    expect(isContiguous(request({ ...two, firstBe: 0b0111, lastBe: 1 }))).toBe(false);
    expect(isContiguous(request({ ...two, firstBe: 0b1100, lastBe: 0b0011 }))).toBe(true);
    expect(isContiguous(request({ ...two, firstBe: 0b1100, lastBe: 0b0110 }))).toBe(false);
  });
});

describe('completions', () => {
  const out = new Tlp();
  const read = new Tlp();
  setMemoryRead(read, 0x1_0000_0047, 200, 0x0108, 0x155);
  read.trafficClass = 3;
  read.attributes = 7;

  it('take requester, tag, TC and attributes from the request, but IDO', () => {
    completeWithData(out, read, 0x0200, 0x1_0000_0047, 200, 57, new Uint8Array(64), 4);
    expect(out).toMatchObject({
      kind: TlpKind.CplD,
      requesterId: 0x0108,
      tag: 0x155,
      trafficClass: 3,
      attributes: 3,
      completerId: 0x0200,
      status: CompletionStatus.SC,
      byteCount: 200,
      lowerAddress: 0x47,
      // 3 bytes before the first, 57 of data: 60 bytes, 15 DW.
      lengthDw: 15,
      payloadOffset: 4,
      payloadBytes: 60,
    });
    const bytes = new Uint8Array(128);
    expect(decodeTlp(bytes, 0, encodeTlp(out, bytes, 0), new Tlp())).toBe(TlpDecode.OK);
  });

  it('without data carry what remains and where', () => {
    completeWithoutData(out, read, 0x0200, CompletionStatus.UR);
    expect(out).toMatchObject({
      kind: TlpKind.Cpl,
      status: CompletionStatus.UR,
      byteCount: 200,
      lowerAddress: 0x47,
      lengthDw: 0,
      payloadBytes: 0,
    });
    const config = request({
      kind: TlpKind.CfgWr0,
      requesterId: 8,
      tag: 2,
      firstBe: 2,
      addressLo: 0x1234,
    });
    completeWithoutData(out, config, 0x0100, CompletionStatus.CRS);
    expect(out).toMatchObject({ byteCount: 4, lowerAddress: 0, status: CompletionStatus.CRS });
    const swap = request({ kind: TlpKind.Swap64, lengthDw: 2, addressLo: 0x78 });
    completeWithoutData(out, swap, 0x0100, CompletionStatus.CA);
    expect(out).toMatchObject({ byteCount: 8, lowerAddress: 0 });
  });

  it('may be made in the record of the request', () => {
    const same = Object.assign(new Tlp(), read, { digest: true, hints: false, poisoned: true });
    completeWithoutData(same, same, 0x0200, CompletionStatus.UR);
    const other = new Tlp();
    completeWithoutData(other, read, 0x0200, CompletionStatus.UR);
    const bytes = [same, other].map((tlp) => {
      const into = new Uint8Array(12);
      encodeTlp(tlp, into, 0);
      return Buffer.from(into).toString('hex');
    });
    expect(bytes[0]).toBe(bytes[1]);
  });

  it('of a zero-length read: one byte at the double word', () => {
    setMemoryRead(read, 0x2008, 0, 0x0108, 1);
    expect([read.lengthDw, read.firstBe, read.lastBe]).toEqual([1, 0, 0]);
    expect([requestByteCount(read), firstByteAddress(read)]).toEqual([1, 0x2008]);
    completeWithData(
      out,
      read,
      0x0200,
      0x2008,
      1,
      completionChunk(0x2008, 1, 128, 64),
      new Uint8Array(4),
      0,
    );
    expect(out).toMatchObject({ lengthDw: 1, byteCount: 1, lowerAddress: 8 });
  });

  it('a zero-length write carries one double word that changes nothing', () => {
    const write = new Tlp();
    setMemoryWrite(write, 0x2008, 0, 0x0108);
    expect([write.lengthDw, write.firstBe, write.payloadBytes]).toEqual([1, 0, 4]);
    expect(requestByteCount(write)).toBe(0);
  });
});

it('the example of the README', () => {
  const read = new Tlp();
  setMemoryRead(read, 0x1_0000_0047, 200, 0x0100, 5);
  expect([read.lengthDw, read.firstBe, read.lastBe]).toEqual([51, 0b1000, 0b0111]);
  const bytes = new Uint8Array(encodedTlpBytes(read));
  encodeTlp(read, bytes, 0);
  const received = new Tlp();
  expect(decodeTlp(bytes, 0, bytes.length, received)).toBe(TlpDecode.OK);
  const chunk = completionChunk(firstByteAddress(received), requestByteCount(received), 128, 64);
  expect(chunk).toBe(121);
});
