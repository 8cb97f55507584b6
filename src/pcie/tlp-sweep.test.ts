/**
 * Length 1 to 1024 DW × byte offset around a 4 KiB boundary × byte enables, against plain arithmetic on
 * byte positions: a request is the bytes [start, end), and everything else follows from that.
 */
import { describe, expect, it } from 'vitest';
import {
  byteEnablesAt,
  completeWithData,
  firstByteAddress,
  isContiguous,
  requestByteCount,
} from './completion.ts';
import { completionChunk, readChunk, setMemoryRead, setMemoryWrite, writeChunk } from './split.ts';
import { Accepted, CompletionTracker } from './tags.ts';
import { decodeTlp, encodedTlpBytes, encodeTlp, TlpDecode } from './tlp-codec.ts';
import { Tlp, TlpKind, tlpAddress } from './tlp.ts';

const BOUNDARY = 0x12_3456_7000;
/** DW distances of a request's start, and of its end, to the boundary. */
const AROUND = [-3, -2, -1, 0, 1, 2];
const bytes = new Uint8Array(8192);

/** A plain comparison: `expect` costs too much for millions of them. */
function must(ok: boolean, what: string, ...numbers: number[]): void {
  if (!ok) throw new Error(`${what}: ${numbers.join(', ')}`);
}

/** Addresses (DW aligned) of requests of `lengthDw` that start or end near the boundary. */
function places(lengthDw: number): number[] {
  const starts = AROUND.map((dw) => BOUNDARY + dw * 4);
  const ends = AROUND.map((dw) => BOUNDARY + dw * 4 - lengthDw * 4);
  return [...new Set([...starts, ...ends])];
}

describe('requests of every length around 4 KiB', () => {
  it('have the length, byte enables, byte count and first address of their bytes', () => {
    const tlp = new Tlp();
    const back = new Tlp();
    let crossing = 0;
    let inside = 0;
    for (let lengthDw = 1; lengthDw <= 1024; lengthDw++) {
      for (const address of places(lengthDw)) {
        for (let skip = 0; skip < 4; skip++) {
          for (let cut = 0; cut < 4; cut++) {
            const start = address + skip;
            const end = address + lengthDw * 4 - cut;
            if (end <= start) continue;
            setMemoryRead(tlp, start, end - start, 0x0100, 7);
            must(tlp.lengthDw === lengthDw, 'length', start, end, tlp.lengthDw);
            must(tlpAddress(tlp) === address, 'address', start, end);
            must(requestByteCount(tlp) === end - start, 'byte count', start, end);
            must(firstByteAddress(tlp) === start, 'first byte', start, end);
            must(isContiguous(tlp), 'contiguous', start, end);
            // Bit i of the first DW is byte address + i; of the last, the last DW's.
            for (let i = 0; i < 4; i++) {
              const last = address + (lengthDw - 1) * 4 + i;
              must(
                ((byteEnablesAt(tlp, 0) >> i) & 1) === +(address + i >= start && address + i < end),
                'BE',
                start,
                end,
                i,
              );
              must(
                ((byteEnablesAt(tlp, lengthDw - 1) >> i) & 1) === +(last >= start && last < end),
                'last BE',
                start,
                end,
                i,
              );
            }
            const pageOfStart = Math.floor(address / 4096);
            const pageOfLastDw = Math.floor((address + lengthDw * 4 - 1) / 4096);
            if (pageOfStart === pageOfLastDw) {
              inside++;
              const size = encodeTlp(tlp, bytes, 0);
              must(decodeTlp(bytes, 0, size, back) === TlpDecode.OK, 'decodes', start, end);
              must(
                back.firstBe === tlp.firstBe && back.lastBe === tlp.lastBe,
                'BE back',
                start,
                end,
              );
              must(requestByteCount(back) === end - start, 'count back', start, end);
              must(firstByteAddress(back) === start, 'address back', start, end);
            } else {
              crossing++;
              // The same request moved to the start of its page encodes; then the address is patched.
              setMemoryRead(tlp, 0x1_0000_0000 + skip, end - start, 0x0100, 7);
              const size = encodeTlp(tlp, bytes, 0);
              new DataView(bytes.buffer).setUint32(8, Math.floor(address / 2 ** 32));
              new DataView(bytes.buffer).setUint32(12, address % 2 ** 32);
              const outcome = decodeTlp(bytes, 0, size, back);
              must(outcome === TlpDecode.MALFORMED_4K_CROSSING, 'crossing', start, end, outcome);
            }
          }
        }
      }
    }
    // Length 1 never crosses; up to 5 of 6 starts before and 5 of 6 ends behind the boundary do.
    expect(crossing).toBeGreaterThan(60_000);
    expect(inside).toBeGreaterThan(60_000);
  });

  it('writes: the payload is the double words that hold the bytes', () => {
    const tlp = new Tlp();
    const back = new Tlp();
    tlp.payload = Uint8Array.from({ length: 4096 }, (_, i) => i * 7 + (i >> 8));
    for (let lengthDw = 1; lengthDw <= 1024; lengthDw++) {
      const skip = lengthDw % 4;
      const cut = lengthDw === 1 ? 0 : (lengthDw >> 2) % 4;
      const start = BOUNDARY - lengthDw * 4 + skip;
      setMemoryWrite(tlp, start, lengthDw * 4 - skip - cut, 0x0100);
      must(tlp.payloadBytes === lengthDw * 4, 'payload', lengthDw);
      const size = encodeTlp(tlp, bytes, 4);
      must(decodeTlp(bytes, 4, size, back) === TlpDecode.OK, 'decodes', lengthDw);
      must(back.payload === bytes && back.payloadOffset === 4 + 16, 'window', lengthDw);
      const same = Buffer.compare(
        tlp.payload.subarray(0, lengthDw * 4),
        bytes.subarray(20, 20 + lengthDw * 4),
      );
      must(same === 0, 'payload bytes', lengthDw);
    }
  });
});

