import { expect, describe, it } from 'vitest';
import { answerCsv } from './answer-csv.ts';
import { answerPage } from './answer-page.ts';
import { answerPlot } from './answer-plot.ts';
import { answerText } from './answer-text.ts';
import { allocatedAt, findings, groupsOf, sharedPcts, spanWords } from './answer-words.ts';
import type { SimulateResult, SimulateRun } from './result.ts';
import { wholeResult } from './shard.ts';

const run = (
  design: SimulateRun['design'],
  seed: number,
  points: readonly [number, number][],
  setting: SimulateRun['setting'] = {},
): SimulateRun => ({
  design,
  policy: 'fgd',
  seed,
  setting,
  gpus: 8,
  servers: 2,
  requests: 10,
  placed: 8,
  unplaced: {
    model: 0,
    'no-cpu-beside-gpu': 2,
    'no-slot': 0,
    fragmentation: 0,
    'no-gpu-beside-cpu': 0,
  },
  curve: points.map(([arrivedPct, allocatedPct]) => ({ arrivedPct, allocatedPct })),
});

const answer = (runs: SimulateRun[], fewest?: SimulateResult['fewest']): SimulateResult =>
  wholeResult({ inputs: [], runs, fewest });

describe('curves', () => {
  const [group] = groupsOf([
    run('pool', 1, [
      [10, 10],
      [90, 90],
      [110, 95],
    ]),
    run('pool', 2, [
      [20, 20],
      [100, 90],
      [120, 96],
    ]),
  ]);

  it('have a straight line over gaps', () => {
    // 90 + (95 − 90) ÷ 2 = 92.5 and 90: mean 91.25, deviation 2.5 ÷ √2.
    const at = allocatedAt(group!, 100);
    expect(at?.mean).toBe(91.25);
    expect(at?.stdev).toBeCloseTo(2.5 / Math.SQRT2, 12);
  });

  it('are shown where all of them reach', () => {
    expect([sharedPcts([group!]).at(0), sharedPcts([group!]).at(-1)]).toEqual([20, 110]);
    expect(allocatedAt(group!, 111)).toBeUndefined();
    expect(sharedPcts([])).toEqual([]);
  });
});

describe('findings', () => {
  const at100 = (design: SimulateRun['design'], values: readonly number[]): SimulateRun[] =>
    values.map((value, seed) => run(design, seed, [[100, value]]));

  it('say what a pool allocates more, or less', () => {
    expect(findings(answer([...at100('server', [90, 90]), ...at100('pool', [92, 92])]))).toEqual([
      'At 100 % arrived, best of each design: pool fgd: 92.00 %; server fgd: 90.00 %; the pool allocates 2.00 points more.',
    ]);
    expect(findings(answer([...at100('server', [93]), ...at100('pool', [92])]))[0]).toContain(
      'the pool allocates 1.00 points less',
    );
  });

  it('say where it may be chance', () => {
    // Deviations √2, so three standard errors are 3 × √(2 ÷ 2 + 2 ÷ 2) = 4.2.
    const runs = [...at100('server', [89, 91]), ...at100('pool', [91, 93])];
    expect(findings(answer(runs))[0]).toContain('2.00 points apart, which is within chance');
  });

  it('say where a pool needs more GPUs', () => {
    const row = { policy: 'fgd', setting: {}, seeds: 1, demandGpus: 8, sharePct: 99, servers: 2 };
    const fewest = [
      { ...row, design: 'server' as const, gpus: 10 },
      { ...row, design: 'pool' as const, gpus: 11 },
    ];
    expect(findings(answer([], fewest))).toEqual([
      'Fewest GPUs for the same demand: pool fgd: 11; server fgd: 10; the pool needs 1 more, 10 %.',
    ]);
    const none = [{ ...row, design: 'server' as const, gpus: null, servers: null }];
    expect(findings(answer([], none))).toEqual([]);
    const text = answerText(answer([run('server', 1, [[100, 9]])], none), 100).join('\n');
    expect(text).toContain('over 4 times the list');
  });

  it('are none of one design alone', () => {
    expect(findings(answer(at100('pool', [92])))).toEqual([]);
  });
});

describe('an answer', () => {
  const swept = answer([
    run(
      'server',
      1,
      [
        [50, 50],
        [100, 90],
      ],
      { untilPct: 130 },
    ),
    run(
      'pool',
      1,
      [
        [50, 50],
        [100, 91],
      ],
      { untilPct: 130, slots: 8 },
    ),
    run(
      'pool',
      1,
      [
        [50, 50],
        [100, 92],
      ],
      { untilPct: 130, slots: 16 },
    ),
  ]);

  it('has columns for what is swept, and lines for what is not', () => {
    const lines = answerText(swept, 100);
    expect(lines).toContain('design  policy  slots  at 80 %  at 100 %  not placed  mostly');
    // At 80 %: 50 + (92 − 50) × 30 ÷ 50 = 75.2.
    expect(lines).toContain(
      'pool    fgd        16    75.20     92.00        20 %  no CPU beside a free GPU',
    );
    expect(lines.at(-1)).toBe('pool: until % 130');
  });

  it('is CSV with a row for each point', () => {
    expect(answerCsv(swept)).toEqual([
      // `untilPct` is of the setting, `arrivedPct` of the point.
      'kind,design,policy,untilPct,slots,seeds,arrivedPct,allocatedPctMean,allocatedPctStdev',
      'allocated,server,fgd,130,,1,50,50,0',
      'allocated,server,fgd,130,,1,100,90,0',
      'allocated,pool,fgd,130,8,1,50,50,0',
      'allocated,pool,fgd,130,8,1,100,91,0',
      'allocated,pool,fgd,130,16,1,50,50,0',
      'allocated,pool,fgd,130,16,1,100,92,0',
    ]);
  });

  it('is a picture and a page, the same every time', () => {
    expect(answerPlot(swept)).toBe(answerPlot(swept));
    expect(answerPlot(swept)).toContain('pool fgd, slots 16');
    const page = answerPage(swept, 'Made by a test.');
    expect(page).toContain('the pool allocates 2.00 points more');
    expect(page).toContain('Requests not placed, and why');
  });
});

it.each([
  [40, '40 s'],
  [1500, '25 min'],
  [11_520, '3.2 h'],
  [354_240, '4.1 d'],
])('%d seconds are %s', (seconds, words) => expect(spanWords(seconds)).toBe(words));
