import { describe, expect, test } from 'vitest';
import { readCsv } from './csv.ts';

const COLUMNS = { required: ['a', 'b'], optional: ['c'] };
const texts = (text: string): (string | undefined)[][] =>
  readCsv('f.csv', text, COLUMNS).map((row) =>
    ['a', 'b', 'c'].map((name) => row.field(name)?.text),
  );

describe('what is read', () => {
  test.for([
    ['plain', 'a,b\n1,2\n'],
    ['no newline at the end', 'a,b\n1,2'],
    ['a byte order mark', '\uFEFFa,b\n1,2\n'],
    ['CRLF', 'a,b\r\n1,2\r\n'],
    ['quoted header and fields', '"a","b"\n"1","2"\n'],
    ['columns in another order', 'b,a\n2,1\n'],
    ['empty lines at the end', 'a,b\n1,2\n\n\r\n'],
  ])('%s', ([, text]) => {
    expect(texts(text!)).toEqual([['1', '2', undefined]]);
  });

  test('commas, newlines and doubled quotes inside quotes', () => {
    expect(texts('a,b\n"x,\ny","say ""z"""\n3,4\n')).toEqual([
      ['x,\ny', 'say "z"', undefined],
      ['3', '4', undefined],
    ]);
    expect(texts('a,b\n"",""\n')).toEqual([['', '', undefined]]);
  });

  test('an empty last field', () => {
    expect(texts('a,b\n1,')).toEqual([['1', '', undefined]]);
    expect(texts('a,b,c\n1,2,\n')).toEqual([['1', '2', '']]);
  });

  test('a field knows its place, also below a field of two lines', () => {
    const rows = readCsv('f.csv', '\uFEFFa,b\n"x\ny",2\n10,20\n', COLUMNS);
    expect(rows[0]?.field('b')).toMatchObject({ line: 3, column: 4 });
    expect(rows[1]?.field('b')).toMatchObject({ line: 4, column: 4 });
  });
});

describe('what is refused, and where', () => {
  test.for([
    ['', 'f.csv:1:1: the file is empty: it needs a header, a,b'],
    ['\uFEFF\r\n', 'f.csv:1:1: the file is empty: it needs a header, a,b'],
    ['a,b\n', 'f.csv:2:1: there is a header and nothing below it'],
    ['a\n1\n', 'f.csv:1:1: column b is missing; needed: a, b'],
    ['a,b,d\n1,2,3\n', 'f.csv:1:5: unknown column "d"; known: a, b, c'],
    ['a,b,a\n1,2,3\n', 'f.csv:1:5: column a appears twice'],
    ['a;b\n1;2\n', 'f.csv:1:1: unknown column "a;b"; known: a, b, c'],
    ['a,b\n1\n', 'f.csv:2:1: 1 of 2 fields: b is missing'],
    ['a,b\n1,2\n\n3,4\n', 'f.csv:3:1: 1 of 2 fields: b is missing'],
    ['a,b\n1,2,3\n', 'f.csv:2:5: 3 fields under a header of 2; quote a field that has commas'],
    ['a,b\n1,"2\n', 'f.csv:2:3: the quote that starts here is never closed'],
    ['a,b\n1,x"y\n', 'f.csv:2:4: a quote inside a field: quote the whole field, double the quote'],
    ['a,b\n"1"x,2\n', 'f.csv:2:4: a comma or the end of the line was expected after the quote'],
  ])('%j', ([text, message]) => {
    expect(() => texts(text!)).toThrow(message);
  });
});
