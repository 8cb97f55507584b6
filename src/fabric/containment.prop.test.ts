/**
 * Invariants 2 and 3 at the host proxy: whatever a box sends, memory changes only as the rules say,
 * only the function's own interrupts are raised, and every non-posted request is answered exactly
 * once. The rules are written down here a second time, with 64-bit integers and plain loops.
 */
import { requestByteCount } from '#pcie/completion';
import { CompletionStatus, FlowClass, flowClassOf, Tlp, TlpKind } from '#pcie/tlp';
import { decodeTlp, TlpDecode } from '#pcie/tlp-codec';
import { describe, expect, test } from 'vitest';
import { encoded, type SentEntry } from '#testkit/fake-link';
import { HostProxyWorld, MSI_OFFSET, PCIE_OFFSET } from '#testkit/host-proxy-world';
import { fc } from '#testkit/properties';
import { REFUSAL_NAMES, type RefusalName } from './counters.ts';
import type { HostProxyFaults } from './host-proxy.ts';

const PAGE = 4096;
const ARENA_PAGES = 12;
const MSI_ADDRESS = 0xfee0_1000n;
const MSI_DATA = 0x4150;

interface Region {
  readonly base: bigint;
  /** First page in the arena; pages between regions belong to nobody. */
  readonly page: number;
  readonly pages: number;
  readonly read: boolean;
  readonly write: boolean;
}

const REGIONS: readonly Region[] = [
  { base: 0x1_0000n, page: 1, pages: 2, read: true, write: true },
  { base: 0x1_2000n, page: 4, pages: 1, read: true, write: false },
  { base: 0x1_3000n, page: 6, pages: 1, read: false, write: true },
  { base: 0x5_0000_0000n, page: 8, pages: 1, read: true, write: true },
  // Taken back and given again by operations of the test.
  { base: 0x8_0000n, page: 10, pages: 1, read: true, write: true },
];
const LOOSE = REGIONS[4] as Region;

/** What the rules depend on, as the test set it. */
interface Rules {
  busMaster: boolean;
  msiEnabled: boolean;
  looseRegistered: boolean;
}

type Outcome =
  | { readonly kind: 'refused'; readonly reason: RefusalName }
  | { readonly kind: 'malformed'; readonly reason: RefusalName }
  | { readonly kind: 'interrupt' }
  | { readonly kind: 'unexpected' }
  | { readonly kind: 'stale' }
  | { readonly kind: 'done' };

const UNSUPPORTED_REQUESTS = [0x01, 0x21, 0x1b, 0x5b, 0x7b];

