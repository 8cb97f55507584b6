/** Other GPUs for a placement, in place of those that have failed. */
import { isShared, WHOLE_GPU } from './demand.ts';
import type { Placement } from './design.ts';
import type { Pool } from './pool.ts';

/**
 * GPUs of the same model that the host reaches, one for each that is down; the others stay. `undefined`
 * if there are too few, none is down, the host is, or no slot is left for a part that moves away from
 * others. Where GPUs must be of one box they all move if need be.
 */
export function spares(pool: Pool, { demand, host, gpus }: Placement): number[] | undefined {
  const down = gpus.filter((gpu) => pool.isDown(gpu));
  const first = down[0];
  if (first === undefined || pool.isHostDown(host)) return undefined;
  if (isShared(demand)) {
    const alone = (pool.gpuLeft[first] as number) + demand.gpuMilli === WHOLE_GPU;
    if (!alone && pool.slotsLeft[host] === 0) return undefined;
  }
  const model = pool.modelOf(first);
  const group = pool.hostGroup[host] as number;
  const oneBox = pool.hardware.together !== 'any' && demand.gpus > 1;
  if (!oneBox) {
    const found = freeOf(pool, group, model, down.length);
    return found && gpus.map((gpu) => (pool.isDown(gpu) ? (found.pop() as number) : gpu));
  }
  const box = pool.boxOf(gpus.find((gpu) => !pool.isDown(gpu)) ?? first);
  if (!pool.isBoxDown(box) && (pool.boxFree[box] as number) >= down.length) {
    const found = pool.freeGpus(box, down.length);
    return gpus.map((gpu) => (pool.isDown(gpu) ? (found.pop() as number) : gpu));
  }
  for (let free = gpus.length; free <= pool.stride; free++) {
    const other = pool.shelves.at(group, model, free)[0];
    if (other !== undefined) return pool.freeGpus(other, gpus.length);
  }
  return undefined;
}

/** From the boxes with the fewest free. */
function freeOf(pool: Pool, group: number, model: number, count: number): number[] | undefined {
  if (pool.shelves.free(group, model) < count) return undefined;
  const found: number[] = [];
  for (let free = 1; free <= pool.stride && found.length < count; free++) {
    for (const box of pool.shelves.at(group, model, free)) {
      if (found.length === count) break;
      found.push(...pool.freeGpus(box, Math.min(free, count - found.length)));
    }
  }
  return found;
}