describe('every pair of byte enables', () => {
  it('is allowed exactly where 2.2.5 allows it, and counts as table 2-38 says', () => {
    const back = new Tlp();
    const tlp = new Tlp();
    for (let lengthDw = 1; lengthDw <= 5; lengthDw++) {
      for (const address of [BOUNDARY - lengthDw * 4, BOUNDARY, BOUNDARY + 4]) {
        for (let pair = 0; pair < 256; pair++) {
          const firstBe = pair & 15;
          const lastBe = pair >> 4;
          // All enabled bytes as a string of 0 and 1 in address order.
          const middle = '1111'.repeat(Math.max(0, lengthDw - 2));
          const bits = (be: number): string => [0, 1, 2, 3].map((i) => (be >> i) & 1).join('');
          const enabled = bits(firstBe) + (lengthDw === 1 ? '' : middle + bits(lastBe));
          const allowed =
            lengthDw === 1
              ? lastBe === 0
              : firstBe !== 0 &&
                lastBe !== 0 &&
                (/^0*1+0*$/.test(enabled) || (lengthDw === 2 && address % 8 === 0));
          // Encode with all bytes enabled, then patch byte 7.
          setMemoryRead(tlp, address, lengthDw * 4, 0, 0);
          const size = encodeTlp(tlp, bytes, 0);
          bytes[7] = pair;
          const outcome = decodeTlp(bytes, 0, size, back);
          const expected = allowed ? TlpDecode.OK : TlpDecode.MALFORMED_BYTE_ENABLES;
          must(outcome === expected, 'verdict', lengthDw, address, pair, outcome);
          if (!allowed) continue;
          const first = enabled.indexOf('1');
          const last = enabled.lastIndexOf('1');
          const count = first < 0 ? 1 : last - first + 1; // none enabled counts 1
          must(requestByteCount(back) === count, 'count', lengthDw, address, pair);
          must(firstByteAddress(back) === address + Math.max(first, 0), 'first', address, pair);
          must(isContiguous(back) === /^0*1*0*$/.test(enabled), 'contiguous', lengthDw, pair);
        }
      }
    }
  });
});

