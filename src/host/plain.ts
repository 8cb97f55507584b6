/**
 * The kernels of the reference accelerator computed plainly, for checking its results bit by bit:
 * single precision, in order, every product and every sum rounded on its own (no fused multiply-add).
 */
import { assert } from '#base/assert';

const { fround } = Math;

/** C (m×n) = A (m×k) · B (k×n), row-major; each element sums over k from 0 upwards, starting at +0. */
export function plainSgemm(
  m: number,
  n: number,
  k: number,
  a: Float32Array,
  b: Float32Array,
): Float32Array {
  assert(a.length === m * k && b.length === k * n, 'the matrices have the sizes given');
  const c = new Float32Array(m * n);
  for (let row = 0; row < m; row++) {
    for (let column = 0; column < n; column++) {
      let sum = 0;
      for (let step = 0; step < k; step++) {
        const product = fround((a[row * k + step] as number) * (b[step * n + column] as number));
        sum = fround(sum + product);
      }
      c[row * n + column] = sum;
    }
  }
  return c;
}

/** y ← a·x + y, element by element, the product rounded before the sum. A new array. */
export function plainSaxpy(a: number, x: Float32Array, y: Float32Array): Float32Array {
  assert(x.length === y.length, 'x and y have one length');
  const factor = fround(a);
  return y.map((value, index) => fround(fround(factor * (x[index] as number)) + value));
}

/** The index of the first element whose bits differ, or −1. NaNs of any payload count as equal. */
export function firstDifference(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) return Math.min(a.length, b.length);
  for (let index = 0; index < a.length; index++) {
    if (!Object.is(a[index], b[index])) return index;
  }
  return -1;
}
