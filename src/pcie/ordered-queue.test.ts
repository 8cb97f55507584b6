import { describe, expect, it } from 'vitest';
import { AssertionError } from '#base/assert';
import { OrderedQueue } from './ordered-queue.ts';
import { OrderingClass } from './ordering.ts';
import { ATTR_ID_BASED_ORDERING, ATTR_RELAXED_ORDERING, FlowClass } from './tlp.ts';

const { POSTED, NON_POSTED, COMPLETION } = FlowClass;
const LIMITS = { bytes: 64, entries: 4 };

/** Queues one TLP of 16 bytes that all are `value`. */
function put(
  queue: OrderedQueue,
  flow: FlowClass,
  value: number,
  attributes = 0,
  sourceId = 0x100,
): void {
  const { buffer, offset } = queue.reserve(flow, 16);
  buffer.fill(value, offset, offset + 16);
  const ordering = [OrderingClass.POSTED, OrderingClass.READ, OrderingClass.COMPLETION][flow]!;
  queue.commit(1, 7, 0, ordering, attributes, sourceId);
}

/** A gate with credit for the given classes alone. */
const only = (...flows: FlowClass[]): { allows: (flow: FlowClass) => boolean } => ({
  allows: (flow) => flows.includes(flow),
});
const everything = only(POSTED, NON_POSTED, COMPLETION);

