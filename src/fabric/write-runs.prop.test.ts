/**
 * A run of memory writes does what its TLPs would do one by one: sent, as frames; received, in the
 * memory of a host, in that of a device, and in all counters (invariants 2, 3 and 7).
 */
import { describe, expect, test } from 'vitest';
import type { Device } from '#pcie/device';
import { Endpoint } from '#pcie/endpoint';
import { setMemoryWrite } from '#pcie/split';
import { copyTlp, Tlp } from '#pcie/tlp';
import { encodeTlp, encodedTlpBytes } from '#pcie/tlp-codec';
import { runOfWrites } from '#pcie/tlp-run';
import { arrivedTlp } from '#testkit/arrived-tlp';
import { FakeLink } from '#testkit/fake-link';
import { configRequest, HostProxyWorld, littleEndian, NOW } from '#testkit/host-proxy-world';
import { type ArrivedEntry, deliver, framesOf } from '#testkit/link-halves';
import { fc } from '#testkit/properties';
import { BoxProxy } from './box-proxy.ts';
import { Egress } from './egress.ts';
import { LinkCounters } from './link-counters.ts';
import { DEFAULT_LINK_OPTIONS } from './link-options.ts';

const PAGE = 4096;
const GENERATION = 11;

/** Writes that follow each other, and what is wrong from `wrongFrom` on. */
const piece = fc.record({
  page: fc.nat({ max: 7 }),
  offset: fc.constantFrom(0, 0, 0, 4, 64, 128, 512, PAGE - 256),
  bytes: fc.constantFrom(8, 64, 128, 128, 256, 512),
  count: fc.integer({ min: 1, max: 20 }),
  wrongFrom: fc.nat({ max: 40 }),
  wrong: fc.constantFrom(
    'requester',
    'byte-enables',
    'address',
    'type',
    'poison',
    'digest',
    'hint',
    'generation',
    'slot',
    'traffic-class',
    'gap',
  ),
});
type Piece = typeof piece extends fc.Arbitrary<infer T> ? T : never;

function entriesOf(pieces: readonly Piece[], base: number, requesterId: number, slot: number) {
  const entries: ArrivedEntry[] = [];
  let fill = 0;
  for (const { page, offset, bytes, count, wrongFrom, wrong } of pieces) {
    let address = base + page * PAGE + offset;
    for (let index = 0; index < count; index++, address += bytes) {
      const tlp = new Tlp();
      setMemoryWrite(tlp, address, bytes, requesterId);
      const isWrong = index >= wrongFrom;
      if (isWrong && wrong === 'requester') tlp.requesterId ^= 8;
      if (isWrong && wrong === 'byte-enables') tlp.lastBe = 1;
      if (isWrong && wrong === 'type') tlp.addressType = 2;
      if (isWrong && wrong === 'poison') tlp.poisoned = true;
      if (isWrong && wrong === 'digest') tlp.digest = true;
      if (isWrong && wrong === 'hint') tlp.hints = true;
      if (isWrong && wrong === 'traffic-class') tlp.trafficClass = 1;
      if (isWrong && wrong === 'gap') tlp.addressLo = (tlp.addressLo + bytes) >>> 0;
      tlp.payload = new Uint8Array(bytes).fill(++fill);
      if ((tlp.addressLo % PAGE) + bytes > PAGE) continue;
      const encoded = new Uint8Array(encodedTlpBytes(tlp));
      encodeTlp(tlp, encoded, 0);
      // Past what a sender may do: across 4 KiB, with reserved bits set.
      if (isWrong && wrong === 'address') encoded[encoded.length - bytes - 1]! |= 0x83;
      entries.push({
        slot: isWrong && wrong === 'slot' ? slot + 1 : slot,
        generation: isWrong && wrong === 'generation' ? GENERATION - 1 : GENERATION,
        bytes: encoded,
      });
    }
  }
  return entries;
}

