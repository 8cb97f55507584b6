/**
 * A function made to be judged by: it counts what the host posts to it, writes records stamped with a
 * token of its tenancy and an MSI behind each, and reads and checks patterns of host memory.
 *
 * Registers of BAR 0, 32 bits each. The token is 0 after reset, and the host writes it once. Posted
 * values carry the token in their upper half; the lower half counts from 1 without a gap, and so do
 * the records, whose first word is the token and second the count. A read of COUNTER returns the last
 * count. BAR 2 is plain memory.
 */
import { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import type { Device, DeviceIdentity, DevicePort } from '#pcie/device';
import { Endpoint } from '#pcie/endpoint';
import type { RegisterBar } from '#pcie/endpoint-bar';
import { type DmaClient, DmaStatus } from '#pcie/endpoint-transfer';
import type { Tlp } from '#pcie/tlp';
import { type FaultOracle, Invariant } from './oracle.ts';

export const PROBE_VENDOR_ID = 0x1ddf;
export const PROBE_DEVICE_ID = 0x0b0e;

export const ProbeRegister = {
  TOKEN: 0x00,
  COUNTER: 0x04,
  RING_LO: 0x08,
  RING_HI: 0x0c,
  PATTERN_LO: 0x10,
  PATTERN_HI: 0x14,
  PATTERN_BYTES: 0x18,
  /** Writes that many records, with an interrupt behind each. */
  WRITE_RECORDS: 0x1c,
  /** Reads that many pieces of the pattern. */
  READ_PATTERNS: 0x20,
  READS_DONE: 0x24,
  READS_FAILED: 0x28,
} as const;

export const RING_RECORDS = 8;
export const RECORD_BYTES = 64;
export const PROBE_MEMORY_BYTES = 4096;
const BAR0_BYTES = 4096;
const TIMEOUT_NS = 4e9;
const WRITES = 0;
const READS = 1;

/** Byte `offset` of the pattern of a token. */
export function patternByte(token: number, offset: number): number {
  return (token * 31 + offset * 7 + (offset >>> 8) * 13) & 0xff;
}

/** Fills in record `count` of a token. */
export function fillRecord(record: Uint8Array, token: number, count: number): void {
  const view = new DataView(record.buffer, record.byteOffset, RECORD_BYTES);
  view.setUint32(0, token, true);
  view.setUint32(4, count, true);
  for (let offset = 8; offset < RECORD_BYTES; offset++) {
    record[offset] = patternByte(token, count * RECORD_BYTES + offset);
  }
}

interface PatternRead {
  readonly atNs: number;
  readonly offset: number;
  readonly bytes: Uint8Array;
}

export class ProbeDevice implements Device, RegisterBar, DmaClient {
  readonly kind = 'registers';
  readonly identity: DeviceIdentity;
  readonly endpoint: Endpoint;
  readonly #oracle: FaultOracle;
  readonly #name: string;
  /** Where pieces of the pattern lie. `Math.random` when the test plants that. */
  readonly #draw: (bound: number) => number;
  readonly #memory = new Uint8Array(PROBE_MEMORY_BYTES);
  readonly #reads = new Map<number, PatternRead>();
  #nextRead = 0;
  #token = 0;
  #counted = 0;
  #recorded = 0;
  #ringLo = 0;
  #ringHi = 0;
  #patternLo = 0;
  #patternHi = 0;
  #patternBytes = 0;
  #readsDone = 0;
  #readsFailed = 0;

  constructor(name: string, oracle: FaultOracle, seed: number, unseeded = false) {
    this.#name = name;
    this.#oracle = oracle;
    const prng = new Prng(seed);
    this.#draw = unseeded
      ? (bound) => Math.floor(Math.random() * bound)
      : (bound) => prng.below(bound);
    this.identity = {
      kind: 'probe',
      model: 'probe',
      memoryBytes: PROBE_MEMORY_BYTES,
      uuid: `00000000-0000-4000-8000-${seed.toString(16).padStart(12, '0')}`,
    };
    this.endpoint = new Endpoint({
      identity: {
        vendorId: PROBE_VENDOR_ID,
        deviceId: PROBE_DEVICE_ID,
        revisionId: 1,
        classCode: 0xff0000,
      },
      serial: BigInt(seed),
      bars: [
        { index: 0, is64Bit: false, prefetchable: false, sizeBytes: BAR0_BYTES, target: this },
        {
          index: 2,
          is64Bit: true,
          prefetchable: true,
          sizeBytes: PROBE_MEMORY_BYTES,
          target: { kind: 'memory', memory: this.#memory },
        },
      ],
      dmaChannels: 2,
      tags: 32,
    });
  }

  plug(port: DevicePort): void {
    this.endpoint.plug(port);
  }

  receive(now: Nanos, tlp: Tlp): void {
    this.endpoint.receive(now, tlp);
  }

  resume(now: Nanos): void {
    this.endpoint.resume(now);
  }

  reset(_now: Nanos): void {
    this.endpoint.reset();
    this.#reads.clear();
    this.#token = 0;
    this.#counted = 0;
    this.#recorded = 0;
    this.#ringLo = this.#ringHi = 0;
    this.#patternLo = this.#patternHi = this.#patternBytes = 0;
    this.#readsDone = this.#readsFailed = 0;
  }

  scrub(_now: Nanos): void {
    this.#memory.fill(0);
  }

  nextDeadlineNs(): number {
    return this.endpoint.nextDeadlineNs();
  }

  tick(now: Nanos): void {
    this.endpoint.tick(now);
  }

  readRegister(_now: Nanos, offset: number): number {
    switch (offset) {
      case ProbeRegister.TOKEN:
        return this.#token;
      case ProbeRegister.COUNTER:
        return this.#counted;
      case ProbeRegister.READS_DONE:
        return this.#readsDone;
      case ProbeRegister.READS_FAILED:
        return this.#readsFailed;
      default:
        return 0;
    }
  }

  writeRegister(now: Nanos, offset: number, value: number): void {
    switch (offset) {
      case ProbeRegister.TOKEN:
        if (this.#token !== 0) this.#fail(Invariant.FENCED, 'a second tenant without a reset');
        this.#token = value;
        break;
      case ProbeRegister.COUNTER:
        this.#count(value);
        break;
      case ProbeRegister.RING_LO:
        this.#ringLo = value;
        break;
      case ProbeRegister.RING_HI:
        this.#ringHi = value;
        break;
      case ProbeRegister.PATTERN_LO:
        this.#patternLo = value;
        break;
      case ProbeRegister.PATTERN_HI:
        this.#patternHi = value;
        break;
      case ProbeRegister.PATTERN_BYTES:
        this.#patternBytes = value;
        break;
      case ProbeRegister.WRITE_RECORDS:
        for (let n = 0; n < value; n++) this.#writeRecord(now);
        break;
      case ProbeRegister.READ_PATTERNS:
        for (let n = 0; n < value; n++) this.#readPattern(now);
        break;
      default:
        this.#fail(Invariant.CONTAINED, `a write to register 0x${offset.toString(16)}`);
    }
  }

  dmaDone(_now: Nanos, cookie: number, status: DmaStatus): void {
    const read = this.#reads.get(cookie);
    if (read === undefined) return;
    this.#reads.delete(cookie);
    this.#readsDone++;
    const { atNs, offset, bytes } = read;
    if (status === DmaStatus.TIMEOUT) {
      // Only a network that was broken in the meantime excuses that.
      if (this.#oracle.calmNs(atNs) >= TIMEOUT_NS) {
        this.#fail(Invariant.PROGRESS, 'a DMA read timed out with nothing wrong');
      }
      return;
    }
    if (status !== DmaStatus.OK) {
      this.#readsFailed++;
      return;
    }
    const wrong = bytes.findIndex((byte, n) => byte !== patternByte(this.#token, offset + n));
    if (wrong >= 0) this.#fail(Invariant.EXACT, `DMA read wrong bytes at ${offset + wrong}`);
  }

  #count(value: number): void {
    if (value >>> 16 !== this.#token) {
      this.#fail(Invariant.FENCED, `a post of token ${value >>> 16} in tenancy ${this.#token}`);
      return;
    }
    const expected = (this.#counted + 1) & 0xffff;
    if ((value & 0xffff) !== expected) {
      this.#fail(Invariant.EXACT, `post ${value & 0xffff} came where ${expected} was due`);
    }
    this.#counted = expected;
  }

  #writeRecord(now: Nanos): void {
    const record = new Uint8Array(RECORD_BYTES);
    this.#recorded++;
    fillRecord(record, this.#token, this.#recorded);
    const place = ((this.#recorded - 1) % RING_RECORDS) * RECORD_BYTES;
    const address = this.#ringHi * 0x1_0000_0000 + this.#ringLo + place;
    this.endpoint.dma.write(now, WRITES, address, record, 0, RECORD_BYTES, undefined, 0);
    this.endpoint.interrupt(now, WRITES, 0, undefined, 0);
  }

  #readPattern(now: Nanos): void {
    const offset = this.#draw(this.#patternBytes - 1);
    const bytes = new Uint8Array(1 + this.#draw(this.#patternBytes - offset));
    const cookie = ++this.#nextRead;
    this.#reads.set(cookie, { atNs: now, offset, bytes });
    const address = this.#patternHi * 0x1_0000_0000 + this.#patternLo + offset;
    this.endpoint.dma.read(now, READS, address, bytes, 0, bytes.length, this, cookie);
  }

  #fail(invariant: Invariant, message: string): void {
    this.#oracle.fail(invariant, `${this.#name}: ${message}`);
  }
}
