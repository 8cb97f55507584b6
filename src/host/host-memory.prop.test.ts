import { describe, expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { type HostBuffer, HostMemory } from './host-memory.ts';

const REGIONS = [
  { base: 0, sizeBytes: 16384 },
  { base: 0x1_0000_0000, sizeBytes: 8192 },
];

describe('host memory', () => {
  it('never hands out a byte twice, keeps alignment, and gets everything back', () => {
    const step = fc.oneof(
      fc.record({
        bytes: fc.integer({ min: 1, max: 5000 }),
        align: fc.constantFrom(1, 64, 256, 4096),
      }),
      fc.record({ freeIndex: fc.nat(20) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const memory = new HostMemory(REGIONS);
        const total = memory.freeBytes;
        const live: HostBuffer[] = [];
        for (const action of steps) {
          if ('freeIndex' in action) {
            const [buffer] = live.splice(action.freeIndex % Math.max(1, live.length), 1);
            if (buffer !== undefined) memory.free(buffer);
            continue;
          }
          const largest = memory.largestFreeBytes;
          let buffer: HostBuffer;
          try {
            buffer = memory.alloc(action.bytes, action.align);
          } catch {
            // Only alignment can be in the way of what fits the largest piece.
            expect(action.bytes > largest || action.align > 64).toBe(true);
            continue;
          }
          expect(buffer.address % action.align).toBe(0);
          expect(buffer.address).toBeGreaterThan(0);
          expect(buffer.bytes).toHaveLength(action.bytes);
          expect(memory.contains(buffer.address, action.bytes)).toBe(true);
          for (const other of live) {
            const isApart =
              buffer.address + buffer.bytes.length <= other.address ||
              other.address + other.bytes.length <= buffer.address;
            expect(isApart).toBe(true);
          }
          live.push(buffer);
        }
        for (const buffer of live) memory.free(buffer);
        expect(memory.freeBytes).toBe(total);
        // In one piece again: 16384 less the 64 bytes kept back at 0.
        expect(memory.largestFreeBytes).toBe(16320);
      }),
    );
  });

  it('refuses regions that overlap, and freeing what is not allocated', () => {
    const overlapping = [
      { base: 0, sizeBytes: 8192 },
      { base: 4096, sizeBytes: 4096 },
    ];
    expect(() => new HostMemory(overlapping)).toThrow('overlaps');
    const memory = new HostMemory(REGIONS);
    const buffer = memory.alloc(10);
    memory.free(buffer);
    expect(() => memory.free(buffer)).toThrow('not allocated');
    expect(() => memory.alloc(100_000)).toThrow(
      expect.objectContaining({ code: 'resource_exhausted' }),
    );
  });
});
