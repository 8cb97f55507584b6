/** Valid TLPs of every kind, for property tests of whoever handles TLPs. */
import { CompletionStatus, Tlp, TlpKind } from '#pcie/tlp';
import { fc } from './properties.ts';

const uint32 = fc.nat({ max: 0xffffffff });
const id = fc.nat({ max: 0xffff });
const flag = fc.boolean();

const common = fc.record({
  trafficClass: fc.nat({ max: 7 }),
  attributes: fc.nat({ max: 7 }),
  poisoned: flag,
  digest: flag,
  tag: fc.nat({ max: 1023 }),
  requesterId: id,
});

/** Mostly short, now and then any length up to 4 KiB. */
const anyLength = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 16 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 1024 }) },
  { weight: 1, arbitrary: fc.constantFrom(1023, 1024) },
);

const FIRST_BE = [0b1111, 0b1110, 0b1100, 0b1000];
const LAST_BE = [0b1111, 0b0111, 0b0011, 0b0001];
const nonZeroBe = fc.integer({ min: 1, max: 15 });

/** Byte enables that 2.2.5 allows for a memory request. */
function byteEnables(lengthDw: number, addressLo: number): fc.Arbitrary<[number, number]> {
  if (lengthDw === 1) return fc.tuple(fc.nat({ max: 15 }), fc.constant(0));
  if (lengthDw === 2 && addressLo % 8 === 0) return fc.tuple(nonZeroBe, nonZeroBe);
  return fc.tuple(fc.constantFrom(...FIRST_BE), fc.constantFrom(...LAST_BE));
}

function withPayload(fields: Partial<Tlp>): fc.Arbitrary<Partial<Tlp>> {
  const payloadBytes = (fields.lengthDw ?? 0) * 4;
  // The window lies somewhere inside a larger buffer, at any alignment.
  return fc
    .tuple(fc.uint8Array({ minLength: 1, maxLength: 16 }), fc.nat({ max: 9 }))
    .map(([pattern, payloadOffset]) => {
      const payload = new Uint8Array(payloadOffset + payloadBytes + 5);
      for (let i = 0; i < payload.length; i++) payload[i] = (pattern[i % pattern.length] ?? 0) + i;
      return { ...fields, payload, payloadOffset, payloadBytes };
    });
}

/** Address words such that `bytes` bytes stay inside one 4 KiB page; DW aligned. */
function addressWords(is64: boolean, bytes: number, alignment: number): fc.Arbitrary<Partial<Tlp>> {
  const inPage = fc.nat({ max: (4096 - bytes) / alignment }).map((n) => n * alignment);
  const page = fc.oneof(fc.nat({ max: 0xfffff }), fc.constantFrom(0, 1, 0xfee00, 0xfffff));
  const high = is64 ? fc.oneof(fc.integer({ min: 1, max: 0x1fffff }), uint32) : fc.constant(0);
  return fc.record({
    addressHi: high,
    addressLo: fc.tuple(page, inPage).map(([p, offset]) => p * 4096 + offset),
  });
}

const hints = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ hints: false, processingHint: 0 }) },
  {
    weight: 1,
    arbitrary: fc.record({ hints: fc.constant(true), processingHint: fc.nat({ max: 3 }) }),
  },
);
const addressType = fc.constantFrom(0, 0, 0, 1, 2, 3);

const memory = fc
  .record({
    kind: fc.constantFrom(TlpKind.MRd32, TlpKind.MRd64, TlpKind.MWr32, TlpKind.MWr64),
    lengthDw: anyLength,
  })
  .chain(({ kind, lengthDw }) =>
    fc
      .tuple(addressWords((kind & 0x20) !== 0, lengthDw * 4, 4), hints, addressType)
      .chain(([address, hint, at]) => {
        const fields = { kind, lengthDw, ...address, ...hint, addressType: at };
        const steered = hint.hints && (kind & 0x40) === 0;
        const enables = steered
          ? fc.tuple(fc.nat({ max: 15 }), fc.nat({ max: 15 }))
          : byteEnables(lengthDw, address.addressLo ?? 0);
        return enables.chain(([firstBe, lastBe]) => {
          const whole = { ...fields, firstBe, lastBe };
          return (kind & 0x40) === 0 ? fc.constant(whole) : withPayload(whole);
        });
      }),
  );

