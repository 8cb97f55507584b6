/**
 * Driver of the reference accelerator, written from docs/accelerator-datasheet.md alone. Every
 * operation is a task: run it with `runTask(host, clock, task)`, or `yield*` it in another task.
 */
import type { HostBuffer } from './host-memory.ts';
import type { PciFunction } from './pci-function.ts';
import type { SoftHost } from './root-complex.ts';
import type { Task } from './task.ts';

export interface AccelDriverOptions {
  /** How to learn that a fence was written. Default `msi` (with the fence checked at the deadline too). */
  readonly wait?: 'msi' | 'poll';
  /** Between two looks at a fence when polling. Default 20 µs. */
  readonly pollIntervalNs?: number;
  /** A command that takes longer ends its caller with `deadline_exceeded`. Default 10 s. */
  readonly commandTimeoutNs?: number;
  /** Commands in the ring. Default 256. */
  readonly ringEntries?: number;
}

/** A range of device memory. */
export interface DeviceBuffer {
  /** Byte offset in device memory. */
  readonly offset: number;
  readonly bytes: number;
}

/**
 * Errors of every operation: `unavailable` when the function was removed, `deadline_exceeded`,
 * `aborted` with the device's error register decoded in the message and in `details`,
 * `resource_exhausted` for no host or device memory.
 */
export class AccelDriver {
  /** Resets the accelerator, checks its identity and version, sets up its ring and interrupt. */
  static *open(
    _host: SoftHost,
    _fn: PciFunction,
    _options?: AccelDriverOptions,
  ): Task<AccelDriver> {
    throw new Error('to be written');
  }
  get memoryBytes(): number {
    throw new Error('to be written');
  }
  /** Device memory, until `freeDevice`. */
  allocDevice(_bytes: number): DeviceBuffer {
    throw new Error('to be written');
  }
  freeDevice(_buffer: DeviceBuffer): void {
    throw new Error('to be written');
  }
  /** HtoD by the copy engine, `bytes` (default all) from `from`. Big copies take several commands. */
  *upload(_from: HostBuffer, _deviceOffset: number, _bytes?: number): Task<void> {
    throw new Error('to be written');
  }
  /** DtoH by the copy engine. */
  *download(_deviceOffset: number, _into: HostBuffer, _bytes?: number): Task<void> {
    throw new Error('to be written');
  }
  /** Sets `words` 32-bit words of device memory to `value`. */
  *fill(_deviceOffset: number, _words: number, _value: number): Task<void> {
    throw new Error('to be written');
  }
  /** a·x + y through the device: uploads, computes, downloads. */
  *saxpy(_a: number, _x: Float32Array, _y: Float32Array): Task<Float32Array> {
    throw new Error('to be written');
  }
  /** A (m×k) · B (k×n) through the device: uploads, computes, downloads. */
  *sgemm(
    _m: number,
    _n: number,
    _k: number,
    _a: Float32Array,
    _b: Float32Array,
  ): Task<Float32Array> {
    throw new Error('to be written');
  }
  /** Stops the accelerator and frees all memory. Never fails because the function is gone. */
  *close(): Task<void> {
    throw new Error('to be written');
  }
}
