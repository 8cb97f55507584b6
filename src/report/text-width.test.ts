import { describe, expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import {
  displayWidth,
  padEnd,
  padStart,
  paragraph,
  plainText,
  withoutMiddle,
  wrap,
} from './text-width.ts';

describe('the width of text', () => {
  it('counts columns, not characters', () => {
    expect(displayWidth('µs')).toBe(2);
    expect(displayWidth('模型.json')).toBe(2 * 2 + 5);
    expect(displayWidth('e\u0301')).toBe(1);
    expect(padEnd('模', 4)).toBe('模  ');
    expect(padStart('12', 4)).toBe('  12');
  });

  it('leaves nothing that acts on a terminal', () => {
    expect(plainText('a\u001b[31mb\r\nc\u202ed\ud800')).toBe(
      'a\ufffd[31mb\ufffd\ufffdc\ufffdd\ufffd',
    );
  });

  it('leaves out the middle: both ends tell files apart', () => {
    expect(withoutMiddle('abcdefghij', 10)).toBe('abcdefghij');
    // 6 columns: the mark, 4 of the end (two thirds of 5, rounded up), 1 of the beginning.
    expect(withoutMiddle('abcdefghij', 6)).toBe('a…ghij');
    expect(withoutMiddle('abc', 1)).toBe('…');
    expect(withoutMiddle('abc', 0)).toBe('');
  });
});

describe('wrapping', () => {
  it('parts lines at spaces, not before a unit', () => {
    expect(wrap('a round trip of 6.8 µs here', 20)).toEqual(['a round trip of', '6.8 µs here']);
    expect(wrap('keeps 10 % of it', 8)).toEqual(['keeps', '10 % of', 'it']);
    expect(wrap('', 8)).toEqual(['']);
  });

  it('cuts what has no spaces', () => {
    expect(wrap('abcdefgh ij', 3)).toEqual(['abc', 'def', 'gh', 'ij']);
  });

  it('hangs the lines after the first', () => {
    expect(paragraph('one two three', 8, '- ', '  ')).toEqual(['- one', '  two', '  three']);
  });

  it('loses nothing and keeps the width (property)', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 2, max: 40 }), (raw, width) => {
        const text = plainText(raw);
        const lines = wrap(text, width);
        expect(lines.join('').replaceAll(/[ \u00a0]/g, '')).toBe(text.replaceAll(/[ \u00a0]/g, ''));
        for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width);
      }),
      { numRuns: 100 },
    );
  });
});
