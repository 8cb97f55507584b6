/**
 * Host software for `ProbeDevice`: runs in the scope of the function, does its share of work, and
 * checks at every step what the invariants promise to a tenant.
 */
import type { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import { AccessStatus } from '#host/cpu-access';
import type { HostBuffer } from '#host/host-memory';
import { memoryRead, memoryWrite, mmioWrite32 } from '#host/host-operations';
import type { PciFunction } from '#host/pci-function';
import type { SoftHost } from '#host/root-complex';
import { currentTime, sleep, type Task, waitUntil } from '#host/task';
import { type FaultOracle, Invariant } from './oracle.ts';
import {
  fillRecord,
  patternByte,
  PROBE_MEMORY_BYTES,
  ProbeRegister,
  RECORD_BYTES,
  RING_RECORDS,
} from './probe-device.ts';

/** What is left to do for a binding, over all its generations. */
export interface Work {
  left: number;
}

export interface TenantContext {
  readonly name: string;
  readonly oracle: FaultOracle;
  readonly soft: SoftHost;
  readonly prng: Prng;
  readonly generation: number;
  readonly work: Work;
  /** Whether to go on although the work is done. */
  isWanted(): boolean;
  /** Memory a gone function must never write again: filled, and looked at from now on. */
  retire(buffer: HostBuffer): void;
}

/** Nothing at all has been wrong for this long: then what should have happened must have. */
export const PATIENCE_NS = 10e9;
const TIMEOUT_NS = 4e9;
const MEMORY_BAR = 2;

/** An access was answered UR: the link must go down, and this task with it. */
class Refused extends Error {}

interface Loaded {
  readonly value: number;
  readonly status: AccessStatus;
}

export class ProbeDriver {
  readonly #context: TenantContext;
  readonly #fn: PciFunction;
  readonly #token: number;
  readonly #registers: number;
  readonly #memory: number;
  readonly #ring: HostBuffer;
  readonly #expected = new Uint8Array(RECORD_BYTES);
  #posted = 0;
  #records = 0;
  #reads = 0;

  constructor(context: TenantContext, fn: PciFunction) {
    this.#context = context;
    this.#fn = fn;
    this.#token = (context.generation % 0xfffe) + 1;
    this.#registers = fn.bars.find((bar) => bar.index === 0)?.address ?? 0;
    this.#memory = fn.bars.find((bar) => bar.index === MEMORY_BAR)?.address ?? 0;
    this.#ring = context.soft.memory.alloc(RING_RECORDS * RECORD_BYTES);
    fn.scope.ended.listen(() => context.retire(this.#ring));
  }

  *run(): Task<void> {
    const { soft, work } = this.#context;
    const signal = soft.msiSignal(this.#fn.virtualSlot, 0);
    const deaf = signal.listen(() => this.#interrupted());
    try {
      yield* this.#setUp();
      while (work.left > 0 || this.#context.isWanted()) {
        yield* this.#operation();
        work.left--;
      }
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      yield* this.#waitForTheEnd();
    } finally {
      deaf();
    }
  }

  *#setUp(): Task<void> {
    const { soft, prng, oracle } = this.#context;
    const memory = new Uint8Array(PROBE_MEMORY_BYTES);
    if ((yield* this.#check(yield* memoryRead(soft, this.#memory, memory))) === true) {
      const used = memory.findIndex((byte) => byte !== 0);
      if (used >= 0) {
        oracle.fail(Invariant.FENCED, `${this.#context.name}: a former tenant's byte at ${used}`);
      }
    }
    const own = Uint8Array.from({ length: 700 }, () => 1 + prng.below(255));
    yield* memoryWrite(soft, this.#memory + prng.below(1000), own);
    const pattern = soft.memory.alloc(3000 + prng.below(3000));
    for (let n = 0; n < pattern.bytes.length; n++) pattern.bytes[n] = patternByte(this.#token, n);
    this.#fn.scope.ended.listen(() => soft.memory.free(pattern));
    yield* this.#write(ProbeRegister.TOKEN, this.#token);
    yield* this.#write(ProbeRegister.RING_LO, this.#ring.address % 0x1_0000_0000);
    yield* this.#write(ProbeRegister.RING_HI, Math.floor(this.#ring.address / 0x1_0000_0000));
    yield* this.#write(ProbeRegister.PATTERN_LO, pattern.address % 0x1_0000_0000);
    yield* this.#write(ProbeRegister.PATTERN_HI, Math.floor(pattern.address / 0x1_0000_0000));
    yield* this.#write(ProbeRegister.PATTERN_BYTES, pattern.bytes.length);
  }

  *#operation(): Task<void> {
    const { prng } = this.#context;
    switch (prng.below(8)) {
      case 0:
        yield* this.#post(prng.between(1, 16));
        break;
      case 1:
        yield* this.#post(prng.between(1, 8));
        yield* this.#readBack();
        break;
      case 2:
        yield* this.#takeRecords(prng.between(1, 12));
        break;
      case 3:
        yield* this.#readPatterns(prng.between(1, 5));
        break;
      case 4:
        yield* this.#useMemory();
        break;
      case 5:
        yield* this.#flood(prng.below(5));
        break;
      default:
        // Bursts of work, and long pauses between them.
        yield* sleep(prng.chance(0.8) ? 500e6 * prng.float() : 2e6 * prng.float());
    }
  }

  *#post(count: number): Task<void> {
    for (let n = 0; n < count; n++) {
      this.#posted = (this.#posted + 1) & 0xffff;
      yield* this.#write(ProbeRegister.COUNTER, this.#token * 0x1_0000 + this.#posted);
    }
  }

  /** More than frames, windows and buffers hold; not every time. */
  *#flood(draw: number): Task<void> {
    const { prng } = this.#context;
    if (draw < 2) yield* this.#takeRecords(prng.between(40, 150));
    else if (draw < 3) yield* this.#readPatterns(prng.between(6, 16));
  }

  /** A read comes behind every write before it. */
  *#readBack(): Task<void> {
    const count = yield* this.#read(ProbeRegister.COUNTER);
    if (count === undefined || count === this.#posted) return;
    this.#fail(Invariant.EXACT, `the device has counted ${count} posts, not ${this.#posted}`);
  }

  *#takeRecords(count: number): Task<void> {
    const wanted = this.#records + count;
    yield* this.#write(ProbeRegister.WRITE_RECORDS, count);
    yield* this.#waitFor(() => this.#records >= wanted, 'records and their interrupts');
  }

  *#readPatterns(count: number): Task<void> {
    this.#reads += count;
    yield* this.#write(ProbeRegister.READ_PATTERNS, count);
    const startedNs = yield* currentTime();
    for (;;) {
      const done = yield* this.#read(ProbeRegister.READS_DONE);
      if (done === this.#reads) break;
      if (this.#context.oracle.calmNs(startedNs) > PATIENCE_NS) {
        this.#fail(Invariant.PROGRESS, `DMA reads: ${done} of ${this.#reads} have ended`);
        break;
      }
      yield* sleep(2e6);
    }
    const failed = yield* this.#read(ProbeRegister.READS_FAILED);
    // The device was told UR: this generation has ended at one of the two ends.
    if (failed !== undefined && failed > 0) throw new Refused();
  }

  *#useMemory(): Task<void> {
    const { soft, prng } = this.#context;
    const written = Uint8Array.from({ length: prng.between(1, 700) }, () => prng.below(256));
    const address = this.#memory + prng.below(PROBE_MEMORY_BYTES - written.length);
    yield* memoryWrite(soft, address, written);
    const back = new Uint8Array(written.length);
    if (!(yield* this.#check(yield* memoryRead(soft, address, back)))) return;
    const wrong = back.findIndex((byte, n) => byte !== written[n]);
    if (wrong >= 0) this.#fail(Invariant.EXACT, `device memory reads otherwise at byte ${wrong}`);
  }

  /** Each interrupt has its record before it, and the records come one by one. */
  #interrupted(): void {
    const next = this.#records + 1;
    const place = ((next - 1) % RING_RECORDS) * RECORD_BYTES;
    fillRecord(this.#expected, this.#token, next);
    const wrong = this.#expected.findIndex((byte, n) => byte !== this.#ring.bytes[place + n]);
    if (wrong >= 0) this.#fail(Invariant.PROGRESS, `interrupt ${next} came without its record`);
    this.#records = next;
    this.#context.oracle.counts.interrupts++;
  }

  *#write(register: number, value: number): Task<void> {
    yield* mmioWrite32(this.#context.soft, this.#registers + register, value);
  }

  /** `undefined` when it timed out, and something excuses that. */
  *#read(register: number): Task<number | undefined> {
    const { soft } = this.#context;
    const address = this.#registers + register;
    const loaded = (yield {
      start(now, _runner, finish) {
        soft.readMmio32(now, address, (at, value, status) => finish(at, { value, status }));
        return undefined;
      },
    }) as Loaded;
    return (yield* this.#check(loaded.status)) ? loaded.value : undefined;
  }

  /** Whether an access went well. */
  *#check(status: AccessStatus): Task<boolean> {
    const { oracle } = this.#context;
    oracle.counts.cpuReads++;
    if (status === AccessStatus.OK) return true;
    if (status !== AccessStatus.TIMEOUT) throw new Refused();
    const now = yield* currentTime();
    if (oracle.calmNs(now - TIMEOUT_NS) >= TIMEOUT_NS) {
      this.#fail(Invariant.PROGRESS, 'a CPU read timed out with nothing wrong');
    }
    return false;
  }

  *#waitFor(condition: () => boolean, what: string): Task<void> {
    const { soft, oracle } = this.#context;
    const startedNs: Nanos = yield* currentTime();
    const signal = soft.msiSignal(this.#fn.virtualSlot, 0);
    while (!(yield* waitUntil(condition, { signal, withinNs: 1e9 }))) {
      // The device says why, if it was cut off from this host.
      yield* this.#read(ProbeRegister.TOKEN);
      if (oracle.calmNs(startedNs) < PATIENCE_NS) continue;
      this.#fail(Invariant.PROGRESS, `${what} do not come`);
      return;
    }
  }

  *#waitForTheEnd(): Task<void> {
    const startedNs = yield* currentTime();
    for (;;) {
      yield* sleep(200e6);
      if (this.#context.oracle.calmNs(startedNs) < PATIENCE_NS) continue;
      this.#fail(Invariant.LOUD, 'accesses are refused, but the link stays up');
      return;
    }
  }

  #fail(invariant: Invariant, message: string): void {
    this.#context.oracle.fail(invariant, `${this.#context.name}: ${message}`);
  }
}