describe('splitting of every length around 4 KiB', () => {
  const LIMITS = [128, 256, 512, 1024, 2048, 4096];

  /** How many requests [start, end) takes: each page by itself, its first DW counted whole. */
  function requestsNeeded(start: number, end: number, limit: number): number {
    let count = 0;
    for (let from = start; from < end; ) {
      const pageEnd = (Math.floor(from / 4096) + 1) * 4096;
      const to = Math.min(end, pageEnd);
      const paddedBytes = to - (from - (from % 4));
      count += Math.ceil(paddedBytes / limit);
      from = to;
    }
    return count;
  }

  /** How many completions [start, end) takes: the first ends at an RCB multiple, the rest are full. */
  function completionsNeeded(start: number, end: number, mps: number, rcb: number): number {
    const padded = start - (start % 4);
    if (end - padded <= mps) return 1;
    const firstEnd = Math.floor((padded + mps) / rcb) * rcb;
    return 1 + Math.ceil((end - firstEnd) / mps);
  }

  it('tiles the range, crosses nothing, and takes no TLP more than needed', () => {
    const tlp = new Tlp();
    let chunks = 0;
    for (let lengthDw = 1; lengthDw <= 1024; lengthDw++) {
      for (const address of places(lengthDw)) {
        for (let edge = 0; edge < 16; edge++) {
          const start = address + (edge & 3);
          const end = address + lengthDw * 4 - (edge >> 2);
          if (end <= start) continue;
          const limit = LIMITS[(lengthDw + edge) % LIMITS.length] as number;
          const chunk = edge % 2 === 0 ? readChunk : writeChunk;
          let at = start;
          let count = 0;
          while (at < end) {
            const size = chunk(at, end - at, limit);
            must(size > 0 && at + size <= end, 'inside', start, end, at, size);
            must(Math.floor(at / 4096) === Math.floor((at + size - 1) / 4096), '4 KiB', at, size);
            setMemoryRead(tlp, at, size, 0, 0);
            must(tlp.lengthDw * 4 <= limit, 'limit', at, size, limit);
            at += size;
            count++;
          }
          must(at === end, 'tiles', start, end);
          must(count === requestsNeeded(start, end, limit), 'count', start, end, limit, count);
          chunks += count;
        }
      }
    }
    expect(chunks).toBeGreaterThan(200_000);
  });

  it('completions: tile it, end at RCB, and are what the tracker expects', () => {
    const request = new Tlp();
    const completion = new Tlp();
    const back = new Tlp();
    const tracker = new CompletionTracker();
    const data = new Uint8Array(4096);
    let completions = 0;
    for (let lengthDw = 1; lengthDw <= 1024; lengthDw++) {
      // The last request before the boundary, the first behind it, and one in between.
      for (const address of [
        BOUNDARY - lengthDw * 4,
        BOUNDARY,
        BOUNDARY + (1024 - lengthDw) * 2 - (((1024 - lengthDw) * 2) % 4),
      ]) {
        const edge = (lengthDw * 7 + address / 4) % 16;
        const start = address + (edge & 3);
        const end = Math.max(start + 1, address + lengthDw * 4 - (edge >> 2));
        const mps = LIMITS[lengthDw % 4] as number;
        const rcb = lengthDw % 8 < 4 ? 64 : 128;
        setMemoryRead(request, start, end - start, 0x0100, 33);
        tracker.open(33, start, end - start, 1, 0);
        let at = start;
        let count = 0;
        while (at < end) {
          const size = completionChunk(at, end - at, mps, rcb);
          must(size > 0 && at + size <= end, 'inside', start, end, at, size);
          must(at + size === end || (at + size) % rcb === 0, 'RCB', at, size, rcb);
          completeWithData(completion, request, 0, at, end - at, size, data, 0);
          must(completion.payloadBytes <= mps, 'MPS', at, size, mps);
          must(completion.lowerAddress === at % 128, 'lower address', at);
          must(completion.byteCount === end - at, 'byte count', at, end);
          const bytesNeeded = encodedTlpBytes(completion);
          encodeTlp(completion, bytes, 0);
          must(decodeTlp(bytes, 0, bytesNeeded, back) === TlpDecode.OK, 'decodes', at, size);
          const verdict = tracker.accept(back);
          must(
            verdict === (at + size === end ? Accepted.DONE : Accepted.PART),
            'verdict',
            at,
            size,
          );
          must(tracker.offset === at - start && tracker.bytes === size, 'part', at, size);
          must(tracker.payloadOffset === back.payloadOffset + (at % 4), 'window', at);
          at += size;
          count++;
        }
        must(
          count === completionsNeeded(start, end, mps, rcb),
          'count',
          start,
          end,
          mps,
          rcb,
          count,
        );
        must(tracker.openCount === 0, 'closed', start);
        completions += count;
      }
    }
    expect(completions).toBeGreaterThan(10_000);
  });

  it('the 32-bit form below 4 GiB, the 64-bit form from there on', () => {
    const tlp = new Tlp();
    setMemoryRead(tlp, 0xffff_fffc, 4, 0, 0);
    expect([tlp.kind, tlp.addressHi, tlp.addressLo]).toEqual([TlpKind.MRd32, 0, 0xffff_fffc]);
    setMemoryWrite(tlp, 0x1_0000_0000, 4, 0);
    expect([tlp.kind, tlp.addressHi, tlp.addressLo]).toEqual([TlpKind.MWr64, 1, 0]);
    setMemoryRead(tlp, 2 ** 53 - 1, 1, 0, 0);
    expect([tlp.addressHi, tlp.addressLo, tlp.firstBe]).toEqual([0x1f_ffff, 0xffff_fffc, 8]);
  });
});
