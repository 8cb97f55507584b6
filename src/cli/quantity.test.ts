import { describe, expect, it } from 'vitest';
import {
  formatDuration,
  formatSize,
  parseDuration,
  parseRate,
  parseShare,
  parseSize,
  parseWhole,
} from './quantity.ts';

describe('quantities', () => {
  it('of time are nanoseconds', () => {
    expect(parseDuration('2s')).toBe(2e9);
    expect(parseDuration('1.5ms')).toBe(1.5e6);
    expect(parseDuration('50us')).toBe(50_000);
    expect(parseDuration('50 µs')).toBe(50_000);
    expect(parseDuration('700ns')).toBe(700);
    for (const wrong of ['2', 's', '-1s', '2 h', '1e3s', '']) {
      expect(() => parseDuration(wrong), wrong).toThrow(/is not a duration: write .* 50us/);
    }
  });

  it('of memory are bytes', () => {
    expect(parseSize('4096')).toBe(4096);
    expect(parseSize('0x1000')).toBe(4096);
    expect(parseSize('64MiB')).toBe(67_108_864);
    expect(parseSize('16 GiB')).toBe(17_179_869_184);
    expect(parseSize('1.5KiB')).toBe(1536);
    for (const wrong of ['64M', '1.3KiB', '-1', 'MiB', '0xg', '9007199254740993KiB']) {
      expect(() => parseSize(wrong), wrong).toThrow(/is not a size: write .* 64MiB/);
    }
  });

  it('of rate are bits a second', () => {
    expect(parseRate('100Gbit/s')).toBe(100e9);
    expect(parseRate('12.5GB/s')).toBe(100e9);
    expect(() => parseRate('100')).toThrow(/is not a rate/);
  });

  it('of a share are 0 to 1', () => {
    expect(parseShare('1%')).toBe(0.01);
    expect(parseShare('0.25')).toBe(0.25);
    expect(parseShare('100%')).toBe(1);
    for (const wrong of ['101%', '1.1', '5 s', '-1%']) {
      expect(() => parseShare(wrong), wrong).toThrow(/is not a share/);
    }
  });

  it('of a count have bounds', () => {
    expect(parseWhole('7', 0, 7)).toBe(7);
    expect(parseWhole('0x1f', 0, 31)).toBe(31);
    for (const wrong of ['8', '-1', '1.5', '1e0', '']) {
      expect(() => parseWhole(wrong, 0, 7), wrong).toThrow(/whole number from 0 to 7/);
    }
  });

  it('are printed in the unit that suits', () => {
    expect(formatDuration(999)).toBe('999 ns');
    expect(formatDuration(6800)).toBe('6.8 us');
    expect(formatDuration(12_345_678)).toBe('12.3 ms');
    expect(formatDuration(2e9)).toBe('2 s');
    expect(formatSize(64)).toBe('64 B');
    expect(formatSize(1536)).toBe('1.5 KiB');
    expect(formatSize(64 * 2 ** 20)).toBe('64 MiB');
  });
});
