import { describe, expect, it } from 'vitest';
import { nanos } from '#base/units';
import { fc } from '#testkit/properties';
import { setCompletion, setCompletionPayload } from './completion.ts';
import { Accepted, CompletionTracker, Expect, TagPool } from './tags.ts';
import { CompletionStatus, Tlp } from './tlp.ts';

const data = new Uint8Array(4096);

/** A successful completion of `lengthDw` double words. */
function withData(tag: number, byteCount: number, lowerAddress: number, lengthDw: number): Tlp {
  const tlp = new Tlp();
  setCompletion(tlp, 0x0100, tag, 0, 0, 0, CompletionStatus.SC, byteCount, lowerAddress);
  setCompletionPayload(tlp, data, 0, lengthDw);
  return tlp;
}

function withoutData(tag: number, status: CompletionStatus, byteCount = 4): Tlp {
  const tlp = new Tlp();
  setCompletion(tlp, 0x0100, tag, 0, 0, 0, status, byteCount, 0);
  return tlp;
}

describe('TagPool', () => {
  it('hands out each tag once: from 0 up to 256, 10-bit ones from 256 beyond', () => {
    for (const [limit, first] of [
      [1, 0],
      [32, 0],
      [140, 0],
      [256, 0],
      [257, 256],
      [768, 256],
    ] as const) {
      const pool = new TagPool(limit);
      const tags = Array.from({ length: limit }, () => pool.alloc());
      expect(tags).toEqual(Array.from({ length: limit }, (_, i) => first + i));
      expect(pool.alloc()).toBe(-1);
      expect(pool.available).toBe(0);
    }
    expect(() => new TagPool(0)).toThrow(/tag limit/);
    expect(() => new TagPool(769)).toThrow(/tag limit/);
  });

  it('reuses the tag that has been free longest', () => {
    const pool = new TagPool(3);
    expect([pool.alloc(), pool.alloc()]).toEqual([0, 1]);
    pool.free(1);
    pool.free(0);
    expect([pool.alloc(), pool.alloc(), pool.alloc(), pool.alloc()]).toEqual([2, 1, 0, -1]);
  });

  it('refuses a tag that is not held', () => {
    const pool = new TagPool(300);
    const tag = pool.alloc();
    pool.free(tag);
    expect(() => pool.free(tag)).toThrow(/not held/);
    expect(() => pool.free(255)).toThrow(/not held/);
    expect(() => pool.free(-1)).toThrow(/not held/);
  });

  it('never gives one tag to two, whatever the order', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.array(fc.nat({ max: 99 })),
        (limit, steps) => {
          const pool = new TagPool(limit);
          const held: number[] = [];
          for (const step of steps) {
            if (step % 3 !== 0) {
              const tag = pool.alloc();
              expect(tag === -1).toBe(held.length === limit);
              if (tag === -1) continue;
              expect(held).not.toContain(tag);
              held.push(tag);
            } else if (held.length > 0) {
              pool.free(held.splice(step % held.length, 1)[0] as number);
            }
            expect(pool.available).toBe(limit - held.length);
          }
        },
      ),
    );
  });
});

