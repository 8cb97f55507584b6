/**
 * What a function may ask of a host (invariant 3), decided on the host's side from the shadow of its
 * configuration and from the memory the host has registered. Pure: nothing is touched, nothing sent.
 */
import { MESSAGE_ASSERT_INTA, MESSAGE_DEASSERT_INTA, ROUTE_LOCAL } from '#pcie/intx';
import { hasSafeAddress, type Tlp, TlpKind, tlpAddress } from '#pcie/tlp';
import { type ConfigShadow, readLittleEndian32 } from './config-shadow.ts';
import { Refusal } from './counters.ts';
import { type HostTable, INTERRUPT_BASE, INTERRUPT_LIMIT } from './host-table.ts';
import type { MemoryMap, MemoryRegion } from './memory-map.ts';

/** What `check` returns when it does not refuse; refusals are `Refusal` values, from 0 up. */
export const Verdict = { MEMORY: -1, INTERRUPT: -2, INTERRUPT_PIN: -3 } as const;
export type Verdict = (typeof Verdict)[keyof typeof Verdict] | Refusal;

/**
 * Test only: each leaves one check out, so that a test can show that its property finds the fault.
 * Never set outside tests.
 */
export interface ContainmentFaults {
  readonly noAddressTypeCheck?: boolean;
  readonly noConfigRefusal?: boolean;
  readonly noRequesterIdCheck?: boolean;
  readonly noBusMasterCheck?: boolean;
  readonly noAddressCheck?: boolean;
  readonly noInterruptMatch?: boolean;
  readonly noPeerCheck?: boolean;
  readonly noRangeCheck?: boolean;
  readonly noAccessCheck?: boolean;
}

export class Containment {
  /** The region of the last `check` that returned `Verdict.MEMORY`. */
  region: MemoryRegion | undefined;
  readonly #faults: Required<ContainmentFaults>;

  constructor(faults: ContainmentFaults = {}) {
    this.#faults = {
      noAddressTypeCheck: faults.noAddressTypeCheck ?? false,
      noConfigRefusal: faults.noConfigRefusal ?? false,
      noRequesterIdCheck: faults.noRequesterIdCheck ?? false,
      noBusMasterCheck: faults.noBusMasterCheck ?? false,
      noAddressCheck: faults.noAddressCheck ?? false,
      noInterruptMatch: faults.noInterruptMatch ?? false,
      noPeerCheck: faults.noPeerCheck ?? false,
      noRangeCheck: faults.noRangeCheck ?? false,
      noAccessCheck: faults.noAccessCheck ?? false,
    };
  }

  /**
   * Judges one decoded request, not a completion, from the function behind `shadow`, for which `memory`
   * is open.
   */
  check(tlp: Tlp, shadow: ConfigShadow, table: HostTable, memory: MemoryMap): Verdict {
    const { kind } = tlp;
    const faults = this.#faults;
    if (kind === TlpKind.Msg || kind === TlpKind.MsgD) {
      if (!isPinMessage(tlp) || !shadow.hasInterruptPin) return Refusal.MESSAGE;
      const isOwn = tlp.requesterId === shadow.capturedBdf || faults.noRequesterIdCheck;
      return isOwn ? Verdict.INTERRUPT_PIN : Refusal.REQUESTER_ID;
    }
    const write = kind === TlpKind.MWr32 || kind === TlpKind.MWr64;
    const read = kind === TlpKind.MRd32 || kind === TlpKind.MRd64;
    const atomic = !write && !read && isAtomic(kind);
    if (!write && !read && !atomic && !faults.noConfigRefusal) return Refusal.CONFIG_OR_IO;
    if (tlp.addressType !== 0 && !faults.noAddressTypeCheck) return Refusal.ADDRESS_TYPE;
    if (tlp.requesterId !== shadow.capturedBdf && !faults.noRequesterIdCheck) {
      return Refusal.REQUESTER_ID;
    }
    if (!shadow.busMaster && !faults.noBusMasterCheck) return Refusal.BUS_MASTER_OFF;
    if (!hasSafeAddress(tlp) && !faults.noAddressCheck) return Refusal.ADDRESS;
    if (tlp.poisoned && !read) return Refusal.POISONED;
    if (write && isDwordWrite(tlp) && this.#isInterrupt(tlp, shadow)) return Verdict.INTERRUPT;

    const address = tlpAddress(tlp);
    const last = address + 4 * tlp.lengthDw - 1;
    if (!read && address <= INTERRUPT_LIMIT && last >= INTERRUPT_BASE) return Refusal.INTERRUPT;
    // Shared memory overlaps no window, and of a function's own memory an address is not one of the bus.
    const region = memory.floor(address);
    if (region === undefined || (last > region.limit && !faults.noRangeCheck)) {
      const inWindow = table.rowOfAddress(address) >= 0 && !faults.noPeerCheck;
      return inWindow ? Refusal.PEER_TO_PEER : Refusal.UNREGISTERED;
    }
    const allowed = (write || region.readable) && (read || region.writable);
    if (!allowed && !faults.noAccessCheck) return Refusal.ACCESS;
    this.region = region;
    return Verdict.MEMORY;
  }

  #isInterrupt(tlp: Tlp, shadow: ConfigShadow): boolean {
    if (this.#faults.noInterruptMatch) {
      return tlp.addressLo >= INTERRUPT_BASE && tlp.addressLo <= INTERRUPT_LIMIT;
    }
    const data = readLittleEndian32(tlp.payload, tlp.payloadOffset);
    return shadow.isInterrupt(tlp.addressHi, tlp.addressLo, data);
  }
}

/** Assert_INTA or Deassert_INTA (2.2.8.1). */
function isPinMessage({ kind, messageCode, messageRouting }: Tlp): boolean {
  const isCode = messageCode === MESSAGE_ASSERT_INTA || messageCode === MESSAGE_DEASSERT_INTA;
  return kind === TlpKind.Msg && isCode && messageRouting === ROUTE_LOCAL;
}

/** FetchAdd, Swap and CAS, with 32- or 64-bit addresses. */
export function isAtomic(kind: TlpKind): boolean {
  return (kind & 0x5c) === 0x4c;
}

/** Bytes of one operand of an atomic operation (2.2.7, table 2-15): CAS carries two. */
export function operandBytes(tlp: Tlp): number {
  const compares = tlp.kind === TlpKind.CAS32 || tlp.kind === TlpKind.CAS64;
  return compares ? 2 * tlp.lengthDw : 4 * tlp.lengthDw;
}

/** All four bytes of one double word: the only form of a message (6.1.4). */
function isDwordWrite(tlp: Tlp): boolean {
  return tlp.lengthDw === 1 && tlp.firstBe === 0xf;
}
