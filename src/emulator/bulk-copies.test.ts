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
        // 40 windows and a rest, less the 8 kept.
        expect(inBulk.skipped / bulk.windowBytes).toBeGreaterThanOrEqual(32);
        const name = `${direction}, recorded ${recordedNs} ns`;
        // Two TLPs: what does not fill whole windows may come in other pieces.
        const isExact = where === 'native' || link.networkGbps === undefined;
        const off = Math.abs(inBulk.spanNs - whole.spanNs);
        expect(off, name).toBeLessThan(isExact ? 20 : 1e-3 * whole.spanNs);
      }
    }
  });
});