/** The function is bus 3, device 0, function 0; its box slot is 7 of box b, generation 11. */
function outcomeOf(rules: Rules, op: TlpOp, decoded: TlpDecode, tlp: Tlp): Outcome {
  const fresh = op.box === 'b' && op.slot === 7 && op.generation === 11;
  const unsupported =
    decoded === TlpDecode.UNSUPPORTED_KIND && UNSUPPORTED_REQUESTS.includes(op.bytes[0] ?? -1);
  if (decoded !== TlpDecode.OK && !unsupported) {
    if (decoded === TlpDecode.BAD_ECRC) return { kind: 'malformed', reason: 'ecrc' };
    if (decoded === TlpDecode.UNSUPPORTED_KIND) {
      return { kind: 'malformed', reason: 'unsupported-kind' };
    }
    return { kind: 'malformed', reason: 'malformed' };
  }
  if (!fresh) return { kind: 'stale' };
  const refused = (reason: RefusalName): Outcome => ({ kind: 'refused', reason });
  if (unsupported) return refused('unsupported-kind');
  const { kind } = tlp;
  if (tlp.payloadBytes > MAX_PAYLOAD && flowClassOf(kind) !== FlowClass.NON_POSTED) {
    return { kind: 'malformed', reason: 'malformed' };
  }
  if (kind === TlpKind.Cpl || kind === TlpKind.CplD) return { kind: 'unexpected' };
  if (kind === TlpKind.Msg || kind === TlpKind.MsgD) return refused('message');
  if (!MEMORY_KINDS.includes(kind)) return refused('config-or-io');
  if (tlp.addressType !== 0) return refused('address-type');
  if (tlp.requesterId !== 0x0300) return refused('requester-id');
  if (!rules.busMaster) return refused('bus-master-off');
  const address = (BigInt(tlp.addressHi) << 32n) | BigInt(tlp.addressLo);
  if (address >= 1n << 53n) return refused('address');
  const isRead = kind === TlpKind.MRd32 || kind === TlpKind.MRd64;
  const isWrite = kind === TlpKind.MWr32 || kind === TlpKind.MWr64;
  if (tlp.poisoned && !isRead) return refused('poisoned');
  const end = address + 4n * BigInt(tlp.lengthDw);
  if (isWrite && rules.msiEnabled && address === MSI_ADDRESS && tlp.lengthDw === 1) {
    const data = new DataView(op.bytes.buffer).getUint32(tlp.payloadOffset, true);
    // Two messages were allocated: the function chooses the lowest bit of the data.
    if (tlp.firstBe === 0xf && (data === MSI_DATA || data === MSI_DATA + 1)) {
      return { kind: 'interrupt' };
    }
  }
  if (!isRead && address < 0xfef0_0000n && end > 0xfee0_0000n) return refused('interrupt');
  const region = regionOf(rules, address, end);
  if (region === undefined) {
    return refused(inWindow(address) ? 'peer-to-peer' : 'unregistered');
  }
  const needsRead = !isWrite;
  const needsWrite = !isRead;
  if ((needsRead && !region.read) || (needsWrite && !region.write)) return refused('access');
  return { kind: 'done' };
}

function regionOf(rules: Rules, address: bigint, end: bigint): Region | undefined {
  return REGIONS.find(
    (region) =>
      (region !== LOOSE || rules.looseRegistered) &&
      address >= region.base &&
      end <= region.base + BigInt(region.pages * PAGE),
  );
}

/** The windows of `hostRow`: 1 MiB from 40000000 on, 1 GiB from 10_00000000 on, three of each. */
function inWindow(address: bigint): boolean {
  return (
    (address >= 0x4000_0000n && address < 0x4030_0000n) ||
    (address >= 0x10_0000_0000n && address < 0x10_c000_0000n)
  );
}

const MEMORY_KINDS: readonly TlpKind[] = [
  TlpKind.MRd32,
  TlpKind.MRd64,
  TlpKind.MWr32,
  TlpKind.MWr64,
  TlpKind.FetchAdd32,
  TlpKind.FetchAdd64,
  TlpKind.Swap32,
  TlpKind.Swap64,
  TlpKind.CAS32,
  TlpKind.CAS64,
];

/** Does to the model's arena what the TLP asks, and returns what a non-posted one reads. */
function apply(arena: Uint8Array, rules: Rules, tlp: Tlp): Uint8Array {
  const address = (BigInt(tlp.addressHi) << 32n) | BigInt(tlp.addressLo);
  const end = address + 4n * BigInt(tlp.lengthDw);
  const region = regionOf(rules, address, end) as Region;
  const at = region.page * PAGE + Number(address - region.base);
  const { payload, payloadOffset: from, lengthDw } = tlp;
  const old = arena.slice(at, at + 4 * lengthDw);
  const view = new DataView(arena.buffer);
  const data = new DataView(payload.buffer, payload.byteOffset);
  switch (tlp.kind) {
    case TlpKind.MRd32:
    case TlpKind.MRd64:
      return old;
    case TlpKind.MWr32:
    case TlpKind.MWr64:
      for (let byte = 0; byte < 4 * lengthDw; byte++) {
        const dw = byte >> 2;
        const last = dw === lengthDw - 1 && dw > 0;
        const enables = dw === 0 ? tlp.firstBe : last ? tlp.lastBe : 0xf;
        if (((enables >> (byte & 3)) & 1) === 1) arena[at + byte] = payload[from + byte] as number;
      }
      return old;
    case TlpKind.FetchAdd32:
    case TlpKind.FetchAdd64:
      if (lengthDw === 1) {
        const sum = view.getUint32(at, true) + data.getUint32(from, true);
        view.setUint32(at, sum % 2 ** 32, true);
      } else {
        const sum = view.getBigUint64(at, true) + data.getBigUint64(from, true);
        view.setBigUint64(at, BigInt.asUintN(64, sum), true);
      }
      return old;
    case TlpKind.CAS32:
    case TlpKind.CAS64: {
      const size = 2 * lengthDw;
      const same = old.slice(0, size).every((byte, index) => byte === payload[from + index]);
      if (same) arena.set(payload.subarray(from + size, from + 2 * size), at);
      return old.slice(0, size);
    }
    default:
      arena.set(payload.subarray(from, from + 4 * lengthDw), at);
      return old;
  }
}

