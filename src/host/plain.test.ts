import { describe, expect, it } from 'vitest';
import { firstDifference, plainSaxpy, plainSgemm } from './plain.ts';

describe('the plain kernels', () => {
  it('multiply row-major matrices', () => {
    // (1 2 3; 4 5 6) · (7 8; 9 10; 11 12) = (58 64; 139 154)
    const c = plainSgemm(
      2,
      2,
      3,
      Float32Array.of(1, 2, 3, 4, 5, 6),
      Float32Array.of(7, 8, 9, 10, 11, 12),
    );
    expect([...c]).toEqual([58, 64, 139, 154]);
  });

  it('round each product and each sum to single precision, in order', () => {
    // 2^24 + 1 is not a float: adding 1 to 2^24 twice leaves it, adding 2 first does not.
    const big = 2 ** 24;
    expect(plainSgemm(1, 1, 3, Float32Array.of(big, 1, 1), Float32Array.of(1, 1, 1))[0]).toBe(big);
    expect(plainSgemm(1, 1, 3, Float32Array.of(1, 1, big), Float32Array.of(1, 1, 1))[0]).toBe(
      big + 2,
    );
    // (1 + 2^-23)² = 1 + 2^-22 + 2^-46: rounded to 1 + 2^-22, then minus that gives 0. A fused
    // multiply-add would give 2^-46.
    const x = 1 + 2 ** -23;
    const y = -(1 + 2 ** -22);
    expect(plainSaxpy(x, Float32Array.of(x), Float32Array.of(y))[0]).toBe(0);
  });

  it('compare by bits', () => {
    expect(firstDifference(Float32Array.of(1, 0), Float32Array.of(1, -0))).toBe(1);
    expect(firstDifference(Float32Array.of(NaN), Float32Array.of(NaN))).toBe(-1);
    expect(firstDifference(Float32Array.of(1), Float32Array.of(1, 2))).toBe(1);
  });
});
