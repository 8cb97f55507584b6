/**
 * What a hostile function tries, each as one TLP, with the reason for which the host proxy must refuse
 * it (invariant 3). `undefined` for what is allowed, which shows that the refusals are not blind.
 */
import type { Prng } from '#base/prng';
import type { RefusalName } from '#fabric/counters';
import { MSI_ADDRESS } from '#host/msi-vectors';
import { CompletionStatus, resetTlp, setTlpAddress, type Tlp, TlpKind } from '#pcie/tlp';

/** Where things are on the host the function is bound to. It knows everything, and may do little. */
export interface HostTargets {
  /** Registered for reading and writing; no legal request goes there. */
  readonly canary: number;
  readonly readOnly: number;
  readonly writeOnly: number;
  /** Where this function may write and read. */
  readonly allowed: number;
  /** Memory that was registered, and is taken back at some time. */
  readonly lent: number;
  /** Memory of nobody. */
  readonly hole: number;
  /** In the windows of two virtual slots, one of them the function's own. */
  readonly windows: readonly number[];
  /** Requester ID of another function. */
  readonly otherBdf: number;
  /** MSI data of another function. */
  readonly otherData: number;
}

export interface Attack {
  readonly name: string;
  /** Checked before bus mastering is: with it off, all others are refused for that. */
  readonly beforeBusMaster?: boolean;
  readonly refusal: RefusalName | undefined;
  readonly build: (tlp: Tlp, at: HostTargets, prng: Prng) => void;
}

const PAYLOAD = Uint8Array.from({ length: 64 }, (_, n) => 0xe0 + (n % 16));
const ASSERT_INTA = 0x20;
const LOCAL_ROUTING = 4;
const TWO_TO_21 = 0x20_0000;

function payload(tlp: Tlp, lengthDw: number): void {
  tlp.payload = PAYLOAD;
  tlp.payloadOffset = 0;
  tlp.payloadBytes = 4 * lengthDw;
}

function write(tlp: Tlp, address: number, lengthDw = 4): void {
  setTlpAddress(tlp, address, TlpKind.MWr32, TlpKind.MWr64);
  tlp.lengthDw = lengthDw;
  tlp.firstBe = 15;
  tlp.lastBe = lengthDw > 1 ? 15 : 0;
  payload(tlp, lengthDw);
}

function read(tlp: Tlp, address: number): void {
  setTlpAddress(tlp, address, TlpKind.MRd32, TlpKind.MRd64);
  tlp.lengthDw = 4;
  tlp.firstBe = 15;
  tlp.lastBe = 15;
}

function atomic(tlp: Tlp, address: number): void {
  setTlpAddress(tlp, address, TlpKind.FetchAdd32, TlpKind.FetchAdd64);
  tlp.lengthDw = 1;
  tlp.firstBe = 15;
  payload(tlp, 1);
}

function interrupt(tlp: Tlp, address: number, data: number): void {
  write(tlp, address, 1);
  tlp.payload = Uint8Array.of(data, data >>> 8, data >>> 16, data >>> 24);
}

function single(tlp: Tlp, kind: TlpKind): void {
  tlp.kind = kind;
  tlp.lengthDw = 1;
  tlp.firstBe = 15;
  if ((kind & 0x40) !== 0) payload(tlp, 1);
}

