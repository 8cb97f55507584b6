import { expect, it } from 'vitest';
import { IterationRanges } from './iteration-ranges.ts';

/** Labels of the iterations found among ranges given as [name, start, end, thread]. */
function found(...ranges: readonly (readonly [string, number, number, string?])[]): string[] {
  const finder = new IterationRanges();
  for (const [name, start, end, thread = '1'] of ranges) finder.add(thread, name, start, end);
  return finder.iterations().map(({ label }) => label);
}

it.each([
  ['step 1', 'step 2'],
  ['iteration_7', 'iteration_9'],
  ['Iter:0', 'Iter:1'],
  ['train_step 10', 'train_step 11'],
  ['ProfilerStep#3', 'ProfilerStep#4'],
  ['batch 1', 'batch 2'],
])('%s, %s are iterations', (first, second) => {
  expect(found([first, 0, 10], [second, 10, 20])).toEqual([first, second]);
});

it.each([
  ['Compute & Residual 0', 'Compute & Residual 10'],
  ['forward', 'backward'],
  ['MPI_Send', 'MPI_Send'],
  ['step_size', 'step_count'],
  ['optimizer', 'optimizer'],
])('%s, %s are none', (first, second) => {
  expect(found([first, 0, 10], [second, 10, 20])).toEqual([]);
});

it('a name without a number is one when it comes again and again', () => {
  expect(found(['train step', 0, 10])).toEqual([]);
  expect(found(['train step', 20, 30], ['train step', 0, 10])).toEqual([
    'train step #1',
    'train step #2',
  ]);
});

it('ranges that overlap, count backwards or mix with unnumbered ones are none', () => {
  expect(found(['step 1', 0, 10], ['step 2', 5, 20])).toEqual([]);
  expect(found(['step 2', 0, 10], ['step 1', 10, 20])).toEqual([]);
  expect(found(['step 1', 0, 10], ['step 1', 10, 20])).toEqual([]);
});

it('threads are looked at apart; the family that covers the most time wins', () => {
  expect(found(['step 1', 0, 10, '1'], ['step 2', 10, 20, '2'])).toEqual([]);
  expect(
    found(
      ['iteration 1', 0, 100],
      ['batch 1', 0, 40],
      ['batch 2', 50, 90],
      ['batch 3', 110, 140],
      ['iteration 2', 100, 200],
    ),
  ).toEqual(['iteration 1', 'iteration 2']);
});