interface TlpOp {
  readonly op: 'tlp';
  readonly box: 'b' | 'c';
  readonly slot: number;
  readonly generation: number;
  readonly bytes: Uint8Array;
}

type Op =
  | TlpOp
  | { readonly op: 'bus-master'; readonly on: boolean }
  | { readonly op: 'msi'; readonly on: boolean }
  | { readonly op: 'loose'; readonly on: boolean };

const dwOffset = fc.oneof(
  fc.integer({ min: 0, max: 1023 }),
  fc.constantFrom(0, 1, 2, 3, 4, 1020, 1021, 1022, 1023),
);
const address = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.tuple(
      // Every page of every region, its neighbours, and what must never be reached.
      fc.constantFrom(
        0x0_f000n,
        0x1_0000n,
        0x1_1000n,
        0x1_2000n,
        0x1_3000n,
        0x1_4000n,
        0x8_0000n,
        0x5_0000_0000n,
        0x5_0000_1000n,
        // Aliases of the first region if 32 or 53 bits of an address were lost.
        0x1_0001_0000n,
        (1n << 53n) + 0x1_0000n,
        0x4000_0000n,
        0x4010_0000n,
        0x10_4000_0000n,
        0xfee0_0000n,
        0xfeef_f000n,
      ),
      dwOffset,
    ),
  },
  { weight: 4, arbitrary: fc.constant([0xfee0_1000n, 0] as [bigint, number]) },
);
const requester = fc.oneof(
  { weight: 9, arbitrary: fc.constant(0x0300) },
  { weight: 1, arbitrary: fc.constantFrom(0x0301, 0x0400, 0x0000, 0xffff) },
);
const rarely = (weight: number) =>
  fc.oneof({ weight, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) });

