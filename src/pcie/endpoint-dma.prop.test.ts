import { expect, it } from 'vitest';
import { FakeHost } from '#testkit/fake-host';
import type { Nanos } from '#base/units';
import { fc } from '#testkit/properties';
import { requestByteCount } from './completion.ts';
import { Endpoint } from './endpoint.ts';
import { DmaStatus } from './endpoint-transfer.ts';
import { DEVICE_CONTROL } from './pcie-capability.ts';
import { FlowClass, flowClassOf, type Tlp } from './tlp.ts';

const BASE = 0x7f00_0000;
const BYTES = 64 * 1024;

function setUp(tags: number, mps: number, mrrs: number): { host: FakeHost; endpoint: Endpoint } {
  const endpoint = new Endpoint({
    identity: { vendorId: 0xddb0, deviceId: 1, revisionId: 2, classCode: 0x120000 },
    serial: 1n,
    bars: [],
    tags,
    maxPayloadBytes: 4096,
  });
  const host = new FakeHost(BASE, BYTES);
  for (let i = 0; i < BYTES; i++) host.memory[i] = (i * 31 + (i >> 8) * 7 + 1) & 255;
  host.plug(endpoint);
  host.configWrite(0x04, 6);
  host.configWrite(endpoint.pcie.offset + DEVICE_CONTROL, (mrrs << 12) | (1 << 8) | (mps << 5), 3);
  host.sent.length = 0;
  return { host, endpoint };
}

const range = fc.record({
  offset: fc.integer({ min: 0, max: 20_000 }),
  bytes: fc.integer({ min: 1, max: 20_000 }),
  at: fc.integer({ min: 0, max: 9 }),
});
const size = fc.integer({ min: 0, max: 5 });

it('a read tiles its range: every byte once, in requests that keep MRRS and 4 KiB, any answer order', () => {
  fc.assert(
    fc.property(
      range,
      size,
      size,
      fc.integer({ min: 1, max: 40 }),
      fc.infiniteStream(fc.nat()),
      (read, mps, mrrs, tags, order) => {
        const { host, endpoint } = setUp(tags, mps, mrrs);
        host.answerReads = false;
        host.mps = 128 << mps;
        const target = new Uint8Array(read.bytes + 20).fill(0xee);
        let status: number = -1;
        const address = BASE + read.offset;
        const client = {
          dmaDone: (_now: Nanos, _cookie: number, ended: DmaStatus) => {
            status = ended;
          },
        };
        endpoint.dma.read(0 as Nanos, 0, address, target, read.at, read.bytes, client, 0);
        while (host.waiting.length > 0) {
          expect(host.waiting.length).toBeLessThanOrEqual(tags);
          const pick = (order.next().value as number) % host.waiting.length;
          host.answer(host.waiting.splice(pick, 1)[0] as Tlp);
        }
        expect(status).toBe(DmaStatus.OK);
        let next = address;
        for (const { tlp } of host.sent) {
          const first = tlp.addressLo + Math.log2(tlp.firstBe & -tlp.firstBe);
          expect(first).toBe(next);
          expect(tlp.lengthDw * 4).toBeLessThanOrEqual(128 << mrrs);
          expect(Math.floor(tlp.addressLo / 4096)).toBe(
            Math.floor((tlp.addressLo + tlp.lengthDw * 4 - 1) / 4096),
          );
          next += requestByteCount(tlp);
        }
        expect(next).toBe(address + read.bytes);
        const got = target.subarray(read.at, read.at + read.bytes);
        const want = host.memory.subarray(read.offset, read.offset + read.bytes);
        expect(Buffer.compare(got, want)).toBe(0);
        expect(target.subarray(0, read.at).every((byte) => byte === 0xee)).toBe(true);
        expect(target.subarray(read.at + read.bytes).every((byte) => byte === 0xee)).toBe(true);
      },
    ),
    { seed: 20240501, numRuns: 150 },
  );
});

it('writes tile their ranges in order, under any back-pressure', () => {
  fc.assert(
    fc.property(
      fc.array(range, { minLength: 1, maxLength: 5 }),
      size,
      fc.infiniteStream(fc.integer({ min: 1, max: 5 })),
      (writes, mps, credits) => {
        const { host, endpoint } = setUp(8, mps, 0);
        const expected = host.memory.slice();
        const done: number[] = [];
        const client = { dmaDone: (_now: Nanos, cookie: number) => void done.push(cookie) };
        host.postedCredits = 0;
        writes.forEach((write, index) => {
          const source = new Uint8Array(write.at + write.bytes).fill(index + 1);
          for (let i = 0; i < write.bytes; i += 3) source[write.at + i] = i & 255;
          expected.set(source.subarray(write.at), write.offset);
          const address = BASE + write.offset;
          endpoint.dma.write(0 as Nanos, 0, address, source, write.at, write.bytes, client, index);
        });
        while (done.length < writes.length) {
          host.postedCredits = credits.next().value as number;
          host.resume();
        }
        expect(done).toEqual(writes.map((_, index) => index));
        expect(Buffer.compare(host.memory, expected)).toBe(0);
        for (const { tlp } of host.sent) {
          expect(flowClassOf(tlp.kind)).toBe(FlowClass.POSTED);
          expect(tlp.payloadBytes).toBeLessThanOrEqual(128 << mps);
        }
      },
    ),
    { seed: 20240502, numRuns: 150 },
  );
});
