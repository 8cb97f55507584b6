import { describe, expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { bar } from './text-bar.ts';
import { LEAST_WIDTH, type TextColumn, textTable } from './text-table.ts';
import { displayWidth } from './text-width.ts';

const COLUMNS: TextColumn[] = [
  { title: 'trace', squeeze: 'middle', least: 8 },
  { title: 'overhead', align: 'right' },
  { title: 'why', squeeze: 'wrap', least: 8, optional: true },
];

describe('a table', () => {
  it('is as wide as it needs to be', () => {
    expect(textTable(COLUMNS, [['rank0', '3 %', 'copies']], 80)).toEqual([
      'trace  overhead  why',
      'rank0       3 %  copies',
    ]);
  });

  it('wraps one column and takes the middle out of another', () => {
    const row = ['0123456789abcdef', '3 %', 'many copies to the device'];
    // 40 columns: 8 for overhead, 4 for gaps, 28 left for 16 and 25: 14 each.
    expect(textTable(COLUMNS, [row], 40)).toEqual([
      'trace           overhead  why',
      '0123…789abcdef       3 %  many copies to',
      '                          the device',
    ]);
  });

  it('leaves out what may be missed before it gives up columns', () => {
    const columns: TextColumn[] = [
      { title: 'trace' },
      { title: 'overhead', align: 'right' },
      { title: 'first', optional: true },
      { title: 'second', optional: true },
    ];
    const rows = [['rank0', '3 %', 'x'.repeat(12), 'y'.repeat(12)]];
    expect(textTable(columns, rows, 40)).toEqual([
      'trace  overhead  first',
      'rank0       3 %  xxxxxxxxxxxx',
    ]);
  });

  it('becomes a block a row where nothing else helps', () => {
    const columns: TextColumn[] = [{ title: 'trace' }, { title: 'overhead' }, { title: 'cause' }];
    const rows = [['a trace of some length', '3 %', 'command fetch']];
    expect(textTable(columns, rows, 40)).toEqual([
      'a trace of some length',
      '  overhead  3 %',
      '  cause     command fetch',
    ]);
  });

  it('never runs over the edge (property)', () => {
    const cell = fc.string({ maxLength: 60 });
    const column = fc.record(
      {
        title: fc.string({ maxLength: 14 }),
        align: fc.constantFrom('left' as const, 'right' as const),
        squeeze: fc.constantFrom('wrap' as const, 'middle' as const),
        optional: fc.boolean(),
      },
      { requiredKeys: ['title'] },
    );
    fc.assert(
      fc.property(
        fc
          .array(column, { minLength: 1, maxLength: 7 })
          .chain((columns) =>
            fc.tuple(
              fc.constant(columns),
              fc.array(fc.array(cell, { minLength: columns.length, maxLength: columns.length })),
            ),
          ),
        fc.integer({ min: 1, max: 130 }),
        ([columns, rows], width) => {
          for (const line of textTable(columns, rows, width)) {
            expect(displayWidth(line)).toBeLessThanOrEqual(Math.max(width, LEAST_WIDTH));
            expect(line).toBe(line.trimEnd());
          }
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe('a bar', () => {
  it('is an eighth of a column fine', () => {
    expect(bar(10, 10, 4)).toBe('████');
    // Half of 4 columns, and an eighth: 17 of 32 eighths.
    expect(bar(17, 32, 4)).toBe('██▏');
    expect(bar(1, 1e9, 4)).toBe('▏');
    expect(bar(0, 10, 4)).toBe('');
    expect(bar(5, 0, 4)).toBe('');
    expect(bar(11, 10, 4)).toBe('███›');
  });
});
