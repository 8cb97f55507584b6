import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { imagePart } from './image-parts.ts';

let images = '';
beforeEach(() => {
  images = mkdtempSync(path.join(os.tmpdir(), 'dxpu-images-'));
});
afterEach(() => rmSync(images, { recursive: true }));

const makes = (text: string) => async (part: string) => {
  writeFileSync(path.join(part, 'content'), text);
  return { text };
};

describe('a part of the images', () => {
  it('is made once, and found from then on', async () => {
    const made = await imagePart(images, 'guest', makes('one'));
    expect(made).toEqual({ folder: path.join(images, 'guest'), label: { text: 'one' } });
    expect(await imagePart(images, 'guest', makes('two'))).toEqual(made);
    expect(readdirSync(images)).toEqual(['guest']);
  });

  it('is made by one of several who ask at once; the others wait for it', async () => {
    let begun = 0;
    let go = (): void => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const slowly = async (part: string) => {
      begun += 1;
      await gate;
      return await makes('one')(part);
    };
    const all = [1, 2, 3].map(() => imagePart(images, 'guest', slowly));
    while (begun === 0) await new Promise(setImmediate);
    go();
    const labels = (await Promise.all(all)).map(({ label }) => label);
    expect(labels).toEqual([{ text: 'one' }, { text: 'one' }, { text: 'one' }]);
    expect(begun).toBe(1);
  });

  it('is not there after a failure, and what was begun is gone; the next makes it', async () => {
    const broken = imagePart(images, 'guest', async (part) => {
      await makes('half')(part);
      throw new Error('the mirror is gone');
    });
    await expect(broken).rejects.toThrow('the mirror is gone');
    expect(readdirSync(images)).toEqual([]);
    expect((await imagePart(images, 'guest', makes('one'))).label).toEqual({ text: 'one' });
  });

  it('does not count when whoever made it was killed; what that one left goes', async () => {
    const left = path.join(images, '.unfinished-guest-1');
    mkdirSync(left);
    writeFileSync(path.join(left, 'content'), 'half');
    // As if killed by an older version, in the place itself: no label, no part.
    mkdirSync(path.join(images, 'guest'));
    writeFileSync(path.join(images, 'guest', 'content'), 'half');
    expect((await imagePart(images, 'guest', makes('one'))).label).toEqual({ text: 'one' });
    expect(existsSync(left)).toBe(false);
  });

  it('says what to do about a label that is damaged', async () => {
    mkdirSync(path.join(images, 'guest'));
    writeFileSync(path.join(images, 'guest', 'part.json'), '{"text":');
    await expect(imagePart(images, 'guest', makes('one'))).rejects.toThrow(
      `part.json is damaged: remove the folder ${path.join(images, 'guest')}`,
    );
  });
});
