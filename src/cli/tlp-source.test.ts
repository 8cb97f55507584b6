import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { encodeHeader, encodePacket } from './pcapng.ts';
import { type SourceItem, TlpSource } from './tlp-source.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-source-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const TLP = '05000001ca9a5c0ff74807a4';

async function read(content: string | Uint8Array, into: SourceItem[] = []): Promise<SourceItem[]> {
  const file = path.join(folder, 'input');
  writeFileSync(file, content);
  for await (const items of new TlpSource(file).batches()) into.push(...items);
  return into;
}

const tlpsOf = (items: readonly SourceItem[]): (string | undefined)[] =>
  items.map(({ number, tlp }) => `${number} ${tlp && Buffer.from(tlp).toString('hex')}`);

describe('hexadecimal text', () => {
  it.each([
    ['line feeds', `${TLP}\n${TLP}\n`],
    ['both', `${TLP}\r\n${TLP}\r\n`],
    ['returns alone (regression: one bad line)', `${TLP}\r${TLP}\r`],
    ['a byte order mark (regression: a bad line)', `\ufeff${TLP}\n${TLP}`],
  ])('with %s', async (_name, text) => {
    expect(tlpsOf(await read(text))).toEqual([`1 ${TLP}`, `2 ${TLP}`]);
  });

  it('whose line ends are halves of two pieces of the file has no empty lines', async () => {
    // Pieces are 64 KiB: the return of line 1 is the last byte of the first.
    const first = TLP.padEnd(65_535);
    expect(tlpsOf(await read(`${first}\r\n${TLP}\r\n`))).toEqual([`1 ${TLP}`, `2 ${TLP}`]);
  });

  it('names bad lines after a good one, and refuses what has none (regression: 199 errors)', async () => {
    const bad = 'what\n'.repeat(20);
    const items = await read(`${TLP}\n${bad}`);
    expect(items.filter(({ error }) => error !== undefined)).toHaveLength(20);
    const seen: SourceItem[] = [];
    await expect(read(bad, seen)).rejects.toThrow('is neither a pcapng capture nor hexadecimal');
    expect(seen).toEqual([]);
  });
});

describe('what is something else', () => {
  const capture = Buffer.concat([
    encodeHeader('if', 'app'),
    encodePacket({ timeNs: 1n, slot: 0, direction: 'up', tlp: Buffer.from(TLP, 'hex') }),
  ]);
  const damaged = Buffer.from(capture);
  damaged[0] = 0x0b;
  it.each<[string, Uint8Array | string, string]>([
    ['a classic pcap file', Buffer.from('d4c3b2a1020004000000000000000000', 'hex'), 'editcap'],
    ['one of the other byte order', Buffer.from('a1b23c4d00020004', 'hex'), 'editcap -F pcapng'],
    ['a compressed file', Buffer.from('1f8b080000000000', 'hex'), 'gunzip'],
    ['text in UTF-16', Buffer.from(`\ufeff${TLP}\n`, 'utf16le'), 'UTF-16'],
    ['a capture whose first byte is wrong', damaged, 'begins with 0b0d0d0a, not 0a0d0d0a'],
    ['a listing of xxd', '00000000: 0500 0001 ca9a  ......\n', 'is a listing of xxd'],
  ])('%s is named, with the way out (regression: bad lines)', async (_name, content, message) => {
    await expect(read(content)).rejects.toThrow(message);
  });

  it('the first bytes of a capture are damage (regression: an empty text)', async () => {
    await expect(read(capture.subarray(0, 4))).rejects.toThrow('it ends within a block');
  });

  it('a capture damaged in the middle gives what is before', async () => {
    const seen: SourceItem[] = [];
    await expect(read(capture.subarray(0, capture.length - 1), seen)).rejects.toThrow('damaged');
    expect(seen).toEqual([]);
    const two = Buffer.concat([capture, capture.subarray(0, 30)]);
    await expect(read(two, seen)).rejects.toThrow('damaged');
    expect(tlpsOf(seen)).toEqual([`1 ${TLP}`]);
  });

  it('a folder is named as one (regression: EISDIR)', async () => {
    const items = new TlpSource(folder).batches();
    await expect(items.next()).rejects.toThrow(`cannot read ${folder}: it is a folder`);
  });
});
