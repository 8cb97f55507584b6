import { describe, expect, it } from 'vitest';
import { reloadText } from './lifecycle.ts';

describe('what reload says', () => {
  it('counts rows as people do', () => {
    expect(reloadText('box-b1', { rows: 1, contained: [] })).toBe('box-b1: 1 row in force');
    expect(reloadText('box-b1', { rows: 0, contained: [] })).toBe('box-b1: 0 rows in force');
  });

  // It once said that rows were in force, and not that nothing passes them.
  it('names contained slots with the way out, and what was not taken', () => {
    const contained = [{ slot: 1, reason: 'link to box b1 is down: gone; raise its generation' }];
    const ignored = 'only the table was reloaded; what changed in paths needs a restart';
    expect(reloadText('host-h1', { rows: 2, contained, ignored })).toBe(
      'host-h1: 2 rows in force, 1 contained; only the table was reloaded; what changed in paths ' +
        'needs a restart\n' +
        '  slot 1 is contained: link to box b1 is down: gone; raise its generation',
    );
  });
});
