/** Damage to files, of the kinds seen in public reports and of kinds nobody has seen. */
import type { Prng } from '#base/prng';
import type { NsysCell } from './nsys-file.ts';

/** What stands in files where a number should. */
const NUMBERS = [
  'NaN',
  'Infinity',
  '-Infinity',
  'nan',
  'null',
  '""',
  '"7"',
  '{}',
  '[]',
  '-1',
  '0',
  '-0.0',
  '1e308',
  '1e-320',
  '9223372036854775808',
  '18446744073709551616',
  '1707417525509335123',
  '99999999999999999999999999999999999999999999',
  '0.0000000000000000000000000000001',
  '--3',
  '1.2.3',
  'true',
] as const;

const JUNK = [
  '\0',
  '\u0001',
  '"',
  '\\',
  '\\u',
  '\n',
  ']',
  '}',
  '[',
  '{',
  ',',
  ':',
  '\uFEFF',
  '==',
  '(',
  ' ',
];

/** One to four mutations of a text or of bytes. */
export function mutateBytes(prng: Prng, bytes: Buffer): Buffer {
  let result = bytes;
  const times = prng.between(1, 4);
  for (let time = 0; time < times; time += 1) result = mutateOnce(prng, result);
  return result;
}

function mutateOnce(prng: Prng, bytes: Buffer): Buffer {
  if (bytes.length < 2) return Buffer.from('{');
  const at = prng.below(bytes.length);
  const length = Math.min(bytes.length - at, prng.between(1, prng.chance(0.2) ? 2000 : 40));
  const cut = (piece: Uint8Array): Buffer =>
    Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at + length)]);
  switch (prng.below(10)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
      return cut(Buffer.alloc(0));
    case 2:
      return cut(Buffer.from(Array.from({ length }, () => prng.below(256))));
    case 3:
      return cut(Buffer.from(prng.pick(JUNK).repeat(prng.chance(0.1) ? 5000 : 1)));
    case 4: {
      // The same piece again.
      const piece = bytes.subarray(at, at + length);
      return cut(Buffer.concat([piece, piece]));
    }
    case 5: {
      // A piece from elsewhere.
      const from = prng.below(bytes.length);
      return cut(bytes.subarray(from, from + length));
    }
    case 6: {
      const copy = Buffer.from(bytes);
      copy[at] = (copy[at] ?? 0) ^ (1 << prng.below(8));
      return copy;
    }
    case 7:
      return bytes.subarray(at);
    default:
      return otherNumber(prng, bytes, at);
  }
}

/** The next number behind `at`, or what is left of it, becomes something else. */
function otherNumber(prng: Prng, bytes: Buffer, at: number): Buffer {
  const isDigit = (byte: number | undefined): boolean =>
    byte !== undefined && byte >= 0x30 && byte <= 0x39;
  let start = at;
  while (start < bytes.length && !isDigit(bytes[start])) start += 1;
  let end = start;
  while (end < bytes.length && (isDigit(bytes[end]) || bytes[end] === 0x2e)) end += 1;
  return Buffer.concat([
    bytes.subarray(0, start),
    Buffer.from(prng.pick(NUMBERS)),
    bytes.subarray(end),
  ]);
}

const CELLS: readonly NsysCell[] = [
  null,
  '',
  'soon',
  '17',
  -1,
  0,
  1.5,
  0xffff_ffff,
  1e308,
  -1e308,
  2n ** 62n,
  -(2n ** 63n),
  2n ** 63n - 1n,
  Uint8Array.of(0, 255),
];

/** Changes cells, drops columns, rows and tables, or repeats rows. */
export function mutateTables(prng: Prng, tables: Record<string, Record<string, NsysCell>[]>): void {
  const times = prng.between(1, 6);
  for (let time = 0; time < times; time += 1) {
    const table = prng.pick(Object.keys(tables));
    const rows = tables[table] ?? [];
    const column = prng.pick(Object.keys(rows[0] ?? { none: 0 }));
    switch (prng.below(8)) {
      case 0:
        if (Object.keys(tables).length > 1) delete tables[table];
        break;
      case 1:
        for (const row of rows) if (Object.keys(row).length > 1) delete row[column];
        break;
      case 2:
        rows.splice(prng.below(rows.length + 1), prng.between(1, 3));
        break;
      case 3:
        rows.push(...rows.slice(0, 5).map((row) => ({ ...row })));
        break;
      case 4: {
        const cell = prng.pick(CELLS);
        for (const row of rows) row[column] = cell;
        break;
      }
      default: {
        const row = rows[prng.below(Math.max(1, rows.length))];
        if (row !== undefined) row[column] = prng.pick(CELLS);
      }
    }
  }
}
