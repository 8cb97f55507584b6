/**
 * Driver of the reference accelerator, written from docs/accelerator-datasheet.md alone. Every
 * operation is a task: run it with `runTask(host, clock, task)`, or `yield*` it in another task.
 * Operations of several tasks on one driver may overlap; the device runs their commands in the order
 * they were given.
 */
import { assert } from '#base/assert';
import { DxpuError } from '#base/errors';
import type { RingCommand } from './accel-channel-ring.ts';
import { identify, memoryBytesOf, resetDevice, uuidOf } from './accel-identity.ts';
import * as layout from './accel-layout.ts';
import { type ComputeContext, copyCommands, saxpy, sgemm } from './accel-compute.ts';
import { type DeviceBuffer, DeviceMemory } from './accel-memory.ts';
import { AccelRing } from './accel-ring.ts';
import type { HostBuffer } from './host-memory.ts';
import type { PciFunction } from './pci-function.ts';
import type { SoftHost } from './root-complex.ts';
import { inScope, type Task } from './task.ts';

export interface AccelDriverOptions {
  /**
   * How to learn that a command finished. Default `msi`, or `poll` where the function has no MSI.
   * Either way the channel's status is looked at now and then.
   */
  readonly wait?: 'msi' | 'poll';
  /** Between two looks at the fence when polling. Default 20 µs. */
  readonly pollIntervalNs?: number;
  /** No command finished for so long: its caller gets `deadline_exceeded`. Default 10 s. */
  readonly commandTimeoutNs?: number;
  /** Entries in the command ring, a power of two from 2 to 65536. Default 256. */
  readonly ringEntries?: number;
  /** Which of the function's channels to use. Default 0. */
  readonly channel?: number;
  /** Largest copy of one command. Default 16 MiB. */
  readonly copyChunkBytes?: number;
  /** Largest kernel of one command, in floating-point operations, at most 2^30. Default 2^26. */
  readonly kernelFlops?: number;
  /** Host memory, and as much device memory, that a computation stages at once. Default 16 MiB. */
  readonly stagingBytes?: number;
}

const MIB = 2 ** 20;

/**
 * Errors of every operation: `unavailable` when the function was removed, `deadline_exceeded`,
 * `aborted` with the device's error register decoded in the message and in `details`,
 * `resource_exhausted` for no host or device memory, `cancelled` after `close`.
 */
export class AccelDriver {
  readonly fn: PciFunction;
  readonly memoryBytes: number;
  /** The function's UUID, lower-case 8-4-4-4-12. */
  readonly uuid: string;
  readonly #ring: AccelRing;
  readonly #deviceMemory: DeviceMemory;
  readonly #context: ComputeContext;
  #isOpen = true;

