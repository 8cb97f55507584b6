import { describe, expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { RingBuffer } from './ring-buffer.ts';

describe('RingBuffer', () => {
  it('is empty at first', () => {
    const ring = new RingBuffer<number>();
    expect([ring.size, ring.shift(), ring.peek(), ring.at(0)]).toEqual([
      0,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('agrees with an array after any pushes, shifts and clears', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 5 }),
        fc.array(fc.oneof({ weight: 5, arbitrary: fc.nat() }, fc.constantFrom('shift', 'clear')), {
          maxLength: 80,
          size: 'max',
        }),
        (capacity, steps) => {
          const ring = new RingBuffer<number>(capacity);
          let model: number[] = [];
          for (const step of steps) {
            if (step === 'shift') expect(ring.shift()).toBe(model.shift());
            else if (step === 'clear') {
              ring.clear();
              model = [];
            } else {
              ring.push(step as number);
              model.push(step as number);
            }
            expect(ring.size).toBe(model.length);
            expect(ring.peek()).toBe(model[0]);
            expect(model.map((_, index) => ring.at(index))).toEqual(model);
            expect(ring.at(model.length)).toBeUndefined();
            expect(ring.at(-1)).toBeUndefined();
          }
        },
      ),
    );
  });
});
