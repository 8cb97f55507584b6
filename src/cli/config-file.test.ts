import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { DxpuError } from '#base/errors';
import { ConfigFile } from './config-file.ts';
import * as schema from './config-schema.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-config-file-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = path.join(folder, 'c.yaml');

const anything = schema.fields({ a: z.unknown().optional(), s: schema.size.optional() });

/** What is said of these bytes, without the name of the file. */
function said(content: string | Buffer): string {
  writeFileSync(file, content);
  try {
    new ConfigFile(file).parse(anything);
  } catch (error) {
    expect(error).toBeInstanceOf(DxpuError);
    return (error as DxpuError).message.replace(`${file}:`, '');
  }
  return '';
}

describe('a file that is no configuration', () => {
  it('is not quoted whole: a mistyped scalar of 500 kB gives a line', () => {
    const message = said(`a: 1\ns: "${'x'.repeat(500_000)}"\n`);
    expect(message).toMatch(/^2:4: s: "x{59}… is not a size/);
    expect(message.length).toBeLessThan(300);
    expect(said(`${'k'.repeat(500_000)}: 1\n`).length).toBeLessThan(1200);
    expect(said(`a: ${'*'.repeat(10)}${'x'.repeat(500_000)}\n`).length).toBeLessThan(300);
  });

  it('of more than 1 MiB is refused, a device that never ends too', () => {
    expect(said(`a: "${'x'.repeat(2 ** 20)}"\n`)).toContain('more than 1 MiB');
    expect(() => new ConfigFile('/dev/zero')).toThrow('/dev/zero: more than 1 MiB');
  });

  it.each([
    [
      'bytes that are not UTF-8',
      Buffer.from('a: 1\ns: "\xc3\xa9 \xff"\n', 'latin1'),
      '2:7: a byte that is not UTF-8',
    ],
    ['a replacement character of its own', Buffer.from('# \ufffd\na: \ufffd\n'), ''],
    [
      'both',
      Buffer.concat([Buffer.from('# \ufffd\n'), Buffer.from([0x80])]),
      '2:1: a byte that is not UTF-8',
    ],
    ['UTF-16', Buffer.from('\ufeffa: 1\n', 'utf16le'), '1:1: this is UTF-16; save it as UTF-8'],
    ['a NUL', 'a: 1\nb: \0\n', '2:4: the control character 0x00'],
  ])('with %s', (_name, content, message) => {
    if (message === '') expect(said(content)).toBe('');
    else expect(said(content)).toContain(message);
  });

  it.each([
    ['two documents', 'a: 1\n---\na: 2\n', /^2:1: a second document begins here: one file is one$/],
    ['a list as a name', 'a: 1\n? [x, y]\n: 3\n', /^2:3: the name of a field must be plain text/],
    ['a group as a name', '{ { x: 1 }: 2 }\n', /^1:3: the name of a field must be plain text/],
    ['a tag', 'a: 1\ns: !!js/function "x"\n', /^2:4: !!js\/function: a configuration has no tags$/],
    ['a tag of YAML', 'a: 1\ns: !!str 5\n', /^2:4: !!str: a configuration has no tags$/],
    ['a tag of a group', 'a: !!map\n  b: 1\n', /^1:4: !!map: a configuration has no tags$/],
    ['a tag of a name', '!!str a: 1\n', /^1:1: !!str: a configuration has no tags$/],
    ['a tag before an anchor', 'a: !!str &x 1\n', /^1:13: tag:yaml.org,2002:str: .* no tags$/],
    ['a tag of nothing', 'a: !!null\n', /^1:4: !!null: a configuration has no tags$/],
    ['a directive', '%FOO bar\n---\na: 1\n', /^1:1: %FOO .*: a configuration has no directives$/],
    ['brackets in brackets', `a: 1\nb: ${'['.repeat(5000)}`, /^2:36: more than 32 levels/],
    ['dashes on a line', `a:\n${'- '.repeat(5000)}x`, /^2:\d+: more than 32 levels/],
    [
      'indentation',
      Array.from({ length: 100 }, (_, level) => `${' '.repeat(level)}a:\n`).join(''),
      /^3[45]:\d+: more than 32 levels/,
    ],
  ])('with %s says so, and where', (_name, content, message) => {
    expect(said(content)).toMatch(message);
  });

  it('shows twenty problems of many', () => {
    const lines = said(Array.from({ length: 500 }, (_, n) => `k${n}: 1\n`).join('')).split('\n');
    expect(lines).toHaveLength(21);
    expect(lines.at(-1)).toBe('and 480 more');
  });
});