const tlpBytes = fc
  .record({
    kind: fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom('MRd', 'MWr', 'FetchAdd', 'Swap', 'CAS') },
      { weight: 3, arbitrary: fc.constant('MSI') },
      { weight: 1, arbitrary: fc.constantFrom('Cfg', 'IO', 'Msg', 'Cpl') },
    ),
    address,
    lengthDw: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 160 })),
    firstBe: fc.constantFrom(0xf, 0xf, 0xe, 0xc, 0x8, 0x5, 0x0),
    lastBe: fc.constantFrom(0xf, 0xf, 0x7, 0x3, 0x1),
    requesterId: requester,
    tag: fc.integer({ min: 0, max: 1023 }),
    addressType: fc.constantFrom(0, 0, 0, 0, 0, 0, 1, 2),
    attributes: fc.integer({ min: 0, max: 7 }),
    trafficClass: fc.constantFrom(0, 0, 5),
    poisoned: rarely(20),
    digest: rarely(10),
    seed: fc.integer({ min: 0, max: 255 }),
    msiData: fc.constantFrom(MSI_DATA, MSI_DATA, MSI_DATA + 1, MSI_DATA + 2, 0x1_0000 + MSI_DATA),
    write: fc.boolean(),
  })
  .map((fields) => {
    const tlp = new Tlp();
    const [base, dw] = fields.address;
    let at = base + 4n * BigInt(dw);
    tlp.requesterId = fields.requesterId;
    tlp.tag = fields.tag;
    tlp.attributes = fields.attributes;
    tlp.trafficClass = fields.trafficClass;
    tlp.digest = fields.digest;
    tlp.firstBe = fields.firstBe;
    const { write } = fields;
    const payload = Uint8Array.from({ length: 4 * 160 }, (_, i) => (fields.seed + 7 * i) & 0xff);
    const setAddress = (kind32: TlpKind, kind64: TlpKind): void => {
      tlp.addressHi = Number(at >> 32n);
      tlp.addressLo = Number(at & 0xffff_fffcn);
      tlp.kind = tlp.addressHi === 0 ? kind32 : kind64;
      tlp.addressType = fields.addressType;
    };
    const setPayload = (): void => {
      tlp.poisoned = fields.poisoned;
      tlp.payload = payload;
      tlp.payloadBytes = 4 * tlp.lengthDw;
    };
    switch (fields.kind) {
      case 'MRd':
      case 'MWr': {
        tlp.lengthDw = Math.min(fields.lengthDw, (4096 - Number(at % 4096n)) / 4);
        if (tlp.lengthDw > 1) {
          tlp.lastBe = fields.lastBe;
          // Holes are for single double words.
          if (tlp.firstBe === 0x5 || tlp.firstBe === 0) tlp.firstBe = 0xf;
        }
        if (fields.kind === 'MRd') {
          setAddress(TlpKind.MRd32, TlpKind.MRd64);
        } else {
          setAddress(TlpKind.MWr32, TlpKind.MWr64);
          setPayload();
        }
        break;
      }
      case 'MSI':
        at = MSI_ADDRESS;
        tlp.lengthDw = 1;
        tlp.firstBe = fields.firstBe === 0x5 ? 0x5 : 0xf;
        setAddress(TlpKind.MWr32, TlpKind.MWr64);
        new DataView(payload.buffer).setUint32(0, fields.msiData, true);
        setPayload();
        break;
      case 'FetchAdd':
      case 'Swap':
      case 'CAS': {
        const operandDw = fields.lengthDw % 2 === 0 ? 1 : 2;
        at -= at % BigInt(4 * operandDw);
        tlp.lengthDw = fields.kind === 'CAS' ? 2 * operandDw : operandDw;
        if (fields.kind === 'FetchAdd') setAddress(TlpKind.FetchAdd32, TlpKind.FetchAdd64);
        else if (fields.kind === 'Swap') setAddress(TlpKind.Swap32, TlpKind.Swap64);
        else setAddress(TlpKind.CAS32, TlpKind.CAS64);
        // A compare that can succeed: memory starts as zeros.
        if (fields.kind === 'CAS' && write) payload.fill(0, 0, 2 * tlp.lengthDw);
        setPayload();
        break;
      }
      case 'Cfg':
      case 'IO':
        tlp.trafficClass = 0;
        tlp.attributes = 0;
        tlp.lengthDw = 1;
        tlp.kind = TlpKind.CfgRd0;
        if (fields.kind === 'IO') tlp.kind = write ? TlpKind.IOWr : TlpKind.IORd;
        else if (write) tlp.kind = TlpKind.CfgWr1;
        if (fields.kind === 'IO') tlp.addressLo = Number(at & 0xffff_fffcn);
        if (write) {
          tlp.payload = payload;
          tlp.payloadBytes = 4;
        }
        break;
      case 'Msg':
        tlp.trafficClass = 0;
        tlp.kind = TlpKind.Msg;
        tlp.messageCode = 0x7e;
        break;
      default:
        tlp.kind = TlpKind.CplD;
        tlp.lengthDw = 1;
        tlp.byteCount = 4;
        tlp.payload = payload;
        tlp.payloadBytes = 4;
    }
    return encoded(tlp);
  });

