/** Bursts and loads of a link by hand: what a Chrome trace shows of TLPs. */
import { describe, expect, it } from 'vitest';
import { BurstTrack, TLP_SORT } from './burst-track.ts';
import { LinkLoad } from './link-load.ts';

describe('bursts of TLPs', () => {
  it('are TLPs at most the gap apart, with their counts and bytes', () => {
    const track = new BurstTrack(10);
    expect(track.gapNs).toBe(16);
    track.add(0, 4, TLP_SORT.read, 16);
    track.add(20, 24, TLP_SORT.read, 16); // 16 after the end of the one before
    track.add(41, 50, TLP_SORT.completion, 140); // 17 after
    expect([...track.bursts()]).toEqual([
      { startNs: 0, endNs: 24, tlps: [2, 0, 0, 0], bytes: 32 },
      { startNs: 41, endNs: 50, tlps: [0, 0, 1, 0], bytes: 140 },
    ]);
  });

  it('are joined until half the limit is left, and no TLP is lost', () => {
    const track = new BurstTrack(4);
    // Gaps of 90 ns between bursts of 10; the fifth is one too many.
    for (let index = 0; index < 4; index += 1) {
      track.add(100 * index, 100 * index + 10, TLP_SORT.write, 32);
    }
    expect(track.count).toBe(4);
    track.add(1000, 1010, TLP_SORT.write, 32);
    // 16, 32 and 64 join nothing; 128 joins the first four, and the fifth is 690 behind them.
    expect(track.gapNs).toBe(128);
    expect([...track.bursts()]).toEqual([
      { startNs: 0, endNs: 310, tlps: [0, 4, 0, 0], bytes: 128 },
      { startNs: 1000, endNs: 1010, tlps: [0, 1, 0, 0], bytes: 32 },
    ]);
  });

  it('may be one alone', () => {
    const track = new BurstTrack(1);
    for (let at = 1; at < 1e9; at *= 10) track.add(at, at, TLP_SORT.other, 12);
    expect([...track.bursts()]).toEqual([
      { startNs: 1, endNs: 1e8, tlps: [0, 0, 0, 9], bytes: 108 },
    ]);
  });
});

describe('the load of a link', () => {
  it('is bytes and reads by interval', () => {
    const load = new LinkLoad();
    expect(load.intervalNs).toBe(1024);
    load.up(100, 24);
    load.reads(100, 1);
    load.down(1500, 84);
    load.reads(1500, 0);
    expect([...load.intervals()]).toEqual([
      // One read from 100 to 1024, and on to 1500.
      { startNs: 0, bytesDown: 0, bytesUp: 24, meanReads: 924 / 1024, mostReads: 1 },
      { startNs: 1024, bytesDown: 84, bytesUp: 0, meanReads: 476 / 1024, mostReads: 1 },
    ]);
  });

  it('has at most 4096 intervals: longer runs have longer ones, with all that was in them', () => {
    const load = new LinkLoad();
    load.up(0, 10);
    load.reads(0, 2);
    load.up(2000, 5);
    load.reads(3 * 4096 * 1024, 0);
    // 12,582,912 ns: 4096 intervals of 4096 ns.
    expect(load.intervalNs).toBe(4096);
    const intervals = [...load.intervals()];
    expect(intervals).toHaveLength(3073);
    expect(intervals[0]).toEqual({
      startNs: 0,
      bytesDown: 0,
      bytesUp: 15,
      meanReads: 2,
      mostReads: 2,
    });
    expect(intervals[3071]?.meanReads).toBe(2);
    expect(intervals[3072]?.meanReads).toBe(0);
  });
});
