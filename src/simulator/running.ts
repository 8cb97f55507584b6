/** Jobs that hold hardware, and taking and giving it back as a whole. */
import type { Demand } from './demand.ts';
import type { Design, Placement } from './design.ts';

/** A place for each task, or none at all. */
export function placeAll(
  design: Design,
  { demand, tasks }: { readonly demand: Demand; readonly tasks: number },
): Placement[] | undefined {
  const placements: Placement[] = [];
  while (placements.length < tasks) {
    const placement = design.place(demand);
    if (placement === undefined) {
      releaseAll(design, placements);
      return undefined;
    }
    placements.push(placement);
  }
  return placements;
}

/** In the opposite order of taking, so that `retakeAll` finds what it needs. */
export function releaseAll(design: Design, placements: readonly Placement[]): void {
  for (const placement of placements.toReversed()) design.release(placement);
}

export function retakeAll(design: Design, placements: readonly Placement[]): void {
  for (const placement of placements) design.retake(placement);
}

/** Whether two jobs' places have a host or a GPU in common. */
export function touch(a: readonly Placement[], b: readonly Placement[]): boolean {
  const hosts = new Set(a.map(({ host }) => host));
  const gpus = new Set(a.flatMap((placement) => placement.gpus));
  return b.some((other) => hosts.has(other.host) || other.gpus.some((gpu) => gpus.has(gpu)));
}
