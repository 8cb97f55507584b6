import { describe, expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import { linkProfile } from '#pcie/link-profile';
import { PathTimes } from '#testkit/emulated';
import { microbench } from './microbench.ts';

const profile = linkProfile({});
const free = linkProfile({ networkGbps: Infinity });
/** Whole round trips; the native one is 1200 ns. */
const RTTS_NS = [1200, 2000, 4900, 6800, 20_000];

describe('latency', () => {
  it('is the native one and two added round trips: half, one for the fetch, half', () => {
    const [native, ...pooled] = microbench('latency', profile, RTTS_NS);
    const t = new PathTimes(profile, 0);
    expect(native!.launchAndWaitNs).toBeCloseTo(t.doorbell + t.fetch(1) + t.fence, 3);
    for (const { rttNs, launchAndWaitNs } of pooled) {
      const byHand = native!.launchAndWaitNs! + 2 * (rttNs - 1200);
      // Frames of 200 Gb/s: a few ns.
      expect(Math.abs(launchAndWaitNs! - byHand)).toBeLessThan(5);
    }
  });
});

describe('launch rate', () => {
  it('is one command a fetch where a fetch brings one, one at a time', () => {
    const device = { fetchCommands: 1, fetchesInFlight: 1 };
    for (const { rttNs, launchesPerS } of microbench('launch-rate', free, [1200, 6800], device)) {
      const byHand = 1e9 / new PathTimes(free, rttNs - 1200).fetch(1);
      expect(launchesPerS! / byHand).toBeCloseTo(1, 3);
    }
  });

  it('is sixteen commands in two fetches where a fetch brings up to sixteen', () => {
    const device = { prefetchCommands: 16, fetchCommands: 16, fetchesInFlight: 1 } as const;
    const [row] = microbench('launch-rate', free, [6800], device);
    const t = new PathTimes(free, 5600);
    // The first place that comes free is filled by a fetch of its own; the other 15 by the next.
    const byHand = 16e9 / (t.fetch(1) + t.fetch(15));
    expect(row!.launchesPerS! / byHand).toBeCloseTo(1, 3);
  });
});

describe('bandwidth', () => {
  it('of HtoD is tags × MRRS ÷ round trip to 1 %, of DtoH that of the link', () => {
    const sizes = [64 * 2 ** 20];
    for (const row of microbench('bandwidth', profile, [2000, 6800, 20_000], {}, sizes)) {
      expect(row.htodGbytesPerS! / ((140 * 128) / row.rttNs)).toBeCloseTo(1, 2);
      // 128 bytes and 24 of header and framing, at the rate of gen 3 ×16 for TLPs.
      const link = new PathTimes(profile, 0).rate * (128 / 152);
      expect(Math.abs(row.dtohGbytesPerS! / link - 1)).toBeLessThan(0.01);
    }
  });

  it('of one small copy is its bytes by hand', () => {
    const [row] = microbench('bandwidth', free, [6800], {}, [4096]);
    const t = new PathTimes(free, 5600);
    // Two commands, the first 128 bytes and the 3968 behind them, in one fetch: all reads at once.
    const htodNs = t.doorbell + t.fetch(2) + t.read(4096) + t.fence;
    expect(row!.htodGbytesPerS).toBeCloseTo(4096 / htodNs, 5);
    const dtohNs = t.doorbell + t.fetch(1) + t.bytes(32 * 152) + t.fence;
    expect(row!.dtohGbytesPerS).toBeCloseTo(4096 / dtohNs, 5);
  });

  it('at less than the native round trip is refused', () => {
    expect(() => microbench('bandwidth', profile, [1100])).toThrow(DxpuError);
  });
});
