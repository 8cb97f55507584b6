/** Workloads for the emulator, written briefly, and what their parts take by arithmetic. */
import { FLAG_FENCE, Opcode } from '#host/accel-layout';
import type { RingCommand } from '#host/accel-channel-ring';
import { tlpLayerGbps } from '#pcie/bandwidth';
import type { LinkProfile } from '#pcie/link-profile';
import type { Batch, FenceOf, Workload, WorkloadCall } from '#emulator/workload';

/** A kernel of `durationNs`; with a fence if asked. */
export function kernel(durationNs: number, isFenced = false): RingCommand {
  return { opcode: Opcode.NOP, durationNs, flags: isFenced ? FLAG_FENCE : 0 };
}

export function copy(
  opcode: RingCommand['opcode'],
  source: number,
  destination: number,
  bytes: number,
  flags = 0,
): RingCommand {
  return { opcode, operand0: source, operand1: destination, operand2: bytes, flags };
}

export interface BriefCall extends Partial<Omit<WorkloadCall, 'fences'>> {
  /** Commands it submits, by queue. */
  readonly submits?: Readonly<Record<number, readonly RingCommand[]>>;
  readonly delayNs?: number;
  /** Waits for all that was submitted to these queues so far. */
  readonly waits?: readonly number[];
}

/** Calls of each thread. Submissions go into the queues in the order the calls are written. */
export function workload(threads: readonly (readonly BriefCall[])[], queueCount = 1): Workload {
  const calls: WorkloadCall[] = [];
  const queues: Batch[][] = Array.from({ length: queueCount }, () => []);
  const sizes = new Array<number>(queueCount).fill(0);
  const indices = threads.map((briefs) =>
    briefs.map(({ submits = {}, delayNs = 0, waits = [], ...rest }) => {
      const call = calls.length;
      for (const [name, commands] of Object.entries(submits)) {
        const queue = Number(name);
        queues[queue]!.push({ call, delayNs, commands });
        sizes[queue] = sizes[queue]! + commands.length;
      }
      const fences: FenceOf[] = waits.map((queue) => ({ queue, command: sizes[queue]! }));
      calls.push({ gapNs: 0, ownNs: 0, after: [], ...rest, fences });
      return call;
    }),
  );
  return { calls, threads: indices, queues };
}

/**
 * What TLPs take on an idle path, ns. Bytes on the wire: headers of 12 (32-bit address, completion) or 16
 * (64-bit address) and 8 of framing.
 */
export class PathTimes {
  /** Bytes a ns of the device's link. */
  readonly rate: number;
  /** One way, beside the TLP itself. */
  readonly oneWayNs: number;

  /** Native, or with an added round trip over a network of any rate that is not limited. */
  constructor(profile: LinkProfile, addedRttNs: number) {
    this.rate = tlpLayerGbps(profile) / 8;
    // A read of 64 bytes takes the native round trip: 24 for it, 20 + 64 for its completion.
    const readBytes = 24 + 84;
    this.oneWayNs = (profile.nativeRttNs - readBytes / this.rate + addedRttNs) / 2;
  }

  bytes(count: number): number {
    return count / this.rate;
  }

  /** A store of 4 bytes below 4 GiB. */
  get doorbell(): number {
    return this.oneWayNs + this.bytes(12 + 4 + 8);
  }

  /** A read of `bytes` in requests of 128, all under way at once: completions queue for the link. */
  read(bytes: number): number {
    const requests = Math.ceil(bytes / 128);
    return 2 * this.oneWayNs + this.bytes(24 + 20 * requests + bytes);
  }

  /** A fetch of so many commands of 64 bytes. */
  fetch(commands: number): number {
    return this.read(64 * commands);
  }

  /** 8 bytes above 4 GiB, and the interrupt behind it, of 4 bytes below. */
  get fence(): number {
    return this.oneWayNs + this.bytes(16 + 8 + 8) + this.bytes(12 + 4 + 8);
  }
}
