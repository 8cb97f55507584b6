import { describe, expect, it } from 'vitest';
import { commonFolder, shortNames } from './answer-names.ts';

describe('short names of files', () => {
  it('leaves out the folder all files are in, and endings', () => {
    expect(commonFolder(['/a/b/x.json', '/a/c/y.json'])).toBe('/a/');
    expect(shortNames(['/a/b/x.json.gz', '/a/c/y.pt.trace.json'])).toEqual(['b/x', 'c/y']);
  });

  // Above the root the search for a common folder began anew, for ever: the command hung.
  it('ends where some names are absolute and others are not', () => {
    expect(commonFolder(['/a/x.json', 'b/y.json'])).toBe('');
    expect(commonFolder(['b/y.json', '/a/x.json'])).toBe('');
    expect(commonFolder(['/x.json', './x.json'])).toBe('');
    expect(shortNames(['/a/x.json', 'b/y.json'])).toEqual(['/a/x', 'b/y']);
  });
});