/** Now and then a byte is changed, or some are cut off. */
const maybeBroken = fc
  .tuple(tlpBytes, rarely(12), fc.nat(), fc.integer({ min: 1, max: 255 }), rarely(4))
  .map(([bytes, broken, at, flip, cut]) => {
    if (!broken) return bytes;
    const copy = cut ? bytes.slice(0, at % bytes.length) : bytes.slice();
    const index = at % Math.max(1, Math.min(copy.length, 16));
    if (copy.length > 0) copy[index] = (copy[index] as number) ^ flip;
    return copy;
  });

const tlpOp: fc.Arbitrary<Op> = fc.record({
  op: fc.constant('tlp' as const),
  box: fc.constantFrom('b' as const, 'b' as const, 'b' as const, 'b' as const, 'c' as const),
  slot: fc.constantFrom(7, 7, 7, 7, 7, 7, 0, 9),
  generation: fc.constantFrom(11, 11, 11, 11, 11, 11, 10, 12),
  bytes: maybeBroken,
});
const op = fc.oneof(
  { weight: 12, arbitrary: tlpOp },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constantFrom('bus-master' as const, 'msi' as const, 'loose' as const),
      on: fc.boolean(),
    }),
  },
);

const MAX_PAYLOAD = 256;

function run(ops: readonly Op[], faults: HostProxyFaults = {}): void {
  const world = new HostProxyWorld({ faults });
  const { proxy, root } = world;
  const arena = new Uint8Array(ARENA_PAGES * PAGE);
  const model = new Uint8Array(ARENA_PAGES * PAGE);
  const bytesOf = (region: Region): Uint8Array =>
    arena.subarray(region.page * PAGE, (region.page + region.pages) * PAGE);
  const register = (region: Region): void =>
    proxy.registerMemory(Number(region.base), bytesOf(region), region);
  for (const region of REGIONS) register(region);
  world.ready();
  world.enumerate(0);
  // Device Control bits 7:5 are 1: Max_Payload_Size 256.
  world.configWrite(0, PCIE_OFFSET + 8, 1 << 5, 0b0011);
  world.setBusMaster(0, true);
  world.programMsi(0, Number(MSI_ADDRESS), MSI_DATA, 2);
  const rules: Rules = { busMaster: true, msiEnabled: true, looseRegistered: true };
  const counters = proxy.counters(0);
  const expectedReasons = new Map<RefusalName, number>();
  let stale = 0;
  let strayMalformed = 0;

  for (const one of ops) {
    if (one.op === 'bus-master') {
      rules.busMaster = one.on;
      world.setBusMaster(0, one.on);
      continue;
    }
    if (one.op === 'msi') {
      rules.msiEnabled = one.on;
      world.configWrite(0, MSI_OFFSET, one.on ? 0x0011_0000 : 0, 0b1100);
      continue;
    }
    if (one.op === 'loose') {
      if (one.on !== rules.looseRegistered) {
        if (one.on) register(LOOSE);
        else proxy.unregisterMemory(Number(LOOSE.base));
      }
      rules.looseRegistered = one.on;
      continue;
    }
    const tlp = new Tlp();
    const decoded = decodeTlp(one.bytes, 0, one.bytes.length, tlp);
    const expected = outcomeOf(rules, one, decoded, tlp);
    const link = one.box === 'b' ? world.linkB : world.linkC;
    const interruptsBefore = root.interrupts.length;
    link.take();
    expect(world.receive(link, one.slot, one.generation, one.bytes)).toBe(true);
    const sent = link.take();

    const nonPosted =
      expected.kind !== 'malformed' &&
      (expected.kind === 'refused' && expected.reason === 'unsupported-kind'
        ? true
        : flowClassOf(tlp.kind) === FlowClass.NON_POSTED);
    let data: Uint8Array | undefined;
    if (expected.kind === 'done') data = apply(model, rules, tlp);
    if (!nonPosted) expect(sent).toEqual([]);
    else if (data === undefined) expectRefused(sent, one, tlp);
    else expectData(sent, one, tlp, data);
    expect(root.interrupts.length - interruptsBefore).toBe(expected.kind === 'interrupt' ? 1 : 0);
    expect(root.takeCompletions()).toEqual([]);
    if (expected.kind === 'stale') stale++;
    if (expected.kind === 'malformed' && !isFresh(one)) strayMalformed++;
    else if (expected.kind === 'refused' || expected.kind === 'malformed') {
      expectedReasons.set(expected.reason, (expectedReasons.get(expected.reason) ?? 0) + 1);
    }
    expect(Buffer.compare(arena, model)).toBe(0);
  }
  const reasons = REFUSAL_NAMES.map((name) => expectedReasons.get(name) ?? 0);
  expect([...counters.refused]).toEqual(reasons);
  expect(proxy.strayCounters.refusedTotal).toBe(strayMalformed);
  const all = [proxy.strayCounters, ...[0, 1, 2].map((slot) => proxy.counters(slot))];
  const counted = all.reduce(
    (sum, c) => sum + c.staleNonPosted + c.stalePosted + c.staleCompletions,
    0,
  );
  expect(counted).toBe(stale);
}