  private constructor(
    host: SoftHost,
    fn: PciFunction,
    ring: AccelRing,
    memoryBytes: number,
    uuid: string,
    options: Required<AccelDriverOptions>,
  ) {
    this.fn = fn;
    this.#ring = ring;
    this.memoryBytes = memoryBytes;
    this.uuid = uuid;
    this.#deviceMemory = new DeviceMemory(memoryBytes);
    const { copyChunkBytes, kernelFlops, stagingBytes } = options;
    this.#context = {
      ring,
      hostMemory: host.memory,
      deviceMemory: this.#deviceMemory,
      copyChunkBytes,
      kernelFlops,
      stagingBytes,
    };
  }

  /** Resets the accelerator, checks its identity and version, sets up a ring and the interrupt. */
  static open(
    host: SoftHost,
    fn: PciFunction,
    options: AccelDriverOptions = {},
  ): Task<AccelDriver> {
    return inScope(fn.scope, AccelDriver.#open(host, fn, withDefaults(fn, options)));
  }

  static *#open(
    host: SoftHost,
    fn: PciFunction,
    options: Required<AccelDriverOptions>,
  ): Task<AccelDriver> {
    const { base, channels } = yield* identify(host, fn);
    if (options.channel >= channels) {
      throw new DxpuError(
        'invalid_argument',
        `channel ${options.channel} does not exist: the accelerator has ${channels}`,
      );
    }
    yield* resetDevice(host, base);
    const memoryBytes = yield* memoryBytesOf(host, base);
    const uuid = yield* uuidOf(host, base);
    const ring = new AccelRing(host, base, {
      entries: options.ringEntries,
      channel: options.channel,
      interrupt: options.wait === 'msi' ? host.msiSignal(fn.virtualSlot, 0) : undefined,
      pollIntervalNs: options.pollIntervalNs,
      commandTimeoutNs: options.commandTimeoutNs,
    });
    try {
      yield* ring.start();
    } catch (error) {
      ring.dispose();
      throw error;
    }
    return new AccelDriver(host, fn, ring, memoryBytes, uuid, options);
  }

  /** Device memory, until `freeDevice`. Fails with `resource_exhausted`. */
  allocDevice(bytes: number): DeviceBuffer {
    return this.#deviceMemory.alloc(bytes);
  }

  freeDevice(buffer: DeviceBuffer): void {
    this.#deviceMemory.free(buffer);
  }

  /** HtoD by the copy engine: the first `bytes` (default all) of `from`. */
  upload(from: HostBuffer, deviceOffset: number, bytes: number = from.bytes.length): Task<void> {
    return this.run(this.#copies(layout.Opcode.COPY_HTOD, from.address, deviceOffset, bytes));
  }

  /** DtoH by the copy engine: into the first `bytes` (default all) of `into`. */
  download(deviceOffset: number, into: HostBuffer, bytes: number = into.bytes.length): Task<void> {
    return this.run(this.#copies(layout.Opcode.COPY_DTOH, deviceOffset, into.address, bytes));
  }

  /** Sets `words` 32-bit words of device memory to `value`. */
  fill(deviceOffset: number, words: number, value: number): Task<void> {
    const opcode = layout.Opcode.FILL;
    const scalar = value >>> 0;
    return this.run([{ opcode, operand1: deviceOffset, operand2: words, scalar }]);
  }

  /** Does nothing for `durationNs` of the device's time: 0 to 2^32 − 1. */
  busy(durationNs: number): Task<void> {
    return this.run([{ opcode: layout.Opcode.NOP, durationNs }]);
  }

  /** Runs commands as they are, in order, and waits for the last. */
  run(commands: readonly RingCommand[]): Task<void> {
    return inScope(this.fn.scope, this.#ring.run(commands));
  }

  /** a·x + y through the device: uploads, computes, downloads. `a` counts as single precision. */
  saxpy(a: number, x: Float32Array, y: Float32Array): Task<Float32Array> {
    assert(x.length === y.length, 'x and y have one length');
    return inScope(this.fn.scope, saxpy(this.#context, a, x, y));
  }

  /**
   * A (m×k) · B (k×n), row-major, through the device: uploads, computes, downloads. What does not fit
   * one command or the staging memory is done in tiles, with the same result bit by bit: each element
   * still sums over k in order.
   */
  sgemm(m: number, n: number, k: number, a: Float32Array, b: Float32Array): Task<Float32Array> {
    assert(a.length === m * k && b.length === k * n, 'the matrices have the sizes given');
    return inScope(this.fn.scope, sgemm(this.#context, m, n, k, a, b));
  }

  /** Stops the accelerator and frees all memory. Does not fail because the function is gone. */
  *close(): Task<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const error = new DxpuError('cancelled', 'the accelerator was closed');
    try {
      yield* inScope(this.fn.scope, this.#ring.stop(error));
    } catch (failure) {
      if (failure !== this.fn.scope.error) throw failure;
    } finally {
      this.#ring.dispose();
    }
  }

  #copies(
    opcode: layout.Opcode,
    source: number,
    destination: number,
    bytes: number,
  ): RingCommand[] {
    return copyCommands(opcode, source, destination, bytes, this.#context.copyChunkBytes);
  }
}

function withDefaults(fn: PciFunction, options: AccelDriverOptions): Required<AccelDriverOptions> {
  const merged = {
    wait: options.wait ?? 'msi',
    pollIntervalNs: options.pollIntervalNs ?? 20e3,
    commandTimeoutNs: options.commandTimeoutNs ?? 10e9,
    ringEntries: options.ringEntries ?? 256,
    channel: options.channel ?? 0,
    copyChunkBytes: options.copyChunkBytes ?? 16 * MIB,
    kernelFlops: options.kernelFlops ?? 2 ** 26,
    stagingBytes: options.stagingBytes ?? 16 * MIB,
  };
  const { ringEntries: entries } = merged;
  if (
    !Number.isInteger(Math.log2(entries)) ||
    entries < layout.MIN_RING_ENTRIES ||
    entries > layout.MAX_RING_ENTRIES
  ) {
    throw new DxpuError(
      'invalid_argument',
      `ringEntries must be a power of two from ${layout.MIN_RING_ENTRIES} to ` +
        `${layout.MAX_RING_ENTRIES}, not ${entries}`,
    );
  }
  merged.kernelFlops = Math.min(merged.kernelFlops, layout.MAX_KERNEL_FLOPS);
  return fn.msi === undefined ? { ...merged, wait: 'poll' } : merged;
}
