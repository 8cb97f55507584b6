/**
 * Kernels on arrays of the host: staged through host memory that DMA reaches, computed by the
 * accelerator, brought back. What is too large for one command or for the memory is done in tiles.
 */
import type { RingCommand } from './accel-channel-ring.ts';
import * as layout from './accel-layout.ts';
import type { DeviceMemory } from './accel-memory.ts';
import type { AccelRing } from './accel-ring.ts';
import { type StagedPair, Staging, stagingBudget } from './accel-staging.ts';
import type { HostMemory } from './host-memory.ts';
import type { Task } from './task.ts';

export interface ComputeContext {
  readonly ring: AccelRing;
  readonly hostMemory: HostMemory;
  readonly deviceMemory: DeviceMemory;
  readonly copyChunkBytes: number;
  readonly kernelFlops: number;
  readonly stagingBytes: number;
}

export interface Tile {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** A copy as commands of at most `chunkBytes` each. */
export function copyCommands(
  opcode: layout.Opcode,
  source: number,
  destination: number,
  bytes: number,
  chunkBytes: number,
): RingCommand[] {
  const commands: RingCommand[] = [];
  for (let done = 0; done < bytes; done += chunkBytes) {
    commands.push({
      opcode,
      operand0: source + done,
      operand1: destination + done,
      operand2: Math.min(chunkBytes, bytes - done),
    });
  }
  return commands;
}

/**
 * The tile an m×n×k product is cut into: its three matrices take at most `budgetBytes`, its work is
 * at most `flops`. Never smaller than 1×1×1.
 */
export function planTile(
  m: number,
  n: number,
  k: number,
  budgetBytes: number,
  flops: number,
): Tile {
  const tile = { m, n, k };
  const isTooLarge = (): boolean =>
    4 * (tile.m * tile.k + tile.k * tile.n + tile.m * tile.n) > budgetBytes ||
    2 * tile.m * tile.n * tile.k > flops;
  while (isTooLarge() && tile.m * tile.n * tile.k > 1) {
    // Halving the longest side keeps the tile near a cube, which moves least for its work.
    if (tile.k >= tile.m && tile.k >= tile.n) tile.k = Math.ceil(tile.k / 2);
    else if (tile.m >= tile.n) tile.m = Math.ceil(tile.m / 2);
    else tile.n = Math.ceil(tile.n / 2);
  }
  return tile;
}

/** a·x + y; the arrays have one length. */
export function* saxpy(
  context: ComputeContext,
  a: number,
  x: Float32Array,
  y: Float32Array,
): Task<Float32Array> {
  const result = new Float32Array(x.length);
  if (x.length === 0) return result;
  const { ring, hostMemory, deviceMemory } = context;
  const budget = stagingBudget(hostMemory, deviceMemory, context.stagingBytes, 2);
  const count = Math.max(
    1,
    Math.min(x.length, Math.floor(budget / 8), Math.floor(context.kernelFlops / 2)),
  );
  const scalar = layout.floatBits(a);
  const staging = new Staging(hostMemory, deviceMemory);
  try {
    const stagedX = staging.take(count);
    const stagedY = staging.take(count);
    for (let first = 0; first < x.length; first += count) {
      const words = Math.min(count, x.length - first);
      stagedX.words.set(x.subarray(first, first + words));
      stagedY.words.set(y.subarray(first, first + words));
      yield* ring.run([
        ...upload(context, stagedX, words),
        ...upload(context, stagedY, words),
        {
          opcode: layout.Opcode.SAXPY,
          operand0: stagedX.device.offset,
          operand1: stagedY.device.offset,
          operand2: words,
          scalar,
        },
        ...download(context, stagedY, words),
      ]);
      result.set(stagedY.words.subarray(0, words), first);
    }
  } finally {
    ring.whenIdle(() => staging.release());
  }
  return result;
}

/** A (m×k) · B (k×n). Each element sums over k in order, however the product is cut. */
export function* sgemm(
  context: ComputeContext,
  m: number,
  n: number,
  k: number,
  a: Float32Array,
  b: Float32Array,
): Task<Float32Array> {
  const c = new Float32Array(m * n);
  if (m === 0 || n === 0 || k === 0) return c;
  const { ring, hostMemory, deviceMemory } = context;
  const budget = stagingBudget(hostMemory, deviceMemory, context.stagingBytes, 3);
  const tile = planTile(m, n, k, budget, context.kernelFlops);
  const staging = new Staging(hostMemory, deviceMemory);
  try {
    const stagedA = staging.take(tile.m * tile.k);
    const stagedB = staging.take(tile.k * tile.n);
    const stagedC = staging.take(tile.m * tile.n);
    for (let row = 0; row < m; row += tile.m) {
      const rows = Math.min(tile.m, m - row);
      for (let column = 0; column < n; column += tile.n) {
        const columns = Math.min(tile.n, n - column);
        for (let step = 0; step < k; step += tile.k) {
          const steps = Math.min(tile.k, k - step);
          copyBlock(stagedA.words, steps, 0, a, k, row * k + step, rows, steps);
          copyBlock(stagedB.words, columns, 0, b, n, step * n + column, steps, columns);
          const isLast = step + steps === k;
          yield* ring.run([
            ...upload(context, stagedA, rows * steps),
            ...upload(context, stagedB, steps * columns),
            {
              opcode: layout.Opcode.SGEMM,
              flags: step === 0 ? 0 : layout.FLAG_ACCUMULATE,
              operand0: stagedA.device.offset,
              operand1: stagedB.device.offset,
              operand2: stagedC.device.offset,
              m: rows,
              n: columns,
              k: steps,
            },
            ...(isLast ? download(context, stagedC, rows * columns) : []),
          ]);
        }
        copyBlock(c, n, row * n + column, stagedC.words, columns, 0, rows, columns);
      }
    }
  } finally {
    ring.whenIdle(() => staging.release());
  }
  return c;
}

function upload(context: ComputeContext, pair: StagedPair, words: number): RingCommand[] {
  const { host, device } = pair;
  const opcode = layout.Opcode.COPY_HTOD;
  return copyCommands(opcode, host.address, device.offset, 4 * words, context.copyChunkBytes);
}

function download(context: ComputeContext, pair: StagedPair, words: number): RingCommand[] {
  const { host, device } = pair;
  const opcode = layout.Opcode.COPY_DTOH;
  return copyCommands(opcode, device.offset, host.address, 4 * words, context.copyChunkBytes);
}

/** Copies `rows` rows of `columns` words; a stride is the words from one row to the next. */
function copyBlock(
  to: Float32Array,
  toStride: number,
  toStart: number,
  from: Float32Array,
  fromStride: number,
  fromStart: number,
  rows: number,
  columns: number,
): void {
  for (let row = 0; row < rows; row++) {
    const start = fromStart + row * fromStride;
    to.set(from.subarray(start, start + columns), toStart + row * toStride);
  }
}
