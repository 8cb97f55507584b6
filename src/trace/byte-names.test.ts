import { expect, it } from 'vitest';
import { ByteNames } from './byte-names.ts';

const add = (names: ByteNames, text: string): number => {
  const bytes = Buffer.from(text);
  return names.index(bytes, 0, bytes.length);
};

it('numbers names in the order they come, each once', () => {
  const names = new ByteNames();
  const texts = Array.from({ length: 1000 }, (_, index) => `kernel_${index % 700}`);
  for (const text of texts) expect(add(names, text)).toBe(Number(text.slice(7)));
  expect(names.count).toBe(700);
  expect(names.text(699)).toBe('kernel_699');
});

it('tells names apart that differ in one byte', () => {
  const names = new ByteNames();
  const long = 'x'.repeat(1000);
  const seen = new Set<number>();
  for (let at = 0; at < 1000; at += 1)
    seen.add(add(names, `${long.slice(0, at)}y${long.slice(at + 1)}`));
  expect(seen.size).toBe(1000);
  expect(names.keptBytes).toBe(1_000_000);
});

it('adds none where there is no room, and still knows the others', () => {
  const names = new ByteNames();
  add(names, 'known');
  const bytes = Buffer.from('known new');
  expect(names.index(bytes, 0, 5, false)).toBe(0);
  expect(names.index(bytes, 6, 9, false)).toBe(-1);
  expect(names.count).toBe(1);
});

it('copies what it keeps', () => {
  const names = new ByteNames();
  const bytes = Buffer.from('before');
  names.index(bytes, 0, 6);
  bytes.fill(0);
  expect(names.text(0)).toBe('before');
});

it.each([
  ['a\\"b', 'a"b'],
  ['a\\u00e4', 'aä'],
  ['a\\q', 'a\\q'],
  ['ä', 'ä'],
])('decodes %s', (written, text) => {
  const names = new ByteNames();
  expect(names.text(add(names, written))).toBe(text);
});

it('keeps a name with bad UTF-8', () => {
  const names = new ByteNames();
  expect(names.text(names.index(Uint8Array.of(0x61, 0xff, 0x62), 0, 3))).toBe('a\uFFFDb');
});
