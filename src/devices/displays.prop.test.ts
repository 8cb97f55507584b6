/** Nothing a host or a driver does makes a display throw, hang or grow. */
import { describe, expect, it } from 'vitest';
import { CompletionStatus, Tlp } from '#pcie/tlp';
import { resetTlp, TlpKind } from '#pcie/tlp';
import { FakeHost } from '#testkit/fake-host';
import { fc } from '#testkit/properties';
import {
  AVAIL,
  BAR0,
  DATA,
  DESC,
  HOST_BASE,
  INDIRECT,
  NEXT,
  READY,
  USED,
  VirtioGpuRig,
  WRITE,
} from '#testkit/virtio-gpu-rig';
import { createBochsDisplay } from './bochs-display.ts';

const UUID = '00112233-4455-6677-8899-aabbccddeeff';

/** Memory around what the device may write: the guest's own, which must stay as it is. */
const CANARY = 0xc5;
const expectedCanary = new Uint8Array(0x8_0000).fill(CANARY);

const address = fc.oneof(
  fc.integer({ min: 0, max: 0x200 }).map((at) => DATA + 16 * at),
  fc.integer({ min: 0, max: 15 }).map((at) => DESC + 16 * at),
  fc.constantFrom(0, 2 ** 53 - 1, 2 ** 53, 2 ** 63, 0x1000, AVAIL, USED, DATA - 1),
);
const length = fc.oneof(
  fc.constantFrom(0, 1, 16, 24, 32, 40, 48, 56, 64, 128, 1056),
  fc.constantFrom(0xffff_ffff, 0x8000_0000, 16 * 1024, 16 * 1025),
  fc.nat(4096),
);
const descriptor = fc.record({
  address,
  length,
  flags: fc.constantFrom(0, NEXT, WRITE, NEXT | WRITE, INDIRECT, INDIRECT | NEXT, 7, 0xffff),
  next: fc.oneof(fc.nat(9), fc.constant(0xffff)),
});
const small = fc.oneof(fc.nat(5), fc.constantFrom(16, 64, 0xffff_ffff, 0x8000_0000));
const request = fc.record({
  at: fc.nat(7),
  type: fc.oneof(
    fc.integer({ min: 0x100, max: 0x10d }),
    fc.constantFrom(0x300, 0x301, 0x200, 0, 0xffff_ffff),
  ),
  words: fc.array(small, { minLength: 8, maxLength: 12 }),
});
const offer = fc.record({
  queue: fc.constantFrom(0, 0, 0, 1),
  heads: fc.array(fc.oneof(fc.nat(7), fc.constant(0xffff)), { minLength: 1, maxLength: 8 }),
  ahead: fc.constantFrom(0, 0, 0, 1, 9),
});

