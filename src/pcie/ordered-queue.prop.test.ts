/**
 * The queue against a plain list of what was put in, searched in order with the ordering table as
 * the only rule.
 */
import { expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { OrderedQueue } from './ordered-queue.ts';
import { OrderingClass, type OrderingSubject, Pass, mayPass } from './ordering.ts';
import { FlowClass } from './tlp.ts';

const CAPACITY_BYTES = 160;
const ENTRIES = 6;
const LARGEST_TLP = 60;
const LIMITS = { bytes: CAPACITY_BYTES, entries: ENTRIES };

interface Put {
  readonly kind: 'put';
  readonly ordering: OrderingClass;
  readonly dw: number;
  readonly attributes: number;
  readonly sourceId: number;
}
interface Send {
  readonly kind: 'send';
  /** Which classes have credit. */
  readonly credit: readonly [boolean, boolean, boolean];
}

const operation: fc.Arbitrary<Put | Send> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('put' as const),
      ordering: fc.constantFrom(
        OrderingClass.POSTED,
        OrderingClass.READ,
        OrderingClass.NON_POSTED_WITH_DATA,
        OrderingClass.COMPLETION,
      ),
      dw: fc.integer({ min: 3, max: LARGEST_TLP / 4 }),
      attributes: fc.nat(7),
      sourceId: fc.nat(2),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('send' as const),
      credit: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
    }),
  },
);

interface Queued {
  readonly id: number;
  readonly flow: FlowClass;
  readonly bytes: number;
  readonly subject: OrderingSubject;
}

function flowOf(ordering: OrderingClass): FlowClass {
  if (ordering === OrderingClass.POSTED) return FlowClass.POSTED;
  return ordering === OrderingClass.COMPLETION ? FlowClass.COMPLETION : FlowClass.NON_POSTED;
}

/** The oldest that is first of its class, has credit, and may pass every posted one before it. */
function nextOf(model: readonly Queued[], credit: readonly boolean[]): Queued | undefined {
  return model.find((candidate, index) => {
    const before = model.slice(0, index);
    if (!credit[candidate.flow]) return false;
    if (before.some((other) => other.flow === candidate.flow)) return false;
    return before.every(
      (other) =>
        other.flow !== FlowClass.POSTED || mayPass(candidate.subject, other.subject) !== Pass.NO,
    );
  });
}

it('sends what the plain list sends, in whole pieces, and refuses only when it must', () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 150, size: 'max' }), (operations) => {
      const queue = new OrderedQueue([LIMITS, LIMITS, LIMITS]);
      const model: Queued[] = [];
      let nextId = 0;
      for (const step of operations) {
        if (step.kind === 'put') {
          const flow = flowOf(step.ordering);
          const bytes = step.dw * 4;
          const own = model.filter((queued) => queued.flow === flow);
          const used = own.reduce((sum, queued) => sum + queued.bytes, 0);
          const room = queue.hasRoom(flow, bytes);
          // Never more than it has. With room for two of the largest beside it there is always room,
          // for what is lost at the end of the ring is less than one entry and the free bytes are in
          // two pieces at most.
          if (own.length === ENTRIES || used + bytes > CAPACITY_BYTES) expect(room).toBe(false);
          else if (own.length === 0 || used + bytes + 2 * LARGEST_TLP <= CAPACITY_BYTES) {
            expect(room).toBe(true);
          }
          if (!room) continue;
          const id = nextId++;
          const { buffer, offset } = queue.reserve(flow, bytes);
          buffer.fill(id & 0xff, offset, offset + bytes);
          queue.commit(id % 16, id + 1, id * 2, step.ordering, step.attributes, step.sourceId, id);
          model.push({
            id,
            flow,
            bytes,
            subject: {
              ordering: step.ordering,
              attributes: step.attributes,
              sourceId: step.sourceId,
              transactionId: 0,
              completesIoOrConfigWrite: false,
            },
          });
        } else {
          const flow = queue.next({ allows: (candidate) => step.credit[candidate] });
          const expected = nextOf(model, step.credit);
          expect(flow).toBe(expected?.flow ?? -1);
          if (expected === undefined || flow === -1) continue;
          const entry = queue.peek(flow);
          expect([entry.mark, entry.length, entry.order]).toEqual([
            expected.id,
            expected.bytes,
            expected.id,
          ]);
          expect([entry.slot, entry.generation, entry.payloadBytes]).toEqual([
            expected.id % 16,
            expected.id + 1,
            expected.id * 2,
          ]);
          const content = entry.buffer.subarray(entry.offset, entry.offset + entry.length);
          expect(content.every((byte) => byte === (expected.id & 0xff))).toBe(true);
          queue.pop(flow);
          model.splice(model.indexOf(expected), 1);
          // Invariant 7, said directly: what has credit and only non-posted requests before it is
          // never kept waiting for one of them.
          expect(nextOf(model, [true, false, false])?.flow ?? -1).toBe(
            queue.next({ allows: (candidate) => candidate === FlowClass.POSTED }),
          );
        }
        expect(queue.count()).toBe(model.length);
      }
    }),
    { numRuns: 150 },
  );
});

it('always drains when credit comes', () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60, size: 'max' }), (operations) => {
      const queue = new OrderedQueue([LIMITS, LIMITS, LIMITS]);
      let put = 0;
      for (const step of operations) {
        if (step.kind !== 'put') continue;
        const flow = flowOf(step.ordering);
        if (!queue.hasRoom(flow, step.dw * 4)) continue;
        queue.reserve(flow, step.dw * 4);
        queue.commit(0, 1, 0, step.ordering, step.attributes, step.sourceId);
        put++;
      }
      for (; put > 0; put--) {
        const flow = queue.next({ allows: () => true });
        expect(flow).not.toBe(-1);
        queue.pop(flow as FlowClass);
      }
      expect(queue.next({ allows: () => true })).toBe(-1);
    }),
    { numRuns: 50 },
  );
});
