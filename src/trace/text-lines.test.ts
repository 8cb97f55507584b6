import { expect, it } from 'vitest';
import { textLines } from './text-lines.ts';
import type { TextLine } from './text-lines.ts';

/** The lines of a text given in pieces of `size` bytes, each written over once the next is asked for. */
async function linesOf(text: string, size: number): Promise<TextLine[]> {
  async function* pieces(): AsyncGenerator<Uint8Array> {
    const bytes = Buffer.from(text);
    const piece = new Uint8Array(size);
    for (let from = 0; from < bytes.length; from += size) {
      const length = bytes.copy(piece, 0, from);
      yield piece.subarray(0, length);
      piece.fill(0x78);
    }
  }
  const lines: TextLine[] = [];
  for await (const line of textLines(pieces())) lines.push(line);
  return lines;
}

it.each([1, 3, 1000])('lines in pieces of %d bytes', async (size) => {
  expect(await linesOf('\uFEFFfirst\r\n\nthird µs\nlast', size)).toEqual([
    { text: 'first', line: 1, isEnded: true },
    { text: '', line: 2, isEnded: true },
    { text: 'third µs', line: 3, isEnded: true },
    { text: 'last', line: 4, isEnded: false },
  ]);
});

it('no bytes are no lines', async () => {
  expect(await linesOf('', 10)).toEqual([]);
});

it('of a line without end only the first MiB is kept', async () => {
  const lines = await linesOf(`${'a'.repeat(3 * 2 ** 20)}\nb`, 100_000);
  expect(lines.map(({ text }) => text.length)).toEqual([2 ** 20, 1]);
});
