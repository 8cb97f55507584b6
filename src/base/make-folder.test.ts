import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { errnoReason, makeFolder, removeFolders } from './make-folder.ts';

const root = mkdtempSync(path.join(os.tmpdir(), 'dxpu-folder-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('making a folder', () => {
  it('makes what is missing, for this user alone, and says what it made', () => {
    const deep = path.join(root, 'a', 'b');
    expect(makeFolder(deep)).toEqual([path.join(root, 'a'), deep]);
    expect(statSync(deep).mode & 0o777).toBe(0o700);
    expect(makeFolder(deep)).toEqual([]);
    removeFolders([path.join(root, 'a'), deep]);
    expect(existsSync(path.join(root, 'a'))).toBe(false);
  });

  it('leaves folders that hold something', () => {
    const made = makeFolder(path.join(root, 'full'));
    writeFileSync(path.join(root, 'full', 'x'), '');
    removeFolders(made);
    expect(existsSync(path.join(root, 'full', 'x'))).toBe(true);
  });

  // Node's recursive mkdir never came back from there.
  it.skipIf(process.platform !== 'linux')('ends on procfs (skipped: not Linux)', () => {
    expect(() => makeFolder('/proc/dxpu/x')).toThrow(
      /^cannot make the folder \/proc\/dxpu: \/proc takes no folders$/,
    );
  });

  it('names the file that is in the way, at the end or on the way', () => {
    const file = path.join(root, 'file');
    writeFileSync(file, '');
    expect(() => makeFolder(file)).toThrow(`${file} is there and is not a folder`);
    expect(() => makeFolder(path.join(file, 'x', 'y'))).toThrow(
      `${file} is there and is not a folder`,
    );
  });

  it('names a link that leads nowhere', () => {
    const loop = path.join(root, 'loop');
    symlinkSync(loop, loop);
    expect(() => makeFolder(path.join(loop, 'x'))).toThrow(/links lead in a circle/);
  });

  it.each(['EACCES', 'EROFS', 'ENOSPC'])('has words for %s', (code) => {
    const error = Object.assign(new Error(`${code}: raw`), { code });
    expect(errnoReason(error)).not.toContain(code);
  });
});
