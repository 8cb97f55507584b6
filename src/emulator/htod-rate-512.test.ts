import { describe, expect, it, vi } from 'vitest';
import { measureCopyRate, writePayloadLimit } from '#testkit/copy-rate';
import { htodRateErrors, RTTS_US } from '#testkit/htod-rates';

vi.setConfig({ testTimeout: 240_000 });

describe('HtoD at MRRS 512, MPS 256', () => {
  it.each(RTTS_US)('round trip %s µs: one-tag time by hand, rate by tags', (rttUs) => {
    expect(htodRateErrors({ rttUs, mrrs: 512, mps: 256 })).toEqual([]);
  });
});

describe('DtoH', () => {
  it.each(RTTS_US)('stays at the rate of the link at a round trip of %s µs', (rttUs) => {
    const setting = { rttUs, tags: 140, mrrs: 128, mps: 128 };
    const expected = writePayloadLimit(setting);
    // 50 round trips: nothing here depends on them.
    const rate = measureCopyRate(setting, 'up', expected, (rttUs * 1e3) / 4);
    expect(Math.abs(rate / expected - 1), `${rate} against ${expected} B/ns`).toBeLessThan(0.01);
  });
});
