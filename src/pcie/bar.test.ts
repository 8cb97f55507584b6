import { describe, expect, it } from 'vitest';
import { AssertionError } from '#base/assert';
import { type BarSpec, Bars } from './bar.ts';
import { COMMAND, COMMAND_MEMORY_SPACE_ENABLE, ConfigSpace } from './config-space.ts';

const ALL_BYTES = 15;

function functionWith(specs: BarSpec[]): { config: ConfigSpace; bars: Bars } {
  const config = new ConfigSpace({ vendorId: 1, deviceId: 1, revisionId: 0, classCode: 0 });
  return { config, bars: new Bars(config, specs) };
}

const bar32 = (index: number, sizeBytes: number): BarSpec => ({
  index,
  sizeBytes,
  is64Bit: false,
  prefetchable: false,
});
const bar64 = (index: number, sizeBytes: number): BarSpec => ({
  index,
  sizeBytes,
  is64Bit: true,
  prefetchable: true,
});

describe('sizing', () => {
  it('tells every 32-bit size by the bits that stay 0 after writing all ones', () => {
    for (let power = 4; power <= 31; power++) {
      const { config } = functionWith([bar32(3, 2 ** power)]);
      config.write(0x1c, 0xffff_ffff, ALL_BYTES);
      const read = config.read32(0x1c);
      // As software does it: clear the type bits, invert, add one.
      expect((~(read & ~15) >>> 0) + 1).toBe(2 ** power);
      expect(read & 15).toBe(0);
    }
  });

  it('tells every 64-bit size over both registers', () => {
    for (let power = 4; power <= 40; power++) {
      const { config } = functionWith([bar64(2, 2 ** power)]);
      config.write(0x18, 0xffff_ffff, ALL_BYTES);
      config.write(0x1c, 0xffff_ffff, ALL_BYTES);
      const read = (BigInt(config.read32(0x1c)) << 32n) | BigInt(config.read32(0x18));
      expect(BigInt.asUintN(64, ~(read & ~15n)) + 1n).toBe(2n ** BigInt(power));
      // Memory, 64 bit, prefetchable: 1100b.
      expect(read & 15n).toBe(0b1100n);
    }
  });

  it('shows registers without a BAR as 0', () => {
    const { config } = functionWith([bar32(0, 4096)]);
    config.write(0x14, 0xffff_ffff, ALL_BYTES);
    expect(config.read32(0x14)).toBe(0);
  });
});

describe('match', () => {
  const { config, bars } = functionWith([bar32(0, 0x1000), bar64(2, 0x1_0000_0000)]);
  config.write(0x10, 0xe000_0000, ALL_BYTES);
  config.write(0x18, 0, ALL_BYTES);
  config.write(0x1c, 0x80, ALL_BYTES);
  const at = (address: number, bytes: number): [number, number] => [
    bars.match(address, bytes),
    bars.matchedOffset,
  ];

  it('answers nothing before memory space is enabled', () => {
    expect(bars.match(0xe000_0000, 4)).toBe(-1);
    config.write(COMMAND, COMMAND_MEMORY_SPACE_ENABLE, ALL_BYTES);
    expect(bars.match(0xe000_0000, 4)).toBe(0);
  });

  it('gives BAR and offset at both ends', () => {
    expect(at(0xe000_0000, 4)).toEqual([0, 0]);
    expect(at(0xe000_0ffc, 4)).toEqual([0, 0xffc]);
    expect(at(0x80_0000_0000, 1)).toEqual([2, 0]);
    expect(at(0x80_ffff_ffff, 1)).toEqual([2, 0xffff_ffff]);
    expect(bars.baseOf(2)).toBe(0x80_0000_0000);
  });

  it('refuses what is not wholly inside', () => {
    expect(bars.match(0xdfff_fffc, 8)).toBe(-1);
    expect(bars.match(0xe000_0ffc, 8)).toBe(-1);
    expect(bars.match(0xe000_1000, 4)).toBe(-1);
    expect(bars.match(0x7f_ffff_ffff, 1)).toBe(-1);
    expect(bars.match(0x81_0000_0000, 1)).toBe(-1);
  });

  it('matches no safe address while a BAR is being sized', () => {
    config.write(0x18, 0xffff_ffff, ALL_BYTES);
    config.write(0x1c, 0xffff_ffff, ALL_BYTES);
    expect(bars.match(Number.MAX_SAFE_INTEGER, 1)).toBe(-1);
    expect(bars.match(0x80_0000_0000, 1)).toBe(-1);
  });
});

it('asserts on what PCI has no register for', () => {
  expect(() => functionWith([bar32(0, 24)])).toThrow(AssertionError);
  expect(() => functionWith([bar32(0, 8)])).toThrow(AssertionError);
  expect(() => functionWith([bar32(0, 2 ** 32)])).toThrow(AssertionError);
  expect(() => functionWith([bar64(0, 2 ** 41)])).toThrow(AssertionError);
  expect(() => functionWith([bar64(5, 4096)])).toThrow(AssertionError);
  expect(() => functionWith([bar64(0, 4096), bar32(1, 4096)])).toThrow(AssertionError);
  expect(() => functionWith([bar32(6, 4096)])).toThrow(AssertionError);
});
