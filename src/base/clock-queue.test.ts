import { describe, expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { ClockEvent, ClockQueue } from './clock-queue.ts';

const EVENTS = 12;

interface Step {
  readonly event: number;
  readonly remove: boolean;
  readonly atNs: number;
  readonly takenNs: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  event: fc.nat(EVENTS - 1),
  remove: fc.boolean(),
  atNs: fc.nat(4),
  takenNs: fc.nat(2),
});

describe('ClockQueue', () => {
  it('is empty at first', () => {
    expect(new ClockQueue().first).toBeUndefined();
  });

  it('gives the first of those in it, by time, then by when and in which turn they were scheduled', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const queue = new ClockQueue();
        const events = Array.from({ length: EVENTS }, () => new ClockEvent(() => {}));
        const model = new Map<ClockEvent, number[]>();
        for (const [turn, { event: index, remove, atNs, takenNs }] of steps.entries()) {
          const event = events[index]!;
          if (remove) {
            queue.remove(event);
            model.delete(event);
          } else {
            Object.assign(event, { atNs, takenNs, turn });
            queue.put(event);
            model.set(event, [atNs, takenNs, turn]);
          }
          const [first] = [...model].sort(([, one], [, other]) => {
            const [a, b, c] = one.map((key, at) => key - other[at]!) as [number, number, number];
            return a || b || c;
          });
          expect(queue.first).toBe(first?.[0]);
        }
      }),
    );
  });
});
