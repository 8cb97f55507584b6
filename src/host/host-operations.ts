/** The accesses of a soft host as things a task can wait for. */
import type { Nanos } from '#base/units';
import type { AccessStatus } from './cpu-access.ts';
import type { SoftHost } from './root-complex.ts';
import type { Task } from './task.ts';

/** A config register, all ones when nobody answers, 0xffff0001 for a vendor ID not ready yet. */
export function* configRead(host: SoftHost, bdf: number, register: number): Task<number> {
  return (yield {
    start(now, _runner, finish) {
      host.configRead(now, bdf, register, finish);
      return undefined;
    },
  }) as number;
}

/** Writes whole DWs unless `byteEnables` says otherwise. */
export function* configWrite(
  host: SoftHost,
  bdf: number,
  register: number,
  value: number,
  byteEnables = 15,
): Task<AccessStatus> {
  return (yield {
    start(now, _runner, finish) {
      host.configWrite(now, bdf, register, value, byteEnables, finish);
      return undefined;
    },
  }) as AccessStatus;
}

/** A 4-byte load. */
export function* mmioRead32(host: SoftHost, address: number): Task<number> {
  return (yield {
    start(now, _runner, finish) {
      host.readMmio32(now, address, finish);
      return undefined;
    },
  }) as number;
}

/** A 4-byte store; goes on at once, for it is posted. */
export function* mmioWrite32(host: SoftHost, address: number, value: number): Task<void> {
  yield {
    start(now, _runner, finish) {
      host.writeMmio32(now, address, value);
      finish(now, undefined);
      return undefined;
    },
  };
}

/** Loads `into.length` bytes. What could not be read is all ones, and the status says why. */
export function* memoryRead(host: SoftHost, address: number, into: Uint8Array): Task<AccessStatus> {
  return (yield {
    start(now: Nanos, _runner, finish) {
      host.readMemory(now, address, into, finish);
      return undefined;
    },
  }) as AccessStatus;
}

/** Stores `from`; goes on once all was handed to the fabric. */
export function* memoryWrite(
  host: SoftHost,
  address: number,
  from: Uint8Array,
): Task<AccessStatus> {
  return (yield {
    start(now: Nanos, _runner, finish) {
      host.writeMemory(now, address, from, finish);
      return undefined;
    },
  }) as AccessStatus;
}