const atomic = fc
  .record({
    kind: fc.constantFrom(
      TlpKind.FetchAdd32,
      TlpKind.FetchAdd64,
      TlpKind.Swap32,
      TlpKind.Swap64,
      TlpKind.CAS32,
      TlpKind.CAS64,
    ),
    size: fc.constantFrom(1, 2, 4),
  })
  .chain(({ kind, size }) => {
    const isCas = (kind & 0x1f) === 0x0e;
    const operandDw = isCas ? size : Math.min(size, 2);
    const lengthDw = isCas ? operandDw * 2 : operandDw;
    return fc
      .tuple(
        addressWords((kind & 0x20) !== 0, operandDw * 4, operandDw * 4),
        fc.nat({ max: 15 }),
        fc.nat({ max: 15 }),
        hints,
        addressType,
      )
      .chain(([address, firstBe, lastBe, hint, at]) =>
        withPayload({ kind, lengthDw, ...address, firstBe, lastBe, ...hint, addressType: at }),
      );
  });

const zeroed = { trafficClass: 0, attributes: 0, lengthDw: 1, lastBe: 0 };

const io = fc
  .tuple(
    fc.constantFrom(TlpKind.IORd, TlpKind.IOWr),
    addressWords(false, 4, 4),
    fc.nat({ max: 15 }),
  )
  .chain(([kind, address, firstBe]) => {
    const fields = { kind, ...zeroed, ...address, firstBe };
    return kind === TlpKind.IOWr ? withPayload(fields) : fc.constant<Partial<Tlp>>(fields);
  });

const config = fc
  .record({
    kind: fc.constantFrom(TlpKind.CfgRd0, TlpKind.CfgWr0, TlpKind.CfgRd1, TlpKind.CfgWr1),
    completerId: id,
    register: fc.nat({ max: 1023 }).map((n) => n * 4),
    firstBe: fc.nat({ max: 15 }),
  })
  .chain((own) => {
    const fields = { ...zeroed, ...own };
    return (own.kind & 0x40) === 0 ? fc.constant<Partial<Tlp>>(fields) : withPayload(fields);
  });

const message = fc
  .record({
    // Vendor-defined and LTR: codes that may come in any traffic class, or are given TC 0 below.
    messageCode: fc.constantFrom(0x10, 0x20, 0x24, 0x30, 0x50, 0x7e, 0x7f),
    messageRouting: fc.nat({ max: 7 }),
    messageDw2: uint32,
    messageDw3: uint32,
    lengthDw: fc.oneof(fc.constant(0), anyLength),
  })
  .chain((own) => {
    const vendor = own.messageCode >= 0x7e;
    const fields = { ...own, ...(vendor ? {} : { trafficClass: 0 }) };
    return own.lengthDw === 0
      ? fc.constant<Partial<Tlp>>({ ...fields, kind: TlpKind.Msg })
      : withPayload({ ...fields, kind: TlpKind.MsgD });
  });

const completionFields = fc.record({
  completerId: id,
  byteCountModified: fc.constantFrom(false, false, false, true),
  byteCount: fc.integer({ min: 1, max: 4096 }),
  lowerAddress: fc.nat({ max: 127 }),
});

const completion = fc
  .tuple(completionFields, fc.constantFrom(...Object.values(CompletionStatus)))
  .map(([own, status]) => ({ ...own, kind: TlpKind.Cpl, status, lengthDw: 0 }));

const completionWithData = completionFields.chain((own) => {
  const mostDw = Math.min(1024, Math.ceil((own.byteCount + (own.lowerAddress % 4)) / 4));
  return fc
    .integer({ min: 1, max: mostDw })
    .chain((lengthDw) =>
      withPayload({ ...own, kind: TlpKind.CplD, status: CompletionStatus.SC, lengthDw }),
    );
});

/** A valid TLP of any kind; what its kind does not have is as in `new Tlp()`. */
export const tlpArbitrary: fc.Arbitrary<Tlp> = fc
  .tuple(
    common,
    fc.oneof<fc.Arbitrary<Partial<Tlp>>[]>(
      memory,
      atomic,
      io,
      config,
      message,
      completion,
      completionWithData,
    ),
  )
  .map(([shared, own]) => Object.assign(new Tlp(), shared, own));
