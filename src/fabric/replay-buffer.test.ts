import { describe, expect, it } from 'vitest';
import { Prng } from '#base/prng';
import { FlowClass } from '#pcie/tlp';
import { ReceiveCredits, SendCredits } from './credits.ts';
import { Ack, ReplayBuffer } from './replay-buffer.ts';
import { advance, distance } from './sequence.ts';

const MAX = 1000;

describe('sequence numbers', () => {
  it('compare across the wrap', () => {
    expect(distance(3, 0xfffffffe)).toBe(5);
    expect(distance(0xfffffffe, 3)).toBe(-5);
    expect(advance(0xffffffff)).toBe(0);
  });
});

describe('replay buffer', () => {
  it('never overlaps frames that are not acknowledged, and gets all its space back', () => {
    const prng = new Prng(7);
    const buffer = new ReplayBuffer(4096, 16, MAX, 0xfffffff8);
    /** What each unacknowledged frame must still hold. */
    const expected = new Map<number, { id: number; length: number }>();
    let refused = 0;
    for (let step = 0; step < 5000; step++) {
      if (prng.chance(0.6)) {
        if (!buffer.open()) {
          refused++;
          continue;
        }
        const id = step & 0xff;
        const length = 4 * prng.between(1, MAX / 4);
        buffer.bytes.fill(id, buffer.openOffset, buffer.openOffset + length);
        expected.set(buffer.next, { id, length });
        buffer.seal(length);
        buffer.passCursor();
      } else if (expected.size > 0) {
        const count = prng.between(1, expected.size);
        const target = advance(buffer.base, count);
        for (let at = buffer.base; at !== target; at = advance(at)) expected.delete(at);
        expect(buffer.ack(target)).toBe(Ack.NEWS);
      }
      for (const [sequence, { id, length }] of expected) {
        expect(buffer.lengthOf(sequence)).toBe(length);
        const offset = buffer.offsetOf(sequence);
        const held = buffer.bytes.subarray(offset, offset + length);
        expect(held.every((byte) => byte === id)).toBe(true);
      }
    }
    expect(refused).toBeGreaterThan(100);
    buffer.ack(buffer.next);
    expect(buffer.open()).toBe(true);
    expect(buffer.openOffset).toBe(0);
  });

  // Wrapping as soon as one frame fitted made the ring as small as what happened to be in flight.
  it('never refuses a steady stream that it has room for', () => {
    const buffer = new ReplayBuffer(64_000, 1024, MAX, 0);
    for (let frame = 0; frame < 1000; frame++) {
      expect(buffer.open()).toBe(true);
      buffer.seal(MAX);
      buffer.passCursor();
      // Acknowledgements come three at a time; 20 to 22 frames of 1000 bytes are held.
      if (frame >= 22 && frame % 3 === 0) buffer.ack(frame - 19);
    }
  });

  it('tells a lie from old news', () => {
    const buffer = new ReplayBuffer(4096, 16, MAX, 0xffffffff);
    for (let frame = 0; frame < 3; frame++) {
      buffer.open();
      buffer.seal(8);
    }
    buffer.passCursor();
    buffer.passCursor();
    // Frames ffffffff and 0 have been sent, 1 is sealed alone.
    expect(buffer.ack(2)).toBe(Ack.LIE);
    expect(buffer.ack(0xffffffff)).toBe(Ack.OLD);
    expect(buffer.ack(1)).toBe(Ack.NEWS);
    expect(buffer.ack(0)).toBe(Ack.OLD);
    expect(buffer.base).toBe(1);
    expect(buffer.inFlight).toBe(0);
  });

  it('is bounded in frames too', () => {
    const buffer = new ReplayBuffer(4096, 4, MAX, 0);
    for (let frame = 0; frame < 4; frame++) {
      expect(buffer.open()).toBe(true);
      buffer.seal(8);
    }
    expect(buffer.open()).toBe(false);
  });
});

describe('credits', () => {
  const window = { tlps: 4, dataUnits: 2 ** 28 };

  it('work across the wrap of their counters', () => {
    const receiver = new ReceiveCredits([window, window, window]);
    const sender = new SendCredits(receiver.granted);
    // 2^26 units each: the counter of units wraps every 64, no window lasts for more than four.
    const units = 2 ** 26;
    let updates = 0;
    for (let index = 0; index < 1000; index++) {
      expect(sender.allows(FlowClass.POSTED, units * 16)).toBe(true);
      sender.take(FlowClass.POSTED, units * 16);
      expect(receiver.receive(FlowClass.POSTED, units)).toBe(true);
      receiver.free(FlowClass.POSTED, units);
      if (!receiver.updateDue) continue;
      updates++;
      receiver.advertise();
      expect(sender.update(receiver.granted)).toBe(true);
    }
    // Half a window is two.
    expect(updates).toBe(500);
    for (let index = 0; index < 4; index++) sender.take(FlowClass.POSTED, units * 16);
    expect(sender.allows(FlowClass.POSTED, 0)).toBe(false);
  });

  it('count payload in units of 16 bytes, rounded up', () => {
    const sender = new SendCredits(Uint32Array.of(9, 2, 0, 0, 0, 0));
    expect(sender.allows(FlowClass.POSTED, 32)).toBe(true);
    expect(sender.allows(FlowClass.POSTED, 33)).toBe(false);
    expect(sender.allows(FlowClass.NON_POSTED, 0)).toBe(false);
  });

  it('ignore limits that were overtaken, and refuse impossible ones', () => {
    const sender = new SendCredits(Uint32Array.of(9, 9, 9, 9, 9, 9));
    expect(sender.update(Uint32Array.of(5, 5, 5, 5, 5, 5))).toBe(true);
    expect(sender.allows(FlowClass.POSTED, 9 * 16)).toBe(true);
    expect(sender.update(Uint32Array.of(9, 0x7fffffff, 9, 9, 9, 9))).toBe(false);
  });
});