function isFresh(op: TlpOp): boolean {
  return op.box === 'b' && op.slot === 7 && op.generation === 11;
}

/** Exactly one UR, on the slot and generation of the request. */
function expectRefused(sent: readonly SentEntry[], op: TlpOp, request: Tlp): void {
  expect(sent).toHaveLength(1);
  const [{ slot, generation, tlp }] = sent as [SentEntry];
  expect([slot, generation]).toEqual([op.slot, op.generation]);
  expect(tlp.kind).toBe(TlpKind.Cpl);
  expect(tlp.status).toBe(CompletionStatus.UR);
  expect([tlp.requesterId, tlp.tag]).toEqual([request.requesterId, request.tag]);
}

/** One set of completions that carries all of `data` (the whole double words) in order. */
function expectData(sent: readonly SentEntry[], op: TlpOp, request: Tlp, data: Uint8Array): void {
  let remaining = requestByteCount(request);
  let at = 0;
  for (const { slot, generation, tlp } of sent) {
    expect([slot, generation]).toEqual([op.slot, op.generation]);
    expect(tlp.kind).toBe(TlpKind.CplD);
    expect(tlp.status).toBe(CompletionStatus.SC);
    expect([tlp.requesterId, tlp.tag]).toEqual([request.requesterId, request.tag]);
    expect(tlp.byteCount).toBe(remaining);
    const bytes = tlp.payload.subarray(tlp.payloadOffset, tlp.payloadOffset + tlp.payloadBytes);
    expect(Buffer.compare(bytes, data.subarray(at, at + bytes.length))).toBe(0);
    at += bytes.length;
    remaining -= Math.min(remaining, bytes.length - (tlp.lowerAddress & 3));
  }
  expect(remaining).toBe(0);
}

const property = (faults?: HostProxyFaults) =>
  fc.property(fc.array(op, { minLength: 1, maxLength: 60 }), (ops) => run(ops, faults));

test('a function is contained, whatever its box sends', () => {
  fc.assert(property(), { numRuns: 250 });
});

describe('the property finds each check that is left out', () => {
  test.each([
    'noPeerFence',
    'noGenerationFence',
    'noAddressTypeCheck',
    'noConfigRefusal',
    'noRequesterIdCheck',
    'noBusMasterCheck',
    'noAddressCheck',
    'noInterruptMatch',
    'noPeerCheck',
    'noRangeCheck',
    'noAccessCheck',
    'noMemoryBarrier',
    'noCompletionCheck',
  ] as const)('%s', (fault) => {
    const result = fc.check(property({ [fault]: true }), {
      numRuns: 2000,
      seed: 1,
      endOnFailure: true,
    });
    expect(result.failed).toBe(true);
  });
});
