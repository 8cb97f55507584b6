/** Random small workloads for the emulator, and what must be so once they have run. */
import { Prng } from '#base/prng';
import { FLAG_FENCE, Opcode } from '#host/accel-layout';
import type { RingCommand } from '#host/accel-channel-ring';
import type { Batch, Workload, WorkloadCall } from '#emulator/workload';

/** Device memory: sources of DtoH copies, then what HtoD copies write. Host memory likewise. */
export const SOURCE_BYTES = 64 * 1024;
export const TARGET_BYTES = 192 * 1024;

export interface RandomWorkload {
  readonly workload: Workload;
  /** Memory behind the sources as it must be in the end. */
  readonly deviceTarget: Uint8Array;
  readonly hostTarget: Uint8Array;
  /** Double words of DMA reads and writes, in bytes: copies, fetches, fences and interrupts. */
  readonly readBytes: number;
  readonly writeBytes: number;
  readonly doorbells: number;
}

/** What sources hold: bytes that tell where they are from. */
export function sourceByte(offset: number, isHost: boolean): number {
  return ((offset * 167 + (offset >> 8) * 13 + (isHost ? 31 : 97)) & 255) | 1;
}

/** `hostBase`: where host memory for copies begins. */
export function randomWorkload(seed: number, hostBase: number): RandomWorkload {
  return new Maker(new Prng(seed), hostBase).make();
}

/** What copies write, one behind the other. */
class Target {
  readonly bytes = new Uint8Array(TARGET_BYTES);
  #used = 0;

  /** A place of `bytes` that is `gap` behind the last. */
  take(bytes: number, gap: number): number {
    const at = this.#used + gap;
    this.#used = at + bytes;
    return at;
  }
}

class Maker {
  readonly #prng: Prng;
  readonly #hostBase: number;
  readonly #calls: WorkloadCall[] = [];
  readonly #threads: number[][];
  readonly #queues: Batch[][];
  readonly #sizes: number[];
  readonly #signalled: number[];
  readonly #device = new Target();
  readonly #host = new Target();
  #readBytes = 0;
  #writeBytes = 0;
  #doorbells = 0;

  constructor(prng: Prng, hostBase: number) {
    this.#prng = prng;
    this.#hostBase = hostBase;
    this.#threads = Array.from({ length: prng.between(1, 3) }, () => []);
    this.#queues = Array.from({ length: prng.between(1, 4) }, () => []);
    this.#sizes = this.#queues.map(() => 0);
    this.#signalled = this.#queues.map(() => 0);
  }

  make(): RandomWorkload {
    const prng = this.#prng;
    // Calls are made in one order over all threads, and wait for what earlier ones gave: no circle.
    const count = prng.between(1, 14);
    for (let call = 0; call < count; call++) this.#call(call);
    for (const queue of this.#queues.keys())
      this.#give(-1, queue, [{ opcode: Opcode.NOP, flags: 1 }]);
    return {
      workload: { calls: this.#calls, threads: this.#threads, queues: this.#queues },
      deviceTarget: this.#device.bytes,
      hostTarget: this.#host.bytes,
      readBytes: this.#readBytes,
      writeBytes: this.#writeBytes,
      doorbells: this.#doorbells,
    };
  }

  #call(call: number): void {
    const prng = this.#prng;
    const thread = prng.between(0, this.#threads.length - 1);
    const fences = [];
    if (prng.chance(0.8)) {
      const queue = prng.between(0, this.#queues.length - 1);
      const commands = Array.from({ length: prng.between(1, 5) }, () => this.#command(queue));
      commands.push({ opcode: Opcode.NOP, flags: FLAG_FENCE, durationNs: prng.between(0, 3000) });
      this.#give(call, queue, commands);
    }
    for (const [queue, command] of this.#sizes.entries()) {
      if (command > 0 && prng.chance(0.2)) fences.push({ queue, command });
    }
    const after = [];
    if (call > 0 && prng.chance(0.2)) {
      after.push({ call: prng.between(0, call - 1), gapNs: prng.between(0, 500) });
    }
    this.#threads[thread]!.push(call);
    this.#calls.push({ gapNs: prng.between(0, 4000), ownNs: prng.between(0, 3000), fences, after });
  }

  #command(queue: number): RingCommand {
    const prng = this.#prng;
    switch (prng.between(0, 5)) {
      case 0:
        this.#signalled[queue]! += 1;
        return {
          opcode: Opcode.EVENT_SIGNAL,
          operand0: queue,
          operand1: this.#signalled[queue]!,
        };
      case 1: {
        const other = prng.between(0, this.#queues.length - 1);
        return { opcode: Opcode.EVENT_WAIT, operand0: other, operand1: this.#signalled[other]! };
      }
      case 2:
        return { opcode: Opcode.NOP, durationNs: prng.between(0, 5000) };
      case 3:
        return this.#copy(true);
      default:
        return this.#copy(false);
    }
  }

  #copy(isUp: boolean): RingCommand {
    const bytes = this.#length();
    const from = this.#prng.between(0, SOURCE_BYTES - bytes);
    const target = isUp ? this.#host : this.#device;
    const to = target.take(bytes, this.#prng.between(0, 9));
    for (let i = 0; i < bytes; i++) target.bytes[to + i] = sourceByte(from + i, !isUp);
    const [device, host] = isUp ? [from, SOURCE_BYTES + to] : [SOURCE_BYTES + to, from];
    const address = this.#hostBase + host;
    const moved = wholeWords(address, bytes);
    if (isUp) this.#writeBytes += moved;
    else this.#readBytes += moved;
    return {
      opcode: isUp ? Opcode.COPY_DTOH : Opcode.COPY_HTOD,
      operand0: isUp ? device : address,
      operand1: isUp ? address : device,
      operand2: bytes,
    };
  }

  #length(): number {
    return this.#prng.chance(0.1) ? 0 : this.#prng.between(1, 2000);
  }

  #give(call: number, queue: number, commands: RingCommand[]): void {
    const delayNs = call < 0 ? 0 : this.#prng.between(0, 2000);
    this.#queues[queue]!.push({ call, delayNs, commands });
    this.#sizes[queue]! += commands.length;
    this.#readBytes += 64 * commands.length;
    // Each fence is 8 bytes, its interrupt 4.
    for (const { flags = 0 } of commands) if ((flags & FLAG_FENCE) !== 0) this.#writeBytes += 12;
    this.#doorbells += 1;
  }
}

/** Bytes of the double words that a range touches. */
function wholeWords(address: number, bytes: number): number {
  if (bytes === 0) return 0;
  return Math.ceil((address + bytes) / 4) * 4 - Math.floor(address / 4) * 4;
}
