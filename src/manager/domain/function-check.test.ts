import { describe, expect, it } from 'vitest';
import { nodeOf } from '#testkit/core-pool-box';
import { functionOf, portOf } from '#testkit/core-pool-host';
import { functionStage } from './function-check.ts';

const PORT = { host: 'h1', slot: 0, ...portOf(0) };
const { bars: BARS } = nodeOf('gpu');
const FOUND = functionOf(0);

function withBar(change: Partial<(typeof FOUND.bars)[number]>, at = 0): typeof FOUND {
  return { ...FOUND, bars: FOUND.bars.map((bar, i) => (i === at ? { ...bar, ...change } : bar)) };
}

describe('a function can be used', () => {
  it('when each BAR is in its window', () => {
    expect(functionStage(FOUND, PORT, BARS)).toBe('final');
    // A prefetchable BAR may be anywhere, as far as it fits.
    const port = { ...PORT, nonPrefetchable: { base: 0x4000_0000, limit: 0xbfff_ffff } };
    const small = [{ index: 2, sizeBytes: 2 ** 28, prefetchable: true, is64: true }];
    const found = { ...FOUND, bars: [{ index: 2, address: 0x5000_0000, sizeBytes: 2 ** 28 }] };
    expect(functionStage(found, port, small)).toBe('final');
  });

  it('not while BARs are missing', () => {
    expect(functionStage({ ...FOUND, bars: [] }, PORT, BARS)).toBe('incomplete');
    expect(functionStage({ ...FOUND, bars: FOUND.bars.slice(0, 1) }, PORT, BARS)).toBe(
      'incomplete',
    );
  });
});

describe('a claim is not believed', () => {
  const low = PORT.nonPrefetchable;
  it.each([
    ['behind the window', withBar({ address: low.limit + 1 }), 'outside the windows'],
    // 4 KiB at the last 2 KiB of the window: the other half is beyond it, and it is not aligned.
    ['across its end', withBar({ address: low.limit - 2047 }), 'not aligned'],
    ['of another size', withBar({ sizeBytes: 8192 }), 'not of the size'],
    ['where what is not prefetchable cannot be', withBar({ address: 2 ** 40 }), 'outside'],
    ['twice', { ...FOUND, bars: [...FOUND.bars, FOUND.bars[0] as never] }, 'named twice'],
    ['on another bus', { ...FOUND, bdf: 9 << 8 }, '09:00.0 is not on bus 01'],
  ])('%s', (_what, found, text) => {
    expect(functionStage(found, PORT, BARS)).toEqual({ wrong: expect.stringContaining(text) });
  });

  it('over another BAR', () => {
    const two = [0, 1].map((index) => ({
      index,
      sizeBytes: 4096,
      prefetchable: false,
      is64: false,
    }));
    const found = {
      ...FOUND,
      bars: [0, 1].map((index) => ({ index, address: low.base, sizeBytes: 4096 })),
    };
    expect(functionStage(found, PORT, two)).toEqual({
      wrong: expect.stringContaining('overlaps another BAR'),
    });
  });
});
