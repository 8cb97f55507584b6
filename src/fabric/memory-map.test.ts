import { DxpuError } from '#base/errors';
import { expect, test } from 'vitest';
import { MemoryMap } from './memory-map.ts';

const RW = { read: true, write: true };

function codeOf(action: () => void): string {
  try {
    action();
  } catch (error) {
    return DxpuError.from(error).code;
  }
  return 'ok';
}

test('registers whole pages that do not overlap', () => {
  const map = new MemoryMap();
  const register = (base: number, bytes: number) =>
    codeOf(() => map.register(base, new Uint8Array(bytes), RW));
  expect(register(0x3000, 0x2000)).toBe('ok');
  expect(register(0x5000, 0x1000)).toBe('ok');
  expect(register(0x1000, 0x2000)).toBe('ok');
  // Each of these shares one page with what is there: before, behind, inside, around.
  expect(register(0x2000, 0x1000)).toBe('already_exists');
  expect(register(0x4000, 0x1000)).toBe('already_exists');
  expect(register(0x0, 0x2000)).toBe('already_exists');
  expect(register(0x0, 0x10000)).toBe('already_exists');
  expect(register(0x800, 0x1000)).toBe('invalid_argument');
  expect(register(0x8000, 0x1001)).toBe('invalid_argument');
  expect(register(0x8000, 0)).toBe('invalid_argument');
  expect(register(-0x1000, 0x1000)).toBe('invalid_argument');
  expect(register(2 ** 53 - 0x1000, 0x1000)).toBe('ok');
  expect(register(2 ** 53 - 0x2000, 0x3000)).toBe('invalid_argument');
  expect(register(0xfee0_0000, 0x1000)).toBe('invalid_argument');
  expect(register(0xfedf_f000, 0x2000)).toBe('invalid_argument');
  expect(map.regions.map(({ base }) => base)).toEqual([0x1000, 0x3000, 0x5000, 2 ** 53 - 0x1000]);
});

test('finds the region at or below an address, until it is taken back', () => {
  const map = new MemoryMap();
  map.register(0x3000, new Uint8Array(0x2000), RW);
  map.register(0x1000, new Uint8Array(0x1000), { read: true, write: false });
  expect(map.floor(0xfff)).toBeUndefined();
  expect(map.floor(0x1000)?.base).toBe(0x1000);
  expect(map.floor(0x2fff)).toMatchObject({ base: 0x1000, limit: 0x1fff, writable: false });
  expect(map.floor(0x9000)).toMatchObject({ base: 0x3000, limit: 0x4fff, writable: true });
  expect(map.overlaps(0x2000, 0x2fff)).toBe(false);
  expect(map.overlaps(0x2000, 0x3000)).toBe(true);
  expect(codeOf(() => map.unregister(0x3001))).toBe('not_found');
  map.unregister(0x3000);
  expect(map.floor(0x9000)?.base).toBe(0x1000);
  expect(codeOf(() => map.unregister(0x3000))).toBe('not_found');
});
