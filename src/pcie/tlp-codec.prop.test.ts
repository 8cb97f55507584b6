import { describe, expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { tlpArbitrary } from '#testkit/tlp-arbitrary';
import { fuzzTlps } from '#testkit/tlp-fuzz';
import { decodeTlp, encodedTlpBytes, encodeTlp, TlpDecode } from './tlp-codec.ts';
import { tlpFromJson, tlpToJson, tlpToLine } from './tlp-text.ts';
import { Tlp, TLP_KIND_NAMES } from './tlp.ts';

/** Every field, and the payload as bytes rather than as a window. */
function contents(tlp: Tlp): Record<string, unknown> {
  const { payload, payloadOffset, payloadBytes, ...fields } = tlp;
  const data = payload.slice(payloadOffset, payloadOffset + payloadBytes);
  return { ...fields, payloadBytes, data };
}

describe('TLP round trips', () => {
  it('decode(encode(x)) is x, wherever it lies', () => {
    fc.assert(
      fc.property(tlpArbitrary, fc.nat({ max: 7 }), (tlp, offset) => {
        const size = encodedTlpBytes(tlp);
        const bytes = new Uint8Array(size + 8);
        expect(encodeTlp(tlp, bytes, offset)).toBe(size);
        const back = new Tlp();
        expect(decodeTlp(bytes, offset, size, back)).toBe(TlpDecode.OK);
        expect(contents(back)).toEqual(contents(tlp));
      }),
      { numRuns: 2000 },
    );
  });

  it('a record used before keeps nothing of it that the new kind has', () => {
    fc.assert(
      fc.property(tlpArbitrary, tlpArbitrary, (before, tlp) => {
        const bytes = new Uint8Array(encodedTlpBytes(tlp));
        encodeTlp(tlp, bytes, 0);
        const reused = Object.assign(new Tlp(), before);
        expect(decodeTlp(bytes, 0, bytes.length, reused)).toBe(TlpDecode.OK);
        expect(tlpToJson(reused)).toEqual(tlpToJson(tlp));
      }),
      { numRuns: 1000 },
    );
  });

  it('fromJson(toJson(x)) is x, through text', () => {
    fc.assert(
      fc.property(tlpArbitrary, (tlp) => {
        const back = new Tlp();
        tlpFromJson(JSON.parse(JSON.stringify(tlpToJson(tlp))), back);
        expect(contents(back)).toEqual(contents(tlp));
      }),
      { numRuns: 1000 },
    );
  });

  it('every TLP has a line, and it is one', () => {
    fc.assert(
      fc.property(tlpArbitrary, (tlp) => {
        const line = tlpToLine(tlp);
        expect(line.startsWith(`${TLP_KIND_NAMES[tlp.kind]} `)).toBe(true);
        expect(line).not.toMatch(/\n|undefined|NaN/);
      }),
      { numRuns: 300 },
    );
  });
});

describe('mutated TLPs', () => {
  it('20,000: no crash, nothing read outside, and what is accepted encodes again', () => {
    const { tlps, accepted, outcomes } = fuzzTlps(20_250_601, 20_000);
    expect(tlps).toBe(20_000);
    // The mutations are mild enough to reach every verdict, many times.
    expect(accepted).toBeGreaterThan(1000);
    for (const name of Object.keys(TlpDecode))
      expect(outcomes[name] ?? 0, name).toBeGreaterThan(20);
  });

  it('the same seed gives the same', () => {
    expect(fuzzTlps(7, 500)).toEqual(fuzzTlps(7, 500));
  });
});