describe('received by a host proxy', () => {
  const BASES = [0x10_0000, 0x5_0000_0000] as const;

  function host(entries: readonly ArrivedEntry[], runs: boolean) {
    const world = new HostProxyWorld();
    // Pages 0 to 2 and 3 to 4 are two regions, 5 is missing, 6 cannot be written.
    const memory = BASES.map((base) => {
      const bytes = new Uint8Array(8 * PAGE);
      const give = (from: number, to: number, write: boolean): void =>
        world.proxy.registerMemory(base + from * PAGE, bytes.subarray(from * PAGE, to * PAGE), {
          read: true,
          write,
        });
      give(0, 3, true);
      give(3, 5, true);
      give(6, 7, false);
      give(7, 8, true);
      return bytes;
    });
    world.ready();
    world.enumerate(0);
    world.setBusMaster(0, true);
    world.configWrite(0, 0x88, 1 << 5, 0b0011); // 256 bytes of payload at most
    const { linkB, proxy } = world;
    const delivered = deliver(proxy, linkB, entries, runs);
    const counted = JSON.stringify([proxy.counters(0), proxy.counters(1), proxy.strayCounters]);
    return { memory, counted, ...delivered, sent: linkB.take(), inRuns: delivered.inRuns };
  }

  test('memory, counters and credits are the same', () => {
    let inRuns = 0;
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 1, maxLength: 6 }),
        fc.constantFrom(...BASES),
        (pieces, base) => {
          const entries = entriesOf(pieces, base, 0x0300, 7);
          fc.pre(entries.length > 0);
          const { inRuns: count, ...together } = host(entries, true);
          const { inRuns: none, ...single } = host(entries, false);
          expect(none).toBe(0);
          inRuns += count;
          for (const [index, memory] of together.memory.entries()) {
            expect(Buffer.compare(memory, single.memory[index]!)).toBe(0);
          }
          expect({ ...together, memory: 0 }).toEqual({ ...single, memory: 0 });
        },
      ),
      { numRuns: 300 },
    );
    expect(inRuns).toBeGreaterThan(1000);
  });
});

describe('received by a box proxy', () => {
  const BAR = 0x4_0000_0000;
  const MEMORY_BYTES = 2 ** 20;

  function box(entries: readonly ArrivedEntry[], runs: boolean) {
    const memory = new Uint8Array(MEMORY_BYTES);
    const endpoint = new Endpoint({
      identity: { vendorId: 0x1ddf, deviceId: 1, revisionId: 0, classCode: 0xff0000 },
      serial: 1n,
      bars: [
        {
          index: 2,
          is64Bit: true,
          prefetchable: true,
          sizeBytes: MEMORY_BYTES,
          target: { kind: 'memory', memory },
        },
      ],
      maxPayloadBytes: 256,
    });
    const device: Device = {
      identity: { kind: 'memory', model: 'memory', memoryBytes: MEMORY_BYTES, uuid: '' },
      plug: (port) => endpoint.plug(port),
      receive: (now, tlp) => endpoint.receive(now, tlp),
      receiveRun: (now, first, stride, count) => endpoint.receiveRun(now, first, stride, count),
      resume: (now) => endpoint.resume(now),
      reset: () => endpoint.reset(),
      scrub: () => memory.fill(0),
      nextDeadlineNs: () => endpoint.nextDeadlineNs(),
      tick: (now) => endpoint.tick(now),
    };
    const proxy = new BoxProxy({ boxId: 'b', devices: new Map([[0, device]]) });
    const link = new FakeLink('host', 'h');
    const row = { slot: 0, valid: true, used: true, host: 'h', path: 'p', generation: GENERATION };
    expect(proxy.setTable(NOW, [row])).toEqual([]);
    proxy.linkUp(NOW, link);
    const write = (register: number, value: number): void => {
      const tlp = configRequest(0x44, 3, register, 0xf);
      tlp.payload = littleEndian(value);
      tlp.payloadBytes = 4;
      const bytes = new Uint8Array(encodedTlpBytes(tlp));
      encodeTlp(tlp, bytes, 0);
      proxy.linkTlp(NOW, link, arrivedTlp(0, GENERATION, bytes));
    };
    // BAR 2 ends 4 pages behind where the test writes first; memory space on.
    write(0x18, BAR % 2 ** 32);
    write(0x1c, BAR / 2 ** 32);
    write(0x04, 0x6);
    link.take();
    const delivered = deliver(proxy, link, entries, runs);
    const counted = JSON.stringify([proxy.counters(0), proxy.strayCounters]);
    const errors = JSON.stringify([
      endpoint.counters,
      Array.from({ length: 128 }, (_, index) => endpoint.config.read32(4 * index)),
    ]);
    return { memory, counted, errors, ...delivered, sent: link.take() };
  }

  test('memory, counters, error registers and credits are the same', () => {
    let inRuns = 0;
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 4 }), (pieces) => {
        const entries = entriesOf(pieces, BAR + MEMORY_BYTES - 4 * PAGE, 0x0008, 0);
        fc.pre(entries.length > 0);
        const { inRuns: count, memory, ...together } = box(entries, true);
        const { inRuns: none, memory: expected, ...single } = box(entries, false);
        expect(none).toBe(0);
        inRuns += count;
        expect(Buffer.compare(memory, expected)).toBe(0);
        expect(together).toEqual(single);
      }),
      { numRuns: 150 },
    );
    expect(inRuns).toBeGreaterThan(500);
  });
});

