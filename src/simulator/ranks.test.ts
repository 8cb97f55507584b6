import { describe, expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { ChangeLog } from './change-log.ts';
import type { Demand } from './demand.ts';
import { NO_ROOM, Ranks } from './ranks.ts';

const demandOf = (cpuMilli: number): Demand => ({
  cpuMilli,
  memoryMib: 0,
  gpus: 0,
  gpuMilli: 0,
  models: [],
});
const KINDS = [demandOf(1), demandOf(2), demandOf(3)];

describe('ranks', () => {
  it('name the place that looking at all of them names, whenever they are asked', () => {
    const change = fc.record({
      place: fc.nat({ max: 4 }),
      score: fc.oneof(fc.nat({ max: 3 }), fc.constant(NO_ROOM)),
      asked: fc.option(fc.nat({ max: 2 })),
    });
    fc.assert(
      // 2000 changes are more than the log of 5 places keeps.
      fc.property(fc.array(change, { maxLength: 60 }), fc.boolean(), (changes, isLong) => {
        const scores = new Array<number>(5).fill(NO_ROOM);
        const scoreOf = (place: number, { cpuMilli }: Demand): number =>
          (scores[place] as number) * cpuMilli;
        const log = new ChangeLog(5);
        const ranks = new Ranks(5, log, scoreOf);
        for (const { place, score, asked } of changes) {
          scores[place] = score;
          for (let i = 0; i < (isLong ? 2000 : 1); i++) log.changed(place);
          if (asked === null) continue;
          const demand = KINDS[asked] as Demand;
          const all = scores.map((_, at) => scoreOf(at, demand));
          const best = Math.max(...all);
          expect(ranks.best(demand, false)).toEqual(
            best === NO_ROOM ? undefined : { place: all.indexOf(best), score: best },
          );
        }
      }),
    );
  });

  // A place was scored once for every change that a ranking had missed.
  it.each([
    [2, 'fewer changes than places', [0, 1, 0, 1]],
    [3, 'more', [0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]],
  ])('score each changed place once: %i of 8 after %s', (places, _, changes) => {
    let asked = 0;
    const log = new ChangeLog(8);
    const ranks = new Ranks(8, log, () => {
      asked += 1;
      return 0;
    });
    const [demand] = KINDS as [Demand];
    ranks.best(demand, false);
    asked = 0;
    for (const place of changes) log.changed(place);
    ranks.best(demand, false);
    expect(asked).toBe(places);
  });
});