describe('OrderedQueue', () => {
  it('sends in order of arrival while there is credit', () => {
    const queue = new OrderedQueue([LIMITS, LIMITS, LIMITS]);
    const flows = [NON_POSTED, POSTED, COMPLETION, POSTED, NON_POSTED];
    for (const [index, flow] of flows.entries()) put(queue, flow, index);
    const sent: number[] = [];
    for (;;) {
      const flow = queue.next(everything);
      if (flow === -1) break;
      const entry = queue.peek(flow);
      sent.push(entry.buffer[entry.offset]!);
      queue.pop(flow);
    }
    expect(sent).toEqual([0, 1, 2, 3, 4]);
    expect(queue.count()).toBe(0);
  });

  it('lets posted requests and completions past a stuck non-posted request', () => {
    const queue = new OrderedQueue([LIMITS, LIMITS, LIMITS]);
    put(queue, NON_POSTED, 0);
    put(queue, POSTED, 1);
    put(queue, COMPLETION, 2);
    const gate = only(POSTED, COMPLETION);
    expect(queue.next(gate)).toBe(POSTED);
    queue.pop(POSTED);
    expect(queue.next(gate)).toBe(COMPLETION);
    queue.pop(COMPLETION);
    expect(queue.next(gate)).toBe(-1);
  });

  it('keeps everything behind an earlier posted request that is stuck', () => {
    const queue = new OrderedQueue([LIMITS, LIMITS, LIMITS]);
    put(queue, POSTED, 0);
    put(queue, NON_POSTED, 1);
    put(queue, COMPLETION, 2);
    expect(queue.next(only(NON_POSTED, COMPLETION))).toBe(-1);
  });

  it('but not what was there before it', () => {
    const queue = new OrderedQueue([LIMITS, LIMITS, LIMITS]);
    put(queue, COMPLETION, 0);
    put(queue, NON_POSTED, 1);
    put(queue, POSTED, 2);
    expect(queue.next(only(NON_POSTED, COMPLETION))).toBe(COMPLETION);
    queue.pop(COMPLETION);
    expect(queue.next(only(NON_POSTED, COMPLETION))).toBe(NON_POSTED);
  });

  it('frees a completion by relaxed ordering, a read not', () => {
    const queue = new OrderedQueue([LIMITS, LIMITS, LIMITS]);
    put(queue, POSTED, 0);
    put(queue, COMPLETION, 1, ATTR_RELAXED_ORDERING);
    put(queue, NON_POSTED, 2, ATTR_RELAXED_ORDERING);
    expect(queue.next(only(NON_POSTED, COMPLETION))).toBe(COMPLETION);
    expect(queue.next(only(NON_POSTED))).toBe(-1);
  });

  it('asks ID-based ordering about every earlier posted request, not the first alone', () => {
    const queue = new OrderedQueue([LIMITS, LIMITS, LIMITS]);
    put(queue, POSTED, 0, 0, 0x200);
    put(queue, POSTED, 1, 0, 0x100);
    put(queue, COMPLETION, 2, ATTR_ID_BASED_ORDERING, 0x100);
    put(queue, POSTED, 3, 0, 0x300);
    expect(queue.next(only(COMPLETION))).toBe(-1);
    queue.pop(POSTED);
    queue.pop(POSTED);
    // What is left came later.
    expect(queue.next(only(COMPLETION))).toBe(COMPLETION);

    const other = new OrderedQueue([LIMITS, LIMITS, LIMITS]);
    put(other, POSTED, 0, 0, 0x200);
    put(other, COMPLETION, 1, ATTR_ID_BASED_ORDERING, 0x100);
    expect(other.next(only(COMPLETION))).toBe(COMPLETION);
    // One of its own function that came after it does not count.
    put(other, POSTED, 2, 0, 0x100);
    expect(other.next(only(COMPLETION))).toBe(COMPLETION);
  });

  it('keeps the metadata of each TLP', () => {
    const queue = new OrderedQueue([LIMITS, LIMITS, LIMITS]);
    queue.reserve(POSTED, 12);
    queue.commit(9, 2 ** 53 - 1, 4, OrderingClass.POSTED, 5, 0xffff, 42);
    expect(queue.peek(POSTED)).toMatchObject({
      flow: POSTED,
      order: 0,
      slot: 9,
      generation: 2 ** 53 - 1,
      payloadBytes: 4,
      length: 12,
      attributes: 5,
      sourceId: 0xffff,
      mark: 42,
    });
    expect(queue.queuedBytes(POSTED)).toBe(12);
  });

  it('tells the gate what each head needs', () => {
    const queue = new OrderedQueue([LIMITS, LIMITS, LIMITS]);
    queue.reserve(COMPLETION, 16);
    queue.commit(1, 1, 4, OrderingClass.COMPLETION, 0, 0);
    const asked: number[][] = [];
    queue.next({ allows: (flow, payloadBytes) => asked.push([flow, payloadBytes]) > 0 });
    expect(asked).toEqual([[COMPLETION, 4]]);
  });

  it('keeps entries whole around the end of the ring, and is full when it says so', () => {
    const queue = new OrderedQueue([{ bytes: 64, entries: 10 }, LIMITS, LIMITS]);
    put(queue, POSTED, 0);
    put(queue, POSTED, 1);
    put(queue, POSTED, 2);
    queue.pop(POSTED);
    // 16 bytes are free at either end: 20 in one piece are not.
    expect([queue.hasRoom(POSTED, 16), queue.hasRoom(POSTED, 20)]).toEqual([true, false]);
    put(queue, POSTED, 3);
    put(queue, POSTED, 4);
    expect(queue.hasRoom(POSTED, 4)).toBe(false);
    expect(() => queue.reserve(POSTED, 4)).toThrow(AssertionError);
    queue.pop(POSTED);
    expect(queue.hasRoom(POSTED, 16)).toBe(true);
  });

  it('is full at its number of entries, class by class', () => {
    const queue = new OrderedQueue([LIMITS, LIMITS, { bytes: 64, entries: 1 }]);
    put(queue, COMPLETION, 0);
    expect([queue.hasRoom(COMPLETION, 4), queue.hasRoom(POSTED, 64)]).toEqual([false, true]);
  });

  it('forgets a reservation that is not committed', () => {
    const queue = new OrderedQueue([LIMITS, LIMITS, LIMITS]);
    queue.reserve(POSTED, 16);
    put(queue, NON_POSTED, 1);
    expect([queue.count(POSTED), queue.count(NON_POSTED)]).toEqual([0, 1]);
    expect(() => queue.commit(1, 1, 0, OrderingClass.POSTED, 0, 0)).toThrow(AssertionError);
  });

  it('is empty after clear', () => {
    const queue = new OrderedQueue([LIMITS, LIMITS, LIMITS]);
    put(queue, POSTED, 0);
    put(queue, COMPLETION, 1);
    queue.clear();
    expect([queue.count(), queue.next(everything), queue.queuedBytes(POSTED)]).toEqual([0, -1, 0]);
    expect(() => queue.peek(POSTED)).toThrow(AssertionError);
    expect(() => queue.pop(POSTED)).toThrow(AssertionError);
  });
});
