/**
 * The accelerator's kernels, on fp32 in device memory. Every product and every sum is rounded to
 * fp32 by itself (no fused multiply-add), so that any IEEE 754 machine computing in the same order
 * gets the same bits. `Math.fround` of a double product or sum of two fp32 values is that rounding:
 * a double has more than 2 × 24 + 2 bits of significand, so rounding twice changes nothing.
 */
import { endianness } from 'node:os';
import { assert } from '#base/assert';
import { type AccelCommand, bitsFloat, FLAG_ACCUMULATE, Opcode } from './accel-command.ts';

/** Typed views of one device memory. */
export class KernelMemory {
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
  readonly floats: Float32Array;

  constructor(bytes: Uint8Array) {
    // Device memory is little-endian; typed arrays have the machine's order.
    assert(endianness() === 'LE', 'the accelerator model needs a little-endian machine');
    assert(bytes.byteOffset % 4 === 0 && bytes.length % 4 === 0, 'device memory must be in words');
    this.bytes = bytes;
    this.words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    this.floats = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  }
}

/**
 * Does what a checked command does at once, in device memory alone; nothing for those that do something
 * else. Returns how many floating-point operations that took.
 */
export function runKernel(memory: KernelMemory, command: Readonly<AccelCommand>): number {
  const { operand0, operand1, operand2, m, n, k } = command;
  switch (command.opcode) {
    case Opcode.COPY_DTOD:
      memory.bytes.copyWithin(operand1, operand0, operand0 + operand2);
      return 0;
    case Opcode.FILL:
      fill(memory, operand1 / 4, operand2, command.scalar);
      return 0;
    case Opcode.SAXPY:
      saxpy(memory, operand0 / 4, operand1 / 4, operand2, bitsFloat(command.scalar));
      return 2 * operand2;
    case Opcode.SGEMM: {
      const accumulate = (command.flags & FLAG_ACCUMULATE) !== 0;
      sgemm(memory, operand0 / 4, operand1 / 4, operand2 / 4, m, n, k, accumulate);
      return 2 * m * n * k;
    }
    default:
      return 0;
  }
}

// Word indices, not byte addresses, go into the kernels.

/** Stores `pattern` in `count` words. */
function fill(memory: KernelMemory, destination: number, count: number, pattern: number): void {
  memory.words.fill(pattern, destination, destination + count);
}

/** y[i] ← alpha × x[i] + y[i] for i in ascending order; x and y may be the same range. */
function saxpy(memory: KernelMemory, x: number, y: number, count: number, alpha: number): void {
  const floats = memory.floats;
  for (let i = 0; i < count; i++) {
    const product = Math.fround(alpha * (floats[x + i] as number));
    floats[y + i] = product + (floats[y + i] as number);
  }
}

/**
 * C ← A × B, or C ← C + A × B when `accumulate`; row-major, A m×k, B k×n, C m×n. Each element of C
 * is a running fp32 sum over ascending k. C must not overlap A or B.
 */
function sgemm(
  memory: KernelMemory,
  a: number,
  b: number,
  c: number,
  m: number,
  n: number,
  k: number,
  accumulate: boolean,
): void {
  if (n === 0) return;
  const floats = memory.floats;
  for (let i = 0; i < m; i++) {
    const row = c + i * n;
    if (!accumulate) floats.fill(0, row, row + n);
    // k outside, columns inside: each sum still sees its products in ascending k, and B is walked
    // along its rows. The running sums live in C itself, which rounds them.
    for (let step = 0; step < k; step++) {
      const left = floats[a + i * k + step] as number;
      const rowB = b + step * n;
      for (let j = 0; j < n; j++) {
        const product = Math.fround(left * (floats[rowB + j] as number));
        floats[row + j] = (floats[row + j] as number) + product;
      }
    }
  }
}
