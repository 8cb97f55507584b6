import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  checkTarget,
  dropPending,
  keepPending,
  PendingFile,
  readWholeText,
  writeWhole,
} from './whole-file.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-whole-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string): string => path.join(folder, name);

describe('a file written whole', () => {
  it('replaces what was there, and leaves nothing else', () => {
    writeFileSync(at('a.svg'), 'old');
    writeWhole(at('a.svg'), 'new');
    expect(readFileSync(at('a.svg'), 'utf8')).toBe('new');
    expect(readdirSync(folder)).toEqual(['a.svg']);
  });

  it('leaves what was there when it fails', () => {
    mkdirSync(at('taken'));
    expect(() => writeWhole(at('taken'), 'x')).toThrow(/cannot write .*taken/);
    expect(readdirSync(folder)).toEqual(['a.svg', 'taken']);
  });
});

describe('a file written in pieces', () => {
  it('is written as they come, so it may be longer than any string (it was joined first)', () => {
    const mib = 'x'.repeat(2 ** 20);
    const sizes: number[] = [];
    function* pieces(): Generator<string> {
      for (let piece = 0; piece < 4; piece++) {
        yield mib;
        const written = readdirSync(folder).find((name) => name.startsWith('.long'));
        sizes.push(statSync(at(written!)).size);
      }
      yield 'end';
    }
    const pending = new PendingFile(at('long'));
    pending.addPieces(pieces());
    pending.end();
    keepPending(at('long'));
    expect(sizes).toEqual([1, 2, 3, 4].map((count) => count * 2 ** 20));
    expect(readFileSync(at('long'), 'utf8')).toBe(`${mib.repeat(4)}end`);
    expect(readdirSync(folder).filter((name) => name.startsWith('.long'))).toEqual([]);
  });

  // It was written through, to wherever that leads.
  it('does not follow what lies at the place where it waits', () => {
    writeFileSync(at('secret'), 'kept');
    symlinkSync(at('secret'), at(`.out.${process.pid}.tmp`));
    const pending = new PendingFile(at('out'));
    pending.add('written');
    pending.end();
    expect(readFileSync(at('secret'), 'utf8')).toBe('kept');
    dropPending(at('out'));
    expect(readdirSync(folder).filter((name) => name.includes('out'))).toEqual([]);
  });
});

describe('a file read whole', () => {
  it('names itself and the way out when it is longer than any string (it said only that of strings)', () => {
    writeFileSync(at('huge.csv'), '');
    // A hole: takes no space on the disk.
    truncateSync(at('huge.csv'), 600 * 1024 * 1024);
    expect(() => readWholeText(at('huge.csv'), 'give fewer rows')).toThrow(
      /cannot read .*huge\.csv: it has 600 MiB, of at most \d+: give fewer rows/,
    );
    rmSync(at('huge.csv'));
  });
});

describe('the check of a target', () => {
  it('refuses an input under any name', () => {
    writeFileSync(at('trace.html'), '{}');
    symlinkSync(at('trace.html'), at('link.html'));
    for (const name of ['trace.html', 'link.html', 'taken/../trace.html']) {
      expect(() => checkTarget(`${folder}/${name}`, [at('trace.html')])).toThrow(
        /is one of the inputs: give another name/,
      );
    }
    expect(() => checkTarget(at('other.html'), [at('trace.html'), at('missing')])).not.toThrow();
  });

  it('refuses a folder, a device, and a place that is not there', () => {
    expect(() => checkTarget(at('taken'), [])).toThrow(/it is a folder/);
    expect(() => checkTarget('/dev/null', [])).toThrow(/it is no regular file/);
    expect(() => checkTarget(at('nowhere/a.svg'), [])).toThrow(/there is no such folder/);
    expect(() => checkTarget(at('a.svg/b.svg'), [])).toThrow(/is no folder/);
  });
});