/** All but the payload itself, which would take long to compare. */
function fieldsOf(tlp: Tlp): Tlp {
  const copy = new Tlp();
  copyTlp(copy, tlp);
  copy.payload = new Uint8Array(0);
  return copy;
}

describe('sent', () => {
  function egress() {
    const counters = new LinkCounters();
    const limits = Uint32Array.from([150, 3000, 10, 100, 10, 100]);
    const options = { ...DEFAULT_LINK_OPTIONS, maxFrameBytes: 8192, replayBytes: 1 << 16 };
    const made = new Egress(options, 8192, 0, limits, counters, { sealed: () => {} });
    const tapped: string[] = [];
    made.tap = (_now, direction, slot, bytes, offset, length) => {
      tapped.push(
        `${direction} ${slot} ${Buffer.from(bytes.subarray(offset, offset + length)).toString('hex')}`,
      );
    };
    return { made, counters, tapped };
  }

  test('the frames, counters, credits and what a tap sees are the same', () => {
    const transfer = fc.record({
      address: fc.constantFrom(0, 0x1000, 0xffff_f000, 0x1_0000_0000, 0x12_3456_7000),
      skip: fc.constantFrom(0, 0, 64, 128, 512),
      mps: fc.constantFrom(128, 256, 512),
      count: fc.integer({ min: 1, max: 70 }),
    });
    let inRuns = 0;
    fc.assert(
      fc.property(fc.array(transfer, { minLength: 1, maxLength: 5 }), (transfers) => {
        const one = egress();
        const other = egress();
        for (const { address: from, skip, mps, count } of transfers) {
          const payload = Uint8Array.from({ length: count * mps }, (_, i) => i * 7 + (i >> 8));
          const tlp = new Tlp();
          const set = (index: number): void => {
            setMemoryWrite(tlp, from + skip + index * mps, mps, 0x0300);
            tlp.payload = payload;
            tlp.payloadOffset = index * mps;
          };
          for (let index = 0; index < count; ) {
            if (((from + skip + index * mps) % PAGE) + mps > PAGE) break;
            set(index);
            const run = runOfWrites(from + skip + index * mps, (count - index) * mps, mps);
            const before = fieldsOf(tlp);
            const sent = run > 1 ? one.made.sendRun(NOW, 7, GENERATION, tlp, run) : 0;
            expect(fieldsOf(tlp)).toEqual(before);
            expect(sent).toBeLessThanOrEqual(run);
            if (sent === 0) {
              if (!one.made.canSend(0, mps) || !other.made.canSend(0, mps)) break;
              one.made.sendTlp(NOW, 7, GENERATION, tlp);
            }
            inRuns += sent;
            const done = Math.max(1, sent);
            for (let single = 0; single < done; single++) {
              set(index + single);
              other.made.sendTlp(NOW, 7, GENERATION, tlp);
            }
            index += done;
          }
        }
        one.made.seal();
        other.made.seal();
        expect(framesOf(one.made)).toEqual(framesOf(other.made));
        expect(one.counters).toEqual(other.counters);
        expect(one.tapped.join(' ') === other.tapped.join(' ')).toBe(true);
        expect(one.made.credits.covers(0, 128)).toBe(other.made.credits.covers(0, 128));
        expect(one.made.waiting).toBe(other.made.waiting);
      }),
      { numRuns: 200 },
    );
    expect(inRuns).toBeGreaterThan(1000);
  });
});
