import { describe, expect, it } from 'vitest';
import { FlowClass } from '#pcie/tlp';
import { fuzzFrames } from '#testkit/frame-fuzz';
import {
  dataUnitsOf,
  decodeFrame,
  EndCode,
  encodeEnd,
  EntryKind,
  Frame,
  FrameDecode,
  frameLengthAt,
  FrameType,
  helloFrame,
  writeEntryHeader,
  writeSessionHeader,
} from './frame.ts';

const LIMITS = Uint32Array.of(1, 2, 3, 4, 5, 0xffffffff);

/** MRd32 of one double word at 0x1000: header bytes as 2.2.4.1 draws them. */
const READ = Uint8Array.of(0x00, 0, 0, 1, 0x01, 0x08, 7, 0x0f, 0, 0, 0x10, 0);

function dataFrame(): Uint8Array {
  // Session header 40, entry header 12, TLP 12, entry header 12, slot state 4.
  const bytes = new Uint8Array(80);
  const view = new DataView(bytes.buffer);
  writeSessionHeader(view, 0, FrameType.DATA, 2, 80, 0xfffffffe, 0x01020304, LIMITS);
  writeEntryHeader(view, 40, EntryKind.TLP, FlowClass.NON_POSTED, 0xabcd, 0x1fffff, 0xffffffff, 12);
  bytes.set(READ, 52);
  writeEntryHeader(view, 64, EntryKind.SLOT_STATE, 0, 1, 0, 9, 4);
  view.setUint32(76, 2);
  return bytes;
}

function decode(bytes: Uint8Array, into = new Frame()): FrameDecode {
  return decodeFrame(new DataView(bytes.buffer), bytes, 0, bytes.length, into);
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

describe('frame codec', () => {
  it('lays a DATA frame out as documented', () => {
    const expected = [
      'd7050002', // magic, DATA, two entries
      '00000050', // 80 bytes
      'fffffffe', // sequence
      '01020304', // acknowledgement
      '0000000100000002000000030000000400000005ffffffff',
      '0101abcd', // TLP, non-posted, slot
      '007fffff', // 3 double words << 21 (0x00600000), generation 52:32 (0x1fffff)
      'ffffffff',
      hex(READ),
      '02000001', // slot state
      '00200000', // one double word
      '00000009',
      '00000002', // GONE
    ].join('');
    expect(hex(dataFrame())).toBe(expected);
    const frame = new Frame();
    expect(decode(dataFrame(), frame)).toBe(FrameDecode.OK);
    expect(frame).toMatchObject({ entries: 2, sequence: 0xfffffffe, ack: 0x01020304, length: 80 });
    expect([...frame.limits]).toEqual([...LIMITS]);
    expect(frameLengthAt(dataFrame(), 0)).toBe(80);
  });

  it.each<[string, FrameDecode, (bytes: Uint8Array, view: DataView) => Uint8Array | void]>([
    ['cut short', FrameDecode.LENGTH, (bytes) => bytes.slice(0, 76)],
    ['shorter than any frame', FrameDecode.LENGTH, (bytes) => bytes.slice(0, 4)],
    ['of an odd length', FrameDecode.LENGTH, (bytes) => bytes.slice(0, 79)],
    ['with a wrong magic byte', FrameDecode.MAGIC, (_b, view) => view.setUint8(0, 0xd6)],
    ['of unknown type', FrameDecode.TYPE, (_b, view) => view.setUint8(1, 9)],
    ['with one entry too many', FrameDecode.ENTRY, (_b, view) => view.setUint16(2, 3)],
    ['with one entry too few', FrameDecode.ENTRY, (_b, view) => view.setUint16(2, 1)],
    ['without entries', FrameDecode.ENTRY, (_b, view) => view.setUint16(2, 0)],
    ['with an entry beyond its end', FrameDecode.ENTRY, (_b, v) => v.setUint32(44, 1029 << 21)],
    ['with an entry of unknown kind', FrameDecode.ENTRY, (_b, view) => view.setUint8(40, 3)],
    ['with a TLP shorter than a header', FrameDecode.TLP, (_b, v) => v.setUint32(44, 2 << 21)],
    ['whose TLP is of another class', FrameDecode.TLP, (_b, view) => view.setUint8(41, 0)],
    ['with an unknown slot state', FrameDecode.FIELD, (_b, view) => view.setUint32(76, 3)],
    ['with a slot state of a wrong size', FrameDecode.ENTRY, (_b, v) => v.setUint32(68, 0)],
  ])('refuses a frame %s', (_name, result, change) => {
    const bytes = dataFrame();
    expect(decode(change(bytes, new DataView(bytes.buffer)) ?? bytes)).toBe(result);
  });

  it('takes the credit units of a TLP from its first double word', () => {
    expect(dataUnitsOf(0x00000001)).toBe(0); // MRd
    expect(dataUnitsOf(0x40000001)).toBe(1); // MWr, 4 bytes
    expect(dataUnitsOf(0x40000004)).toBe(1); // 16 bytes
    expect(dataUnitsOf(0x60000005)).toBe(2); // 20 bytes
    expect(dataUnitsOf(0x4a000000)).toBe(256); // CplD, 4096 bytes
  });

  it('carries HELLO', () => {
    const hello = {
      version: 1,
      identity: { kind: 'box', id: 'büx-7' },
      resume: true,
      sessionId: 2 ** 53 - 1,
      nextExpected: 0xfffffff0,
      maxFrameBytes: 8192,
      replayBytes: 1 << 20,
      replayFrames: 64,
      limits: LIMITS,
    } as const;
    const frame = new Frame();
    expect(decode(helloFrame(FrameType.HELLO, hello), frame)).toBe(FrameDecode.OK);
    expect(frame.hello).toEqual(hello);
  });

  it('cuts texts of REFUSE and BYE, and keeps control characters out of logs', () => {
    const frame = new Frame();
    const bytes = encodeEnd(FrameType.BYE, EndCode.STOPPED, `a\u001b[31m\n${'x'.repeat(1000)}`);
    expect(decode(bytes, frame)).toBe(FrameDecode.OK);
    expect(frame.code).toBe(EndCode.STOPPED);
    expect(frame.text).toBe(`a?[31m?${'x'.repeat(233)}`);
    bytes[17] = 0x1b;
    expect(decode(bytes, frame)).toBe(FrameDecode.OK);
    expect(frame.text.startsWith('a?[31m?')).toBe(true);
  });

  it('survives 20,000 mutated frames', () => {
    const result = fuzzFrames(1, 20_000);
    expect(result.frames).toBe(20_000);
    // The mutations reach behind the first checks: much is refused, much is delivered.
    expect(result.rejected).toBeGreaterThan(2_000);
    expect(result.accepted).toBeGreaterThan(2_000);
    expect(result.delivered).toBeGreaterThan(2_000);
    expect(result.sessionsEnded).toBeGreaterThan(1_000);
  });
});
