import { describe, expect, it, vi } from 'vitest';
import { htodRateErrors, RTTS_US } from '#testkit/htod-rates';

vi.setConfig({ testTimeout: 240_000 });

describe('HtoD at MRRS 128, MPS 128', () => {
  it.each(RTTS_US)('round trip %s µs: one-tag time by hand, rate by tags', (rttUs) => {
    expect(htodRateErrors({ rttUs, mrrs: 128, mps: 128 })).toEqual([]);
  });
});
