import { expect, it } from 'vitest';
import { csvFields } from './csv-line.ts';

it.each<readonly [string, string[] | undefined]>([
  ['', ['']],
  ['a,b', ['a', 'b']],
  ['a,,', ['a', '', '']],
  ['"a,b",c', ['a,b', 'c']],
  ['"say ""hi""",', ['say "hi"', '']],
  ['"",""', ['', '']],
  ['1.5,"f(int, int) [7]"', ['1.5', 'f(int, int) [7]']],
  ['"open', undefined],
  ['"a"b,c', undefined],
  ['a"b,c', ['a"b', 'c']],
])('%s', (line, fields) => {
  expect(csvFields(line)).toEqual(fields);
});
