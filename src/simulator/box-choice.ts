/** Which boxes a group would give a request: one box if one has enough, several where that is allowed. */
import { type Demand, isShared } from './demand.ts';
import type { Pool } from './pool.ts';
import type { PoolPolicy } from './pool-policy.ts';

export interface BoxChoice {
  readonly score: number;
  readonly takes: readonly { readonly box: number; readonly take: number }[];
}

/** What each further box costs: more than any score of a box is worth. */
const FURTHER_BOX = 1000;

/** The best boxes of a group for whole GPUs, or one for a new shared GPU; `undefined` if none has them. */
export function chooseBoxes(
  pool: Pool,
  policy: PoolPolicy,
  group: number,
  demand: Demand,
): BoxChoice | undefined {
  const { together } = pool.hardware;
  const spread = together === 'any' || demand.gpus === 1;
  let best: BoxChoice | undefined;
  for (const model of pool.accepted(demand)) {
    if (pool.shelves.free(group, model) < demand.gpus) continue;
    if (together === 'nvlink' && demand.gpus > 1 && !pool.hasNvlink(model)) continue;
    best = better(best, oneBox(pool, policy, group, model, demand));
  }
  if (best !== undefined || !spread || isShared(demand)) return best;
  for (const model of pool.accepted(demand)) {
    if (pool.shelves.free(group, model) < demand.gpus) continue;
    best = better(best, severalBoxes(pool, policy, group, model, demand));
  }
  return best;
}

const better = (a: BoxChoice | undefined, b: BoxChoice | undefined): BoxChoice | undefined =>
  a === undefined || (b !== undefined && b.score > a.score) ? b : a;

function oneBox(
  pool: Pool,
  policy: PoolPolicy,
  group: number,
  model: number,
  demand: Demand,
): BoxChoice | undefined {
  const take = demand.gpus;
  let best = -1;
  let bestScore = -Infinity;
  for (let free = take; free <= pool.stride; free++) {
    const boxes = pool.shelves.at(group, model, free);
    const asked = policy.boxesAlike ? Math.min(1, boxes.length) : boxes.length;
    for (let i = 0; i < asked; i++) {
      const box = boxes[i] as number;
      const score = policy.scoreBox(box, take, demand);
      if (score > bestScore) {
        best = box;
        bestScore = score;
      }
    }
  }
  return best < 0 ? undefined : { score: bestScore, takes: [{ box: best, take }] };
}

/** The emptiest boxes first, so that they are few. The group has enough of the model. */
function severalBoxes(
  pool: Pool,
  policy: PoolPolicy,
  group: number,
  model: number,
  demand: Demand,
): BoxChoice {
  const takes: { box: number; take: number }[] = [];
  let score = 0;
  let need = demand.gpus;
  for (let free = pool.stride; free > 0 && need > 0; free--) {
    for (const box of pool.shelves.at(group, model, free)) {
      if (need === 0) break;
      const take = Math.min(free, need);
      need -= take;
      takes.push({ box, take });
      score += policy.scoreBox(box, take, demand) - FURTHER_BOX;
    }
  }
  return { score, takes };
}