export const ATTACKS: readonly Attack[] = [
  { name: 'write', refusal: undefined, build: (tlp, at) => write(tlp, at.allowed) },
  { name: 'read', refusal: undefined, build: (tlp, at) => read(tlp, at.allowed) },
  { name: 'atomic', refusal: undefined, build: (tlp, at) => atomic(tlp, at.allowed) },
  {
    name: 'write in another name',
    beforeBusMaster: true,
    refusal: 'requester-id',
    build: (tlp, at) => {
      write(tlp, at.canary);
      tlp.requesterId = at.otherBdf;
    },
  },
  {
    name: 'read in another name',
    beforeBusMaster: true,
    refusal: 'requester-id',
    build: (tlp, at) => {
      read(tlp, at.canary);
      tlp.requesterId = at.otherBdf;
    },
  },
  {
    name: 'translated write',
    beforeBusMaster: true,
    refusal: 'address-type',
    build: (tlp, at) => {
      write(tlp, at.canary);
      tlp.addressType = 2;
    },
  },
  {
    name: 'translation request',
    beforeBusMaster: true,
    refusal: 'address-type',
    build: (tlp, at) => {
      read(tlp, at.canary);
      tlp.addressType = 1;
    },
  },
  {
    name: 'write above 2^53',
    refusal: 'address',
    build: (tlp, at, prng) => {
      write(tlp, at.canary);
      tlp.kind = TlpKind.MWr64;
      tlp.addressHi = TWO_TO_21 + prng.below(1000) * TWO_TO_21;
    },
  },
  {
    name: 'read above 2^53',
    refusal: 'address',
    build: (tlp, at) => {
      read(tlp, at.canary);
      tlp.kind = TlpKind.MRd64;
      tlp.addressHi = 0xffff_ffff;
    },
  },
  {
    name: 'config read',
    beforeBusMaster: true,
    refusal: 'config-or-io',
    build: (tlp, at) => {
      single(tlp, TlpKind.CfgRd0);
      tlp.completerId = at.otherBdf;
    },
  },
  {
    name: 'config write',
    beforeBusMaster: true,
    refusal: 'config-or-io',
    build: (tlp, at) => {
      single(tlp, TlpKind.CfgWr1);
      tlp.completerId = at.otherBdf;
      tlp.register = 4;
    },
  },
  {
    name: 'I/O write',
    beforeBusMaster: true,
    refusal: 'config-or-io',
    build: (tlp) => {
      single(tlp, TlpKind.IOWr);
      tlp.addressLo = 0xcf8;
    },
  },
  {
    name: 'message',
    beforeBusMaster: true,
    refusal: 'message',
    build: (tlp) => {
      tlp.kind = TlpKind.Msg;
      tlp.messageCode = ASSERT_INTA;
      tlp.messageRouting = LOCAL_ROUTING;
    },
  },
  {
    name: "another function's interrupt",
    refusal: 'interrupt',
    build: (tlp, at) => interrupt(tlp, MSI_ADDRESS, at.otherData),
  },
  {
    name: 'interrupt that was never set up',
    refusal: 'interrupt',
    build: (tlp, _at, prng) => interrupt(tlp, MSI_ADDRESS + 4 * prng.between(1, 1000), 0x41),
  },
  {
    name: 'long write to the interrupt range',
    refusal: 'interrupt',
    build: (tlp) => write(tlp, MSI_ADDRESS),
  },
  {
    name: 'write to a window',
    refusal: 'peer-to-peer',
    build: (tlp, at, prng) => write(tlp, prng.pick(at.windows)),
  },
  {
    name: 'read of a window',
    refusal: 'peer-to-peer',
    build: (tlp, at, prng) => read(tlp, prng.pick(at.windows)),
  },
  { name: 'write to nothing', refusal: 'unregistered', build: (tlp, at) => write(tlp, at.hole) },
  { name: 'read of nothing', refusal: 'unregistered', build: (tlp, at) => read(tlp, at.hole) },
  { name: 'write to read-only', refusal: 'access', build: (tlp, at) => write(tlp, at.readOnly) },
  { name: 'atomic on read-only', refusal: 'access', build: (tlp, at) => atomic(tlp, at.readOnly) },
  { name: 'read of write-only', refusal: 'access', build: (tlp, at) => read(tlp, at.writeOnly) },
  {
    name: 'poisoned write',
    refusal: 'poisoned',
    build: (tlp, at) => {
      write(tlp, at.canary);
      tlp.poisoned = true;
    },
  },
];

/** For when the lent memory has been taken back. */
export const LATE_ATTACKS: readonly Attack[] = [
  { name: 'write too late', refusal: 'unregistered', build: (tlp, at) => write(tlp, at.lent) },
  { name: 'read too late', refusal: 'unregistered', build: (tlp, at) => read(tlp, at.lent) },
];

/** With bus mastering off, where everything must fail. */
export function withoutBusMaster(attack: Attack): Attack {
  if (attack.beforeBusMaster === true) return attack;
  return { ...attack, refusal: 'bus-master-off' };
}

/** Makes `tlp` the request of `attack` by the function `bdf`. */
export function buildAttack(
  attack: Attack,
  tlp: Tlp,
  at: HostTargets,
  prng: Prng,
  bdf: number,
): void {
  resetTlp(tlp);
  tlp.requesterId = bdf;
  attack.build(tlp, at, prng);
}

/** Makes `tlp` an answer to a request of the CPU that nobody asked this function for. */
export function buildFalseAnswer(tlp: Tlp, tag: number, bdf: number): void {
  resetTlp(tlp);
  tlp.kind = TlpKind.CplD;
  tlp.completerId = bdf;
  tlp.tag = tag;
  tlp.status = CompletionStatus.SC;
  tlp.lengthDw = 1;
  tlp.byteCount = 4;
  payload(tlp, 1);
}
