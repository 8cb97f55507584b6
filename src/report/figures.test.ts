import { describe, expect, it } from 'vitest';
import { bytes, count, duration, gbytesPerS, percent, threeDigits } from './figures.ts';

describe('figures', () => {
  it.each([
    [0, '0 ns'],
    [999, '999 ns'],
    [999.6, '1 µs'],
    [6800, '6.8 µs'],
    [999_499, '999 µs'],
    [999_500, '1 ms'],
    [12_345_678, '12.3 ms'],
    [999_499_999, '999 ms'],
    [1.5e9, '1.5 s'],
    [7.2e12, '7,200 s'],
    [-2500, '-2.5 µs'],
  ])('%d ns is %s', (ns, text) => expect(duration(ns)).toBe(text));

  it.each([
    [0, '0 %'],
    [0.004, '<0.01 %'],
    [-0.004, '>-0.01 %'],
    [0.42, '0.42 %'],
    [0.5, '0.5 %'],
    [0.994, '0.99 %'],
    [0.996, '1 %'],
    [10, '10 %'],
    [13.24, '13.2 %'],
    [99.96, '100 %'],
    [1240.4, '1,240 %'],
  ])('%d percent is %s', (value, text) => expect(percent(value)).toBe(text));

  it.each([
    [4, '4 B'],
    [4096, '4.1 kB'],
    [115_605_504, '116 MB'],
    [2.64e9, '2.64 GB'],
    [3e12, '3 TB'],
  ])('%d bytes are %s', (value, text) => expect(bytes(value)).toBe(text));

  it('groups whole numbers, and never writes a power of ten where one can do without', () => {
    expect(count(9012)).toBe('9,012');
    expect(count(123)).toBe('123');
    expect(count(1234.5)).toBe('1,234.5');
    expect(threeDigits(109_321)).toBe('109,000');
    expect(threeDigits(0.04213)).toBe('0.0421');
    expect(threeDigits(1e-9)).toBe('1.0e-9');
    expect(gbytesPerS(2.6353)).toBe('2.64 GB/s');
  });
});
