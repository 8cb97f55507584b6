import { describe, expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { EventQueue } from './event-queue.ts';

describe('EventQueue', () => {
  it('is empty at first', () => {
    const queue = new EventQueue<string>();
    expect([queue.size, queue.nextTimeNs, queue.pop()]).toEqual([0, Infinity, undefined]);
  });

  it('gives equal times in the order they went in', () => {
    const queue = new EventQueue<string>();
    for (const value of ['a', 'b', 'c', 'd', 'e']) queue.push(5, value);
    queue.push(4, 'first');
    const popped = Array.from({ length: 6 }, () => queue.pop());
    expect(popped).toEqual(['first', 'a', 'b', 'c', 'd', 'e']);
  });

  it('agrees with a stable sort under any mix of pushes and pops', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof({ weight: 3, arbitrary: fc.nat(9) }, fc.constant('pop')), {
          maxLength: 120,
          size: 'max',
        }),
        (steps) => {
          const queue = new EventQueue<number>();
          const model: { time: number; id: number }[] = [];
          steps.forEach((step, id) => {
            if (typeof step === 'number') {
              queue.push(step, id);
              model.push({ time: step, id });
              model.sort((a, b) => a.time - b.time || a.id - b.id);
            } else {
              expect(queue.pop()).toBe(model.shift()?.id);
            }
            expect(queue.size).toBe(model.length);
            expect(queue.nextTimeNs).toBe(model[0]?.time ?? Infinity);
          });
        },
      ),
    );
  });
});