describe('virtio-gpu', () => {
  it('survives any ring: it answers, or needs a reset, and works after one', () => {
    fc.assert(
      fc.property(
        fc.array(descriptor, { minLength: 8, maxLength: 8 }),
        fc.array(descriptor, { minLength: 8, maxLength: 8 }),
        fc.array(request, { minLength: 1, maxLength: 8 }),
        fc.array(offer, { minLength: 1, maxLength: 4 }),
        fc.constantFrom(0, 1 << 28, 1 << 29, 3 * 2 ** 28),
        (ring, indirect, requests, offers, features) => {
          const rig = new VirtioGpuRig();
          rig.start(features);
          const canary = rig.host.memory.subarray(0x8_0000);
          canary.fill(CANARY);
          const write = (table: number) => (one: (typeof ring)[number], index: number) =>
            rig.descriptor(index, one.address, one.length, one.flags, one.next, table);
          ring.forEach(write(DESC));
          ring.forEach(write(DESC + 0x1000));
          indirect.forEach(write(DATA));
          for (const { at, type, words } of requests) rig.request(DATA + 128 * at, type, words);
          let idx = 0;
          for (const { queue, heads, ahead } of offers) {
            idx += heads.length + ahead;
            rig.offer(heads, idx & 0xffff, queue);
          }
          expect(rig.host.waiting).toEqual([]);
          const { status } = rig;
          expect([READY, READY | 64]).toContain(status);
          expect(rig.log.length).toBe(status === READY ? 0 : 1);
          expect(Buffer.compare(canary, expectedCanary)).toBe(0);
          rig.device.screenshot();
          rig.host.memory.fill(0);
          rig.start();
          const bytes = rig.request(DATA, 0x102, [9, 0]);
          rig.descriptor(0, DATA, bytes, NEXT, 1);
          rig.descriptor(1, DATA + 0x100, 24, WRITE);
          rig.offer([0]);
          expect([rig.status, rig.usedIdx(), rig.word(DATA + 0x100)]).toEqual([READY, 1, 0x1203]);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('survives any access to its registers, resets in between, late and refused reads', () => {
    const step = fc.oneof(
      fc.record({
        kind: fc.constant('write' as const),
        offset: fc.oneof(
          fc.integer({ min: 0, max: 0x3b }),
          fc.integer({ min: 0x3000, max: 0x3008 }),
          fc.nat(0x3fff),
        ),
        bytes: fc.constantFrom(1 as const, 2 as const, 4 as const),
        value: fc.oneof(fc.nat(16), fc.constantFrom(0, 11, 15, 0xffff_ffff), fc.nat()),
      }),
      fc.record({
        kind: fc.constant('read' as const),
        offset: fc.nat(0x3fff),
        bytes: fc.constant(1 as const),
      }),
      fc.record({ kind: fc.constant('answer' as const), refuse: fc.boolean() }),
      fc.record({ kind: fc.constant('start' as const), features: fc.constantFrom(0, 3 * 2 ** 28) }),
      fc.record({
        kind: fc.constant('offer' as const),
        heads: fc.array(fc.nat(7), { minLength: 1, maxLength: 4 }),
      }),
      fc.record({ kind: fc.constant('reset' as const) }),
      fc.record({ kind: fc.constant('config' as const), register: fc.nat(59), value: fc.nat() }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const rig = new VirtioGpuRig();
        rig.host.isRecording = false;
        rig.host.answerReads = false;
        for (let index = 0; index < 8; index += 2) {
          rig.request(DATA + 128 * index, 0x100 + index);
          rig.descriptor(index, DATA + 128 * index, 64, NEXT, index + 1);
          rig.descriptor(index + 1, DATA + 0x2000 + 128 * index, 1056, WRITE);
        }
        for (const one of steps) {
          switch (one.kind) {
            case 'write':
              rig.host.memoryWrite(
                BAR0 + one.offset - (one.offset % one.bytes),
                Uint8Array.from({ length: one.bytes }, (_, byte) => one.value >>> (8 * byte)),
              );
              break;
            case 'read':
              rig.host.memoryRead(BAR0 + one.offset, one.bytes);
              break;
            case 'answer': {
              const [waiting] = rig.host.waiting.splice(0, 1);
              if (waiting === undefined) break;
              if (one.refuse) rig.host.answerWith(waiting, CompletionStatus.UR);
              else rig.host.answer(waiting);
              break;
            }
            case 'start':
              rig.host.isRecording = true;
              rig.host.configWrite(0x10, BAR0);
              rig.host.configWrite(0x04, 6, 3);
              rig.host.configWrite(0x44, 0);
              rig.start(one.features);
              rig.host.isRecording = false;
              break;
            case 'offer':
              rig.offer(one.heads);
              break;
            case 'reset':
              rig.device.reset(rig.host.now);
              rig.device.scrub(rig.host.now);
              // A reset ends the session: what was asked is not answered any more.
              rig.host.waiting.length = 0;
              break;
            default:
              rig.host.configWrite(4 * one.register, one.value);
          }
        }
        rig.device.reset(rig.host.now);
        rig.device.scrub(rig.host.now);
        rig.host.waiting.length = 0;
        expect(rig.device.screenshot()).toBeUndefined();
        expect(rig.device.nextDeadlineNs()).toBe(Infinity);
      }),
      { numRuns: 300 },
    );
  });
});

describe('bochs-display', () => {
  it('survives any access, and is empty after a scrub', () => {
    const step = fc.record({
      offset: fc.oneof(fc.integer({ min: 0x500, max: 0x516 }), fc.nat(0xfff)),
      bytes: fc.constantFrom(1, 2, 4),
      value: fc.oneof(fc.nat(2048), fc.constantFrom(0xffff, 0xffff_ffff), fc.nat()),
      isRead: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const device = createBochsDisplay({ uuid: UUID, memoryBytes: 4 << 20 });
        const host = new FakeHost(HOST_BASE, 4096);
        host.plug(device);
        host.configWrite(0x10, 0);
        host.configWrite(0x14, 0x40);
        host.configWrite(0x18, BAR0);
        host.configWrite(0x04, 2, 3);
        host.isRecording = false;
        for (const { offset, bytes, value, isRead } of steps) {
          const at = BAR0 + offset - (offset % bytes);
          if (isRead) host.memoryRead(at, bytes);
          else {
            const data = Uint8Array.from({ length: bytes }, (_, byte) => value >>> (8 * byte));
            host.memoryWrite(at, data);
            host.memoryWrite(0x40_0000_0000 + (value % 0x3f_0000), data);
          }
          const shot = device.screenshot();
          if (shot !== undefined) expect(shot.rgba.length).toBe(4 * shot.width * shot.height);
        }
        device.reset(host.now);
        device.scrub(host.now);
        const tlp = new Tlp();
        resetTlp(tlp);
        tlp.kind = TlpKind.Msg;
        device.receive(host.now, tlp);
        expect(device.screenshot()).toBeUndefined();
      }),
      { numRuns: 150 },
    );
  });
});
