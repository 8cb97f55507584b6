/**
 * Memory of a host that must stay as it is, and where it lies. Looked at now and then: any change is a
 * write that should have been refused.
 */
import type { VirtualHost } from '#emulator/virtual-host';
import type { HostBuffer, HostMemoryRegion } from '#host/host-memory';
import { msiDataOf } from '#host/msi-vectors';
import type { HostTargets } from './attacks.ts';
import { type FaultOracle, Invariant } from './oracle.ts';

const PAGE = 4096;
const FOUR_GIB = 0x1_0000_0000;

/** Below and above 4 GiB, so that both address forms occur. */
export const MEMORY_REGIONS: readonly HostMemoryRegion[] = [
  { base: 0x10_0000, sizeBytes: 8 * PAGE },
  { base: 4 * FOUR_GIB, sizeBytes: 128 * PAGE },
];
const READ_ONLY = 0x20_0000;
const WRITE_ONLY = 5 * FOUR_GIB;
const LENT = 0x30_0000;
/** Between the others. */
const HOLE = 6 * FOUR_GIB;

const CANARY_BYTE = 0xc5;
const UNTOUCHED = new Uint8Array(PAGE).fill(CANARY_BYTE);

interface Canary {
  readonly what: string;
  readonly invariant: Invariant;
  readonly bytes: Uint8Array;
}

export class HostCanaries {
  readonly #name: string;
  readonly #host: VirtualHost;
  readonly #oracle: FaultOracle;
  readonly #all: Canary[] = [];
  readonly #forbidden: HostBuffer;
  readonly #allowed: HostBuffer;
  readonly #lent = new Uint8Array(PAGE);
  #isLent = true;

  constructor(name: string, host: VirtualHost, oracle: FaultOracle) {
    this.#name = name;
    this.#host = host;
    this.#oracle = oracle;
    const { memory } = host.soft;
    this.#forbidden = memory.alloc(256);
    this.#allowed = memory.alloc(256);
    this.#add('memory no request may reach', Invariant.CONTAINED, this.#forbidden.bytes);
    const readOnly = new Uint8Array(PAGE);
    host.proxy.registerMemory(READ_ONLY, readOnly, { read: true, write: false });
    this.#add('read-only memory', Invariant.CONTAINED, readOnly);
    const writeOnly = new Uint8Array(PAGE);
    host.proxy.registerMemory(WRITE_ONLY, writeOnly, { read: false, write: true });
    this.#add('write-only memory', Invariant.CONTAINED, writeOnly);
    host.proxy.registerMemory(LENT, this.#lent, { read: true, write: true });
  }

  /** Takes the lent memory back: nothing may touch it from now on. */
  takeBack(): void {
    if (!this.#isLent) return;
    this.#isLent = false;
    this.#host.proxy.unregisterMemory(LENT);
    this.#add('memory taken back', Invariant.CONTAINED, this.#lent);
  }

  /** Memory of a function that is gone. */
  retire(buffer: HostBuffer): void {
    this.#add('memory of a former function', Invariant.FENCED, buffer.bytes);
  }

  check(): void {
    for (const { what, invariant, bytes } of this.#all) {
      if (Buffer.compare(bytes, UNTOUCHED.subarray(0, bytes.length)) === 0) continue;
      const at = bytes.findIndex((byte) => byte !== CANARY_BYTE);
      this.#oracle.fail(invariant, `${this.#name}: ${what} was written, at byte ${at}`);
      return;
    }
  }

  /** What a function in `virtualSlot` has before its eyes. */
  targets(virtualSlot: number, mayUseLent: boolean): HostTargets {
    const { ports } = this.#host.soft;
    const other = (virtualSlot + 1) % ports.length;
    const used = this.#host.proxy.rows.filter((row) => row.used);
    const windows = used.flatMap((row) => [row.nonPrefetchable.base, row.prefetchable.base]);
    return {
      canary: this.#forbidden.address,
      readOnly: READ_ONLY,
      writeOnly: WRITE_ONLY,
      // What is taken back is tried like anything else: the canary tells whether it was reached.
      allowed: mayUseLent ? LENT : this.#allowed.address,
      lent: LENT,
      hole: HOLE,
      // A host whose slots are all taken away has none; the function is not its own any more then.
      windows: windows.length > 0 ? windows : [HOLE],
      otherBdf: ((ports[other]?.options.secondaryBus ?? 0) << 8) | 1,
      otherData: msiDataOf(other, 0) + (other === virtualSlot ? 1 : 0),
    };
  }

  #add(what: string, invariant: Invariant, bytes: Uint8Array): void {
    bytes.fill(CANARY_BYTE);
    this.#all.push({ what, invariant, bytes });
  }
}