describe('CompletionTracker', () => {
  it('says which part of a read each completion brings', () => {
    const pool = new TagPool(4);
    const tracker = new CompletionTracker(pool);
    const tag = pool.alloc();
    // 150 bytes from 0x1003: up to 0x1040 61 bytes, up to 0x1080 64, up to 0x1099 25.
    tracker.open(tag, 0x1003, 150, 1000, 77);
    const first = withData(tag, 150, 0x03, 16);
    first.payloadOffset = 100;
    expect(tracker.accept(first)).toBe(Accepted.PART);
    expect(tracker).toMatchObject({ cookie: 77, offset: 0, bytes: 61, payloadOffset: 103 });
    expect(tracker.accept(withData(tag, 89, 0x40, 16))).toBe(Accepted.PART);
    expect(tracker).toMatchObject({ offset: 61, bytes: 64, payloadOffset: 0 });
    expect(pool.available).toBe(3);
    expect(tracker.accept(withData(tag, 25, 0x00, 7))).toBe(Accepted.DONE);
    expect(tracker).toMatchObject({ cookie: 77, offset: 125, bytes: 25 });
    expect([pool.available, tracker.openCount, tracker.holds(tag)]).toEqual([4, 0, false]);
    expect(tracker.accept(withData(tag, 25, 0x00, 7))).toBe(Accepted.UNEXPECTED);
  });

  it('keeps a request open over a completion that contradicts it', () => {
    const tracker = new CompletionTracker();
    tracker.open(5, 0x1003, 150, 1000, 1);
    expect(tracker.accept(withData(5, 149, 0x03, 16))).toBe(Accepted.MISMATCH); // byte count
    expect(tracker.accept(withData(5, 150, 0x00, 16))).toBe(Accepted.MISMATCH); // lower address
    expect(tracker.accept(withoutData(5, CompletionStatus.SC, 150))).toBe(Accepted.MISMATCH);
    expect(tracker.accept(withData(6, 150, 0x03, 16))).toBe(Accepted.UNEXPECTED); // tag
    expect(tracker.openCount).toBe(1);
    expect(tracker.accept(withData(5, 150, 0x03, 16))).toBe(Accepted.PART);
    expect(tracker.accept(withData(5, 150, 0x03, 16))).toBe(Accepted.MISMATCH); // the same again
    // A BCM of a PCI-X bridge makes byte count that of the completion alone.
    const bridged = withData(5, 64, 0x40, 16);
    bridged.byteCountModified = true;
    expect(tracker.accept(bridged)).toBe(Accepted.PART);
    expect(tracker.accept(withData(5, 25, 0x00, 7))).toBe(Accepted.DONE);
  });

  it('a status other than SC ends the request, parts of it or not', () => {
    const pool = new TagPool(1);
    const tracker = new CompletionTracker(pool);
    for (const status of [CompletionStatus.UR, CompletionStatus.CRS, CompletionStatus.CA]) {
      const tag = pool.alloc();
      tracker.open(tag, 0, 128, 1000, 9);
      expect(tracker.accept(withData(tag, 128, 0, 16))).toBe(Accepted.PART);
      expect(tracker.accept(withoutData(tag, status, 64))).toBe(Accepted.FAILED);
      expect(tracker).toMatchObject({ cookie: 9, status, bytes: 0 });
      expect(pool.available).toBe(1);
    }
  });

  it('config, I/O and AtomicOps: one completion, of the right form', () => {
    const tracker = new CompletionTracker();
    tracker.open(1, 0, 4, 1000, 0, Expect.DATA);
    expect(tracker.accept(withoutData(1, CompletionStatus.SC))).toBe(Accepted.MISMATCH);
    expect(tracker.accept(withData(1, 4, 0, 2))).toBe(Accepted.MISMATCH);
    // Its lower address is reserved.
    expect(tracker.accept(withData(1, 4, 3, 1))).toBe(Accepted.DONE);
    expect(tracker).toMatchObject({ offset: 0, bytes: 4, payloadOffset: 0 });
    tracker.open(1, 0, 4, 1000, 0, Expect.NO_DATA);
    expect(tracker.accept(withData(1, 4, 0, 1))).toBe(Accepted.MISMATCH);
    expect(tracker.accept(withoutData(1, CompletionStatus.SC))).toBe(Accepted.DONE);
    expect(tracker.bytes).toBe(0);
    tracker.open(1, 0, 16, 1000, 0, Expect.DATA); // CAS of 128 bits
    expect(tracker.accept(withData(1, 16, 0, 4))).toBe(Accepted.DONE);
  });

  it('times out at the deadline, and holds the tag until the completion comes after all', () => {
    const pool = new TagPool(2);
    const tracker = new CompletionTracker(pool);
    const due: [number, number][] = [];
    const expire = (now: number): void =>
      tracker.expire(nanos(now), (tag, cookie) => due.push([tag, cookie]));
    tracker.open(pool.alloc(), 0, 128, 100, 11);
    tracker.open(pool.alloc(), 0, 64, 200, 22);
    expect(tracker.nextDeadlineNs()).toBe(100);
    expire(99);
    expect(due).toEqual([]);
    expire(100);
    expire(100);
    expect(due).toEqual([[0, 11]]);
    expect(tracker).toMatchObject({ openCount: 1, timedOutCount: 1 });
    expect(tracker.nextDeadlineNs()).toBe(200);
    expect(pool.alloc()).toBe(-1);
    expect(() => tracker.open(0, 0, 4, 300, 0)).toThrow(/outstanding/);
    // The late answer comes in two parts; only the last frees the tag.
    expect(tracker.accept(withData(0, 128, 0, 16))).toBe(Accepted.LATE);
    expect(pool.alloc()).toBe(-1);
    expect(tracker.accept(withData(0, 64, 64, 16))).toBe(Accepted.LATE);
    expect(tracker.timedOutCount).toBe(0);
    expect(pool.alloc()).toBe(0);
    expire(1000);
    expect(due).toEqual([
      [0, 11],
      [1, 22],
    ]);
    expect(tracker.nextDeadlineNs()).toBe(Infinity);
    expect(tracker.accept(withoutData(1, CompletionStatus.UR))).toBe(Accepted.LATE);
    expect(pool.available).toBe(1);
  });

  it('deadlines in any order expire in theirs', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat({ max: 50 }), { maxLength: 40 }),
        fc.nat({ max: 60 }),
        (times, now) => {
          const tracker = new CompletionTracker();
          times.forEach((time, tag) => tracker.open(tag, 0, 4, time, time));
          expect(tracker.nextDeadlineNs()).toBe(Math.min(Infinity, ...times));
          const due: number[] = [];
          tracker.expire(nanos(now), (_tag, cookie) => due.push(cookie));
          expect(due).toEqual(times.filter((time) => time <= now).sort((a, b) => a - b));
          expect(tracker.openCount).toBe(times.length - due.length);
          expect(tracker.nextDeadlineNs()).toBe(
            Math.min(Infinity, ...times.filter((time) => time > now)),
          );
        },
      ),
    );
  });

  it('the end of a session frees every tag and names the requests that were open', () => {
    const pool = new TagPool(4);
    const tracker = new CompletionTracker(pool);
    for (const deadline of [10, 30, 20]) tracker.open(pool.alloc(), 0, 4, deadline, deadline);
    tracker.expire(nanos(10), () => undefined);
    const aborted: number[] = [];
    tracker.abort((_tag, cookie) => {
      aborted.push(cookie);
      // What the callback opens belongs to the next session, even when due earlier.
      if (cookie === 20) tracker.open(pool.alloc(), 0, 4, 5, 5);
    });
    expect(aborted).toEqual([20, 30]);
    expect(tracker).toMatchObject({ openCount: 1, timedOutCount: 0 });
    expect(tracker.nextDeadlineNs()).toBe(5);
    expect(pool.available).toBe(3);
    tracker.abort();
    expect([pool.available, tracker.openCount]).toEqual([4, 0]);
  });

  it('requests answered in any order and interleaving all end, each byte once', () => {
    const script = fc.array(
      fc.record({ start: fc.nat({ max: 4095 }), bytes: fc.integer({ min: 1, max: 600 }) }),
      { minLength: 1, maxLength: 20 },
    );
    fc.assert(
      fc.property(script, fc.infiniteStream(fc.nat({ max: 1000 })), (requests, choices) => {
        const pool = new TagPool(256);
        const tracker = new CompletionTracker(pool);
        const open = requests.map(({ start, bytes }, index) => {
          const tag = pool.alloc();
          tracker.open(tag, start, bytes, index, index);
          return { tag, at: start, end: start + bytes, covered: 0 };
        });
        const all = [...open];
        while (open.length > 0) {
          const which = (choices.next().value as number) % open.length;
          const one = open[which] as (typeof open)[number];
          // Up to the next multiple of 64, or to the end.
          const to = Math.min(one.end, Math.floor(one.at / 64) * 64 + 64);
          const lengthDw = Math.ceil((to - (one.at & ~3)) / 4);
          const verdict = tracker.accept(
            withData(one.tag, one.end - one.at, one.at % 128, lengthDw),
          );
          expect(tracker.cookie).toBe(all.indexOf(one));
          expect(tracker.offset).toBe(one.covered);
          expect(tracker.bytes).toBe(to - one.at);
          one.covered += tracker.bytes;
          one.at = to;
          expect(verdict).toBe(to === one.end ? Accepted.DONE : Accepted.PART);
          if (to === one.end) open.splice(which, 1);
        }
        expect(all.map((one) => one.covered)).toEqual(requests.map(({ bytes }) => bytes));
        expect(pool.available).toBe(256);
      }),
    );
  });
});
