/** Long copies that advance in bulk end when they would end TLP by TLP. */
import { describe, expect, it } from 'vitest';
import { linkProfile } from '#pcie/link-profile';
import { type EmulatedSystem, nativeSystem, pooledSystem } from './emulated-system.ts';
import { type Bulk, CopySpace, QueueBuilder } from './queue-builder.ts';
import { runWorkload } from './run-workload.ts';
import { steadyBulk } from './steady-copies.ts';
import { singleCall } from './workload.ts';

const SPACE = 8 * 2 ** 20;
const device = { channels: 1 };

const LINKS = [
  { addedRttNs: 5600, tags: 64 },
  // More tags than the round trip needs: the link is the limit.
  { addedRttNs: 2000, tags: 64, mrrsBytes: 512, mpsBytes: 256 },
  // A slow network is: frames gather TLPs, and no window is quite like the one before.
  { addedRttNs: 2000, tags: 128, networkGbps: 40 },
];

// Regression: writes went on at the pace of the device's link, as those that were measured were all in buffers.
it('a long copy to the host over a slow network goes at the pace of the network', () => {
  const profile = linkProfile({ networkGbps: 25 });
  const size = 16 * 2 ** 20;
  const make = (bytes: number): EmulatedSystem =>
    pooledSystem({ profile, device, hostBytes: bytes, deviceBytes: bytes });
  const bulk = steadyBulk(profile, make)!;
  const bytes = 6 * 2 ** 20;
  const run = (how?: Bulk): { spanNs: number; arrivedNs: number } => {
    const system = make(size);
    const space = new CopySpace(system.soft.memory, size);
    const builder = new QueueBuilder(0, profile, space, how);
    builder.dtoh(0, 0, bytes, []);
    const last = builder.fenceLast();
    const work = singleCall(builder.take(), last);
    const { spanNs, callEndNs } = runWorkload(system, work, { profile });
    return { spanNs, arrivedNs: callEndNs[0]! };
  };
  const [whole, inBulk] = [run(), run(bulk)];
  // 25 Gb/s are 3.125 bytes a ns; frames are full, so that headers are 12 of entry and 16 of TLP for 128 bytes.
  expect(Math.abs(bytes / whole.arrivedNs / (3.125 * (128 / 156)) - 1)).toBeLessThan(0.01);
  for (const when of ['spanNs', 'arrivedNs'] as const) {
    expect(Math.abs(inBulk[when] / whole[when] - 1), when).toBeLessThan(5e-3);
  }
});

describe.each(LINKS)('at %o', (link) => {
  const profile = linkProfile(link);
  const makers = { native: nativeSystem, pooled: pooledSystem };

  it.each(['native', 'pooled'] as const)('copies both ways, %s', (where) => {
    const make = (bytes: number): EmulatedSystem =>
      makers[where]({ profile, device, hostBytes: bytes, deviceBytes: bytes });
    const bulk = steadyBulk(profile, make)!;
    const bytes = 40 * bulk.windowBytes + 4700;
    for (const direction of ['htod', 'dtoh'] as const) {
      // At the pace of the link, and at a recorded pace that is slower.
      for (const recordedNs of [0, 0.9 * bytes]) {
        const run = (how?: Bulk): { spanNs: number; skipped: number } => {
          const system = make(SPACE);
          const space = new CopySpace(system.soft.memory, SPACE);
          const builder = new QueueBuilder(0, profile, space, how);
          builder[direction](0, recordedNs, bytes, []);
          builder.fenceLast();
          const { spanNs } = runWorkload(system, singleCall(builder.take()), { profile });
          return { spanNs, skipped: builder.skippedHtod + builder.skippedDtoh };
        };
        const whole = run();
        const inBulk = run(bulk);
        expect(whole.skipped).toBe(0);
        // 40 windows and a rest, less the 8 kept; writes a slow network lags behind are all in buffers.
        const isAhead = where === 'pooled' && direction === 'dtoh' && link.networkGbps === 40;
        const windows = inBulk.skipped / bulk.windowBytes;
        if (isAhead) expect(windows).toBe(0);
        else expect(windows).toBeGreaterThanOrEqual(32);
        const name = `${direction}, recorded ${recordedNs} ns`;
        // Two TLPs: what does not fill whole windows may come in other pieces.
        const isExact = where === 'native' || link.networkGbps === undefined;
        const off = Math.abs(inBulk.spanNs - whole.spanNs);
        expect(off, name).toBeLessThan(isExact ? 20 : 1e-3 * whole.spanNs);
      }
    }
  });
});
