import { describe, expect, it } from 'vitest';
import { cpioArchive } from './cpio.ts';

/** As the kernel's buffer-format.rst lays it out: a magic, then 13 fields of 8 digits. */
const header = (fields: readonly number[]): string =>
  `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`;

describe('an archive for the first root file system', () => {
  it('has a header, a name and content an entry, each filled up to four bytes, and an end', () => {
    const bytes = Buffer.from('hello');
    const text = cpioArchive([
      { kind: 'folder', path: 'bin' },
      { kind: 'file', path: 'bin/tool', bytes, isProgram: true },
      { kind: 'link', path: 'sh', target: 'bin/tool' },
      { kind: 'character-device', path: 'dev', major: 5, minor: 1 },
    ]).toString('latin1');
    // inode, mode, user, group, links, time, size, major, minor, major and minor it is, name, sum
    expect(text).toBe(
      [
        // 110 of the header and 4 of the name are 114: two more to the next multiple of four.
        `${header([1, 0o040755, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4, 0])}bin\0\0\0`,
        // 110 + 9 = 119, one more; 5 of content, three more.
        `${header([2, 0o100755, 0, 0, 1, 0, 5, 0, 0, 0, 0, 9, 0])}bin/tool\0\0hello\0\0\0`,
        `${header([3, 0o120777, 0, 0, 1, 0, 8, 0, 0, 0, 0, 3, 0])}sh\0\0\0\0bin/tool`,
        `${header([4, 0o020600, 0, 0, 1, 0, 0, 0, 0, 5, 1, 4, 0])}dev\0\0\0`,
        // 110 + 11 = 121, three more.
        `${header([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 11, 0])}TRAILER!!!\0\0\0\0`,
      ].join(''),
    );
  });
});
