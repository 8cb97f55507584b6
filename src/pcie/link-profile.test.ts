import { describe, expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import {
  DEFAULT_LINK_PROFILE_NAME,
  hostToDeviceGbytesPerS,
  type LinkProfileInput,
  linkProfile,
  linkProfileNames,
  namedLinkProfile,
  networkGbytesPerS,
  roundTripNs,
} from './link-profile.ts';

function errorOf(run: () => unknown): DxpuError {
  try {
    run();
  } catch (thrown) {
    return DxpuError.from(thrown);
  }
  throw new Error('nothing was thrown');
}

describe('named profiles', () => {
  it('have the recalled round trips, and say that they are recalled', () => {
    const trips = linkProfileNames().map((name) => [name, roundTripNs(namedLinkProfile(name))]);
    expect(trips).toEqual([
      ['native', 1200],
      ['dxpu-6.8us', 6800],
      ['dxpu-4.9us', 4900],
    ]);
    for (const name of linkProfileNames()) {
      expect(namedLinkProfile(name).recalled).toEqual([
        'tags',
        'mrrsBytes',
        'nativeRttNs',
        'addedRttNs',
      ]);
      // Each passes its own checks.
      expect(linkProfile({ extends: name })).toEqual(namedLinkProfile(name));
    }
  });

  it('give the copy rates worked out from them', () => {
    const rate = (name: string): number => hostToDeviceGbytesPerS(namedLinkProfile(name));
    // 140 × 128 ÷ 6800 and ÷ 4900; natively the link is the limit:
    // MPS 128: ⌊156 × 3 ÷ 16 + 115⌋ = 144 symbols between acknowledgements, so
    // 126.031 Gb/s × (1 − 16/144 − 4/1538) ÷ 8 × 128 ÷ 148 = 12.076 GB/s.
    expect(rate('dxpu-6.8us')).toBeCloseTo(2.635, 3);
    expect(rate('dxpu-4.9us')).toBeCloseTo(3.657, 3);
    expect(rate('native')).toBeCloseTo(12.076, 3);
  });

  it('have a network of 200 Gb/s between, except the native one', () => {
    expect(namedLinkProfile(DEFAULT_LINK_PROFILE_NAME)).toMatchObject({
      nativeRttNs: 1200,
      addedRttNs: 5600,
      tags: 140,
      mrrsBytes: 128,
      mpsBytes: 128,
      generation: 3,
      lanes: 16,
      networkGbps: 200,
    });
    expect(namedLinkProfile('native').networkGbps).toBe(Infinity);
    // 25 GB/s × 128 ÷ (128 + 64): more than the PCIe link carries.
    expect(networkGbytesPerS(namedLinkProfile('dxpu-6.8us'), 128)).toBeCloseTo(16.667, 3);
  });

  it('are listed when one is not found', () => {
    const error = errorOf(() => linkProfile({ extends: 'dxpu' }));
    expect(error.code).toBe('not_found');
    expect(error.message).toContain('native, dxpu-6.8us, dxpu-4.9us');
  });
});

describe('linkProfile', () => {
  it('starts from the default and overrides field by field', () => {
    const profile = linkProfile({ name: 'mine', tags: 256, addedRttNs: 3000 });
    expect(profile).toMatchObject({ name: 'mine', tags: 256, nativeRttNs: 1200, addedRttNs: 3000 });
    // What the caller gave is no longer recalled.
    expect(profile.recalled).toEqual(['mrrsBytes', 'nativeRttNs']);
    expect(linkProfile({})).toEqual(namedLinkProfile(DEFAULT_LINK_PROFILE_NAME));
  });

  it('is limited by a slow network', () => {
    const profile = linkProfile({ tags: 1024, networkGbps: 10, networkOverheadBytes: 64 });
    // 1.25 GB/s × 128 ÷ (128 + 64).
    expect(networkGbytesPerS(profile, 128)).toBeCloseTo(0.8333, 4);
    expect(hostToDeviceGbytesPerS(profile)).toBeCloseTo(0.8333, 4);
  });

  it.each<[string, unknown, string]>([
    ['tags', 0, 'must be a whole number from 1 to 1024'],
    ['tags', 1.5, 'must be a whole number from 1 to 1024'],
    ['tags', Number.NaN, 'must be a whole number'],
    ['tags', '140', 'must be a number'],
    ['nativeRttNs', 0, 'must be from 1 to'],
    ['addedRttNs', -1, 'must be from 0 to'],
    ['addedRttNs', Infinity, 'must be from 0 to'],
    ['networkGbps', 0, 'must be from 0.001 to'],
    ['networkOverheadBytes', -1, 'must be from 0 to'],
    ['generation', 9, 'must be 1, 2, 3, 4, 5 or 6'],
    ['lanes', 5, 'must be 1, 2, 4, 8, 12, 16 or 32'],
    ['ecrc', 1, 'must be a boolean'],
    ['name', 5, 'must be a string'],
    ['tag', 140, 'there is no such field'],
    ['recalled', [], 'there is no such field'],
  ])('refuses %s = %s, naming it', (field, value, problem) => {
    const error = errorOf(() => linkProfile({ [field]: value } as LinkProfileInput));
    expect(error.code).toBe('invalid_argument');
    expect(error.details['field']).toBe(field);
    expect(error.message).toContain(`${field} is ${String(value)}`);
    expect(error.message).toContain(problem);
  });
});
