import { describe, expect, it } from 'vitest';
import { answerText } from './answer-text.ts';
import { overheadWords } from './break-even-words.ts';
import { breakEvens, crossing } from './break-even.ts';
import type { FewestRow, SimulateRun } from './result.ts';
import { wholeResult } from './shard.ts';

type Design = FewestRow['design'];

const fewest = (
  design: Design,
  policy: string,
  gpus: number | null,
  total?: number,
  setting: FewestRow['setting'] = {},
): FewestRow => {
  const parts = { gpus: 0, servers: 0, boxes: 0, ports: 0 };
  const cost = total === undefined ? {} : { cost: { ...parts, total } };
  const setAll = { demandPct: 100, ...setting };
  const figures = { demandGpus: 100, sharePct: 99, gpus, servers: 1, seeds: 3 };
  return { design, policy, setting: setAll, ...figures, ...cost };
};

const timed = (
  design: Design,
  policy: string,
  seed: number,
  overheadPct: number,
  waitMeanS: number,
): SimulateRun =>
  ({
    design,
    policy,
    seed,
    setting: design === 'pool' ? { backfill: 100, overheadPct } : { backfill: 100 },
    gpus: 8,
    servers: 1,
    timed: { waitMeanS },
  }) as unknown as SimulateRun;

describe('the overhead at which a pool saves nothing', () => {
  it('by GPUs and by money: servers ÷ pool − 1, of the servers that do best', () => {
    const rows = breakEvens(
      [],
      [
        fewest('server', 'fgd', 110, 2000),
        fewest('server', 'best-fit', 120, 1800),
        fewest('pool', 'fgd', 100, 1900),
      ],
    );
    // 110 ÷ 100 − 1 = 10 %; 1800 ÷ 1900 − 1 = −5.2632 %.
    expect(rows.map(({ by, server, overheadPct }) => [by, server.policy, overheadPct])).toEqual([
      ['gpus', 'fgd', 10],
      ['cost', 'best-fit', -5.2632],
    ]);
    expect(rows.map(overheadWords)).toEqual(['10 %', 'none: it saves nothing']);
  });

  it('holds a pool against servers of the same demand, if there are any', () => {
    const rows = breakEvens(
      [],
      [
        fewest('server', 'fgd', 90, undefined, { demandPct: 80 }),
        fewest('server', 'fgd', 110),
        fewest('pool', 'fgd', 100, undefined, { slots: 8 }),
        fewest('pool', 'fgd', 100, undefined, { demandPct: 120 }),
        fewest('pool', 'fgd', null),
      ],
    );
    expect(rows).toEqual([
      expect.objectContaining({ setting: { demandPct: 100, slots: 8 }, overheadPct: 10 }),
    ]);
  });

  it('by waits: for each seed between the overheads swept, and then the mean', () => {
    const runs = [
      timed('server', 'fgd', 1, 0, 40),
      timed('server', 'fgd', 2, 0, 60),
      timed('server', 'first-fit', 1, 0, 900),
      timed('server', 'first-fit', 2, 0, 900),
      // Seed 1 meets 40 at 20 ÷ 40 of 10 %, 5 %; seed 2 meets 60 at 10 + 5 ÷ 20 × 10 = 12.5 %.
      ...[20, 60, 90].map((wait, at) => timed('pool', 'fgd', 1, at * 10, wait)),
      ...[20, 55, 75].map((wait, at) => timed('pool', 'fgd', 2, at * 10, wait)),
    ];
    const [row, ...others] = breakEvens(runs, []);
    expect(others).toEqual([]);
    expect(row).toEqual({
      by: 'wait',
      policy: 'fgd',
      setting: { backfill: 100 },
      server: { policy: 'fgd', setting: { backfill: 100 } },
      seeds: 2,
      overheadPct: 8.75,
      // (12.5 − 5) ÷ √2
      overheadPctStdev: 5.3033,
      sweptPct: { least: 0, most: 20 },
      none: 0,
      beyond: 0,
    });
    expect(overheadWords(row!)).toBe('8.75 ± 5.30 %');
    const text = answerText(
      wholeResult({
        inputs: [],
        runs: [],
        fewest: [fewest('server', 'fgd', 110), fewest('pool', 'fgd', 100)],
      }),
      100,
    );
    expect(text).toContain('GPUs  fgd   fgd      10 %');
  });

  it('counts seeds that have none and seeds whose overhead lies beyond', () => {
    const server = [1, 2, 3].map((seed) => timed('server', 'fgd', seed, 0, 50));
    const pool = (seed: number, ...waits: number[]): SimulateRun[] =>
      waits.map((wait, at) => timed('pool', 'fgd', seed, at * 10, wait));
    const [row] = breakEvens(
      [...server, ...pool(1, 60, 70), ...pool(2, 10, 50), ...pool(3, 40, 60)],
      [],
    );
    expect(row).toMatchObject({ seeds: 3, none: 1, beyond: 1, overheadPct: 5 });
    expect(overheadWords(row!)).toBe(
      '5.00 ± 0.00 %; waits longer even at 0 % in 1 of 3 seeds; over 10 % in 1 of 3 seeds',
    );
    const [none] = breakEvens([...server.slice(0, 1), ...pool(1, 60, 70)], []);
    expect([none?.overheadPct, overheadWords(none!)]).toEqual([
      null,
      'none: waits longer even at 0 %',
    ]);
    const [beyond] = breakEvens([...server.slice(0, 1), ...pool(1, 10, 20)], []);
    expect(overheadWords(beyond!)).toBe('over 10 %');
  });

  it('says nothing of waits where one overhead was run', () => {
    expect(
      breakEvens([timed('server', 'fgd', 1, 0, 5), timed('pool', 'fgd', 1, 0, 4)], []),
    ).toEqual([]);
  });
});

it('a line crosses where it first rises above the level', () => {
  const points = [0, 5, 9, 4].map((y, x) => ({ x, y }));
  expect([crossing(points, 7), crossing(points, -1), crossing(points, 9)]).toEqual([
    1.5,
    'none',
    'beyond',
  ]);
});
