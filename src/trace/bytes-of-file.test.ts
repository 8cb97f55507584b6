import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import { Prng } from '#base/prng';
import { bytesOfFile } from './bytes-of-file.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'dxpu-bytes-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function fileOf(bytes: Uint8Array): Promise<string> {
  const file = path.join(folder, 'trace.json');
  await writeFile(file, bytes);
  return file;
}

/** What can be read of the file, and the error that ended it. */
async function readAll(
  file: string,
): Promise<{ readonly bytes: Buffer; readonly error: DxpuError | undefined }> {
  const read: Buffer[] = [];
  try {
    for await (const piece of bytesOfFile(file)) read.push(Buffer.from(piece));
  } catch (thrown) {
    if (!(thrown instanceof DxpuError)) throw thrown;
    return { bytes: Buffer.concat(read), error: thrown };
  }
  return { bytes: Buffer.concat(read), error: undefined };
}

/** Some digits that do not pack too well. */
function text(length: number): Buffer {
  const prng = new Prng(4);
  return Buffer.from(Array.from({ length }, () => 0x30 + prng.below(10)));
}

describe('bytesOfFile', () => {
  const content = text(3_000_000);

  it.each([
    ['plain', content],
    ['gzip', gzipSync(content)],
    [
      'gzip of two parts',
      Buffer.concat([gzipSync(content.subarray(0, 1234)), gzipSync(content.subarray(1234))]),
    ],
  ])('reads a file that is %s', async (_, bytes) => {
    const { bytes: read, error } = await readAll(await fileOf(bytes));
    expect(error).toBeUndefined();
    expect(read.equals(content)).toBe(true);
  });

  it('counts the bytes as they lie in the file', async () => {
    const packed = gzipSync(content);
    const file = await fileOf(packed);
    const counts: number[] = [];
    for await (const _ of bytesOfFile(file, { onBytes: (bytes) => counts.push(bytes) })) continue;
    expect(counts.at(-1)).toBe(packed.length);
    expect(counts).toEqual(counts.toSorted((a, b) => a - b));
  });

  it.each([0.01, 0.5, 0.999])(
    'yields what comes before the end of cut gzip, %f of it',
    async (share) => {
      const packed = gzipSync(content);
      const length = Math.floor(packed.length * share);
      const { bytes, error } = await readAll(await fileOf(packed.subarray(0, length)));
      expect(error?.code).toBe('data_loss');
      expect(error?.details['offset']).toBe(length);
      expect(error?.message).toContain(`ends too early, after byte ${length}`);
      expect(bytes.equals(content.subarray(0, bytes.length))).toBe(true);
      // Deflate holds back less than a block.
      expect(bytes.length).toBeGreaterThan(content.length * share - 70_000);
    },
  );

  it('yields what comes before damage in gzip', async () => {
    const packed = gzipSync(content);
    const at = Math.floor(packed.length / 2);
    packed.fill(0xff, at, at + 64);
    const { bytes, error } = await readAll(await fileOf(packed));
    expect(error?.code).toBe('data_loss');
    // Wrong digits may only show in the check sum at the end.
    expect(error?.details['offset']).toBeGreaterThan(at - 70_000);
    const before = Math.floor(content.length / 2) - 200_000;
    expect(bytes.length).toBeGreaterThan(before);
    expect(bytes.subarray(0, before).equals(content.subarray(0, before))).toBe(true);
  });

  // All of a small file was lost: zlib keeps back what it has of a piece with a fault in it.
  it('yields all that comes before damage, byte by byte', async () => {
    const small = text(20_000);
    const packed = gzipSync(small);
    packed.fill(0xff, packed.length - 8);
    const { bytes, error } = await readAll(await fileOf(packed));
    expect(error?.message).toMatch(/is damaged after byte \d+/);
    expect(error?.details['offset']).toBeGreaterThan(packed.length - 9);
    expect(bytes.equals(small)).toBe(true);
  });

  // gzip itself lets it pass; here it took the whole file along.
  it.each([text(20_000), content])(
    'yields all of gzip with something else behind it',
    async (all) => {
      const packed = gzipSync(all);
      const junk = Buffer.from('-- end of upload --');
      const { bytes, error } = await readAll(await fileOf(Buffer.concat([packed, junk])));
      expect(bytes.equals(all)).toBe(true);
      expect(error?.details).toMatchObject({ offset: packed.length, trailing: true });
    },
  );

  it('has nothing of an empty file', async () => {
    expect(await readAll(await fileOf(Buffer.alloc(0)))).toEqual({
      bytes: Buffer.alloc(0),
      error: undefined,
    });
  });

  it('says that there is no such file, and that a folder is none', async () => {
    const missing = await readAll(path.join(folder, 'missing.json'));
    expect(missing.error?.code).toBe('not_found');
    expect(missing.error?.message).toBe(
      `Cannot read ${path.join(folder, 'missing.json')}: there is no such file.`,
    );
    const ofFolder = await readAll(folder);
    expect(ofFolder.error?.code).toBe('invalid_argument');
    expect(ofFolder.error?.message).toContain(`${folder} is a folder`);
  });

  it('ends when told so', async () => {
    const file = await fileOf(content);
    const abort = new AbortController();
    const read = async (): Promise<void> => {
      for await (const _ of bytesOfFile(file, { signal: abort.signal })) abort.abort();
    };
    await expect(read()).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('lets go of a file that is not read to its end', async () => {
    for (const bytes of [content, gzipSync(content)]) {
      const file = await fileOf(bytes);
      for await (const _ of bytesOfFile(file)) break;
      expect((await readAll(file)).bytes.length).toBe(content.length);
    }
  });
});
