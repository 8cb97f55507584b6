import { describe, expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { JsonScanner, SCAN } from './json-scanner.ts';
import { endOfValue, SPARE_BYTES } from './json-skip.ts';

/** Scans in pieces of `pieceBytes`. @returns where the value ends, -1 if bad, undefined if it does not. */
function scanEnd(bytes: Uint8Array, pieceBytes: number): number | undefined {
  const scanner = new JsonScanner();
  scanner.begin();
  for (let from = 0; from < bytes.length; from += pieceBytes) {
    const piece = bytes.subarray(from, from + pieceBytes);
    const status = scanner.scan(piece, 0, piece.length);
    if (status === SCAN.bad) return -1;
    if (status === SCAN.done) return from + scanner.position;
  }
  return undefined;
}

function skipEnd(bytes: Uint8Array): number {
  const spare = new Uint8Array(bytes.length + SPARE_BYTES);
  spare.set(bytes);
  return endOfValue(spare, 0, bytes.length, 0);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const value = fc.json({ maxDepth: 4 });
const space = fc.constantFrom(undefined, 1, '\t', 3);
const piece = fc.integer({ min: 1, max: 40 });

describe('JsonScanner and endOfValue', () => {
  it('find the end of any value, however it is split', () => {
    fc.assert(
      fc.property(value, space, piece, (json, indent, pieceBytes) => {
        const text = JSON.stringify(JSON.parse(json), null, indent);
        const bytes = Buffer.from(`${text},{"next": 1}`);
        const end = Buffer.byteLength(text);
        expect(scanEnd(bytes, pieceBytes)).toBe(end);
        expect(skipEnd(bytes)).toBe(end);
      }),
      { numRuns: 300 },
    );
  });

  it('agree on damaged values, and take no less than JSON.parse', () => {
    const edits = fc.array(
      fc.record({
        at: fc.nat(),
        what: fc.constantFrom('"', '\\', ',', ':', '{', ']', '\n', 'x', ''),
      }),
      { minLength: 1, maxLength: 3 },
    );
    fc.assert(
      fc.property(fc.object({ maxDepth: 3 }), edits, piece, (object, changes, pieceBytes) => {
        let text = JSON.stringify(object);
        for (const { at, what } of changes) {
          const place = at % text.length;
          text = text.slice(0, place) + what + text.slice(place + 1);
        }
        fc.pre(text.startsWith('{'));
        const bytes = Buffer.from(text);
        const end = scanEnd(bytes, pieceBytes);
        expect(skipEnd(bytes)).toBe(end ?? -1);
        if (isJson(text)) expect(end).toBe(bytes.length);
        // Nothing else is taken but numbers of odd make.
        if (end === bytes.length && !isJson(text)) {
          expect(isJson(text.replaceAll(/[-+.\dA-Za-z]+(?=[,}\]])/g, '0'))).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });
});

// Once taken: the digits of an escape were not looked at.
it.each([
  ['"\\u12g4"', -1],
  ['"\\u"', -1],
  ['"\\u00e9"', 8],
  ['"a\\uD83D\\uDE00b"', 16],
])('of %s both find the end at %i, in pieces of any size', (text, end) => {
  const bytes = Buffer.from(text);
  expect(skipEnd(bytes)).toBe(end);
  for (let pieceBytes = 1; pieceBytes <= bytes.length; pieceBytes++) {
    expect(scanEnd(bytes, pieceBytes)).toBe(end);
  }
});

describe('JsonScanner', () => {
  it.each(['NaN', '-Infinity', 'Infinity', 'nan', '-inf', 'true', 'null', '1e+30', '-0.5E3'])(
    'takes %s',
    (word) => {
      expect(scanEnd(Buffer.from(`{"a": ${word}, "b": [${word}]}`), 3)).toBe(
        '{"a": , "b": []}'.length + 2 * word.length,
      );
    },
  );

  it.each([
    ['an unescaped quote', '{"name": "a"b", "pid": 1}', 12],
    ['an unescaped backslash at the end of text', '{"name": "C:\\", "pid": 1}', 17],
    ['an unknown escape', '{"name": "C:\\dir"}', 13],
    ['an escape with too few digits', '{"name": "\\u12 "}', 14],
    ['a key whose escape has none', '{"\\u": 1}', 4],
    ['a control character', '{"name": "a\u0001b"}', 11],
    ['a word that is none', '{"a": nothing}', 13],
    ['a brace for a bracket', '{"a": [1}', 8],
    ['a comma before the end', '{"a": 1,}', 8],
    ['an object without a key', '{"a": {1: 2}}', 7],
  ])('shows where %s is seen', (_, text, at) => {
    const scanner = new JsonScanner();
    scanner.begin();
    const bytes = Buffer.from(text);
    expect(scanner.scan(bytes, 0, bytes.length)).toBe(SCAN.bad);
    expect(scanner.position).toBe(at);
  });

  it('refuses what is nested without end', () => {
    expect(scanEnd(Buffer.from('['.repeat(10_000)), 10_000)).toBe(-1);
    expect(skipEnd(Buffer.from('['.repeat(10_000)))).toBe(-1);
  });
});
