/**
 * The microbenchmarks of the field on the emulated accelerator: copy bandwidth, launch latency, launch
 * rate. Each figure is what one host thread sees, over whole round trips; nothing in it comes from a
 * formula of the model.
 */
import { DxpuError } from '#base/errors';
import { FLAG_FENCE, Opcode } from '#host/accel-layout';
import type { RingCommand } from '#host/accel-channel-ring';
import { type LinkProfile, linkProfile, roundTripNs } from '#pcie/link-profile';
import {
  type EmulatedDevice,
  type EmulatedSystem,
  nativeSystem,
  pooledSystem,
} from './emulated-system.ts';
import { type Bulk, CopySpace, QueueBuilder } from './queue-builder.ts';
import { runWorkload } from './run-workload.ts';
import { steadyBulk } from './steady-copies.ts';
import { singleCall, type Workload } from './workload.ts';

export type Microbench = 'bandwidth' | 'latency' | 'launch-rate';

const KIB = 1024;
const MIB = 1024 * KIB;
/** Sizes of copies, bytes. */
const COPY_SIZES: readonly number[] = [
  4 * KIB,
  16 * KIB,
  64 * KIB,
  256 * KIB,
  MIB,
  4 * MIB,
  16 * MIB,
  64 * MIB,
  256 * MIB,
];
/** Empty kernels that are queued to see how many a second there can be. */
const QUEUED = 4096;
const SPACE_BYTES = 32 * MIB;

export interface MicrobenchRow {
  /** Whole round trip of a small DMA read, ns. */
  readonly rttNs: number;
  /** The device on its own host: no proxies, no network. */
  readonly isNative: boolean;
  /** Of a copy. */
  readonly bytes?: number;
  readonly htodGbytesPerS?: number;
  readonly dtohGbytesPerS?: number;
  /** Launching an empty kernel and waiting for it, ns. */
  readonly launchAndWaitNs?: number;
  /** Empty kernels a second from a queue that is never empty. */
  readonly launchesPerS?: number;
}

/**
 * A row for each round trip, and each size for `bandwidth`. A round trip of the native one is run
 * natively. `invalid_argument` for one that is shorter.
 */
export function microbench(
  kind: Microbench,
  profile: LinkProfile,
  rttsNs: readonly number[],
  device: EmulatedDevice = {},
  sizes: readonly number[] = COPY_SIZES,
): MicrobenchRow[] {
  return rttsNs.flatMap((rttNs): MicrobenchRow[] => {
    const place = placeAt(profile, rttNs, device);
    const about = { rttNs: roundTripNs(place.profile), isNative: place.isNative };
    if (kind === 'latency') return [{ ...about, launchAndWaitNs: latencyNs(place) }];
    if (kind === 'launch-rate') return [{ ...about, launchesPerS: launchesPerS(place) }];
    const bulk = steadyBulk(place.profile, (bytes) => place.make(bytes));
    return sizes.map((bytes) => ({
      ...about,
      bytes,
      htodGbytesPerS: bytes / copyNs(place, 'htod', bytes, bulk),
      dtohGbytesPerS: bytes / copyNs(place, 'dtoh', bytes, bulk),
    }));
  });
}

interface Place {
  readonly profile: LinkProfile;
  readonly isNative: boolean;
  make(bytes: number): EmulatedSystem;
}

function placeAt(base: LinkProfile, rttNs: number, device: EmulatedDevice): Place {
  if (rttNs < base.nativeRttNs) {
    throw new DxpuError(
      'invalid_argument',
      `a round trip of ${rttNs} ns is shorter than the native one, ${base.nativeRttNs} ns`,
      { details: { field: 'rttNs', value: rttNs, least: base.nativeRttNs } },
    );
  }
  const isNative = rttNs === base.nativeRttNs;
  const { name: _name, recalled: _recalled, ...fields } = base;
  const profile = linkProfile({ ...fields, addedRttNs: rttNs - base.nativeRttNs });
  const make = isNative ? nativeSystem : pooledSystem;
  return {
    profile,
    isNative,
    make: (bytes) =>
      make({ profile, device: { channels: 1, ...device }, hostBytes: bytes, deviceBytes: bytes }),
  };
}

const KERNEL: RingCommand = { opcode: Opcode.NOP, flags: FLAG_FENCE };

function latencyNs(place: Place): number {
  const { profile } = place;
  return runWorkload(place.make(MIB), singleCall([KERNEL], 1), { profile }).spanNs;
}

/** All are launched at once, a doorbell each; counted from the first to the last as they finish. */
function launchesPerS(place: Place): number {
  const indices = Array.from({ length: QUEUED }, (_, index) => index);
  const work: Workload = {
    calls: indices.map((index) => ({
      gapNs: 0,
      ownNs: 0,
      fences: [{ queue: 0, command: index + 1 }],
      after: [],
    })),
    threads: indices.map((index) => [index]),
    queues: [indices.map((index) => ({ call: index, delayNs: 0, commands: [KERNEL] }))],
  };
  const options = { profile: place.profile, ringEntries: 4 * QUEUED };
  const { callEndNs } = runWorkload(place.make(MIB), work, options);
  const half = QUEUED / 2;
  const lastsNs = (callEndNs[QUEUED - 1] ?? 0) - (callEndNs[half - 1] ?? 0);
  return (QUEUED - half) / (lastsNs * 1e-9);
}

/** A blocking copy, from the call to its return. */
function copyNs(
  place: Place,
  direction: 'htod' | 'dtoh',
  bytes: number,
  bulk: Bulk | undefined,
): number {
  const { profile } = place;
  const system = place.make(SPACE_BYTES);
  const space = new CopySpace(system.soft.memory, SPACE_BYTES);
  const builder = new QueueBuilder(0, profile, space, bulk);
  builder[direction](0, 0, bytes, []);
  const last = builder.fenceLast();
  const work = singleCall(builder.take(), last);
  return runWorkload(system, work, { profile }).callEndNs[0] ?? Number.NaN;
}
