import { describe, expect, it } from 'vitest';
import { AssertionError } from './assert.ts';
import { IntervalMap } from './interval-map.ts';

describe('IntervalMap', () => {
  it('finds by both ends and nothing beyond them', () => {
    const map = new IntervalMap();
    expect(map.insert(0x1000, 0x1fff, 7)).toBe(true);
    expect([0xfff, 0x1000, 0x1fff, 0x2000].map((address) => map.find(address))).toEqual([
      -1, 7, 7, -1,
    ]);
  });

  it('takes neighbours that touch, refuses any shared address', () => {
    const map = new IntervalMap(1);
    expect(map.insert(10, 19, 1)).toBe(true);
    expect(map.insert(20, 29, 2)).toBe(true);
    expect(map.insert(0, 9, 0)).toBe(true);
    expect(map.insert(29, 40, 3)).toBe(false);
    expect(map.insert(0, 100, 3)).toBe(false);
    expect(map.insert(12, 13, 3)).toBe(false);
    expect(map.size).toBe(3);
    expect(map.overlaps(30, 40)).toBe(false);
    expect(map.overlaps(29, 40)).toBe(true);
  });

  it('holds addresses up to 2^53 − 1', () => {
    const map = new IntervalMap();
    expect(map.insert(2 ** 52, Number.MAX_SAFE_INTEGER, 5)).toBe(true);
    expect(map.find(Number.MAX_SAFE_INTEGER)).toBe(5);
    expect(map.find(2 ** 52 - 1)).toBe(-1);
  });

  it('removes by exact base only', () => {
    const map = new IntervalMap();
    map.insert(10, 19, 1);
    expect(map.remove(11)).toBe(-1);
    expect(map.remove(10)).toBe(1);
    expect(map.find(10)).toBe(-1);
    expect(map.insert(5, 30, 2)).toBe(true);
  });

  it('asserts on what is not an interval', () => {
    const map = new IntervalMap();
    expect(() => map.insert(2, 1, 0)).toThrow(AssertionError);
    expect(() => map.insert(0, 2 ** 53, 0)).toThrow(AssertionError);
    expect(() => map.insert(0, 1, -1)).toThrow(AssertionError);
  });
});
