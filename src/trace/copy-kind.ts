/** The word every profiler of NVIDIA and AMD has for what a copy goes from and to: HtoD, DtoA, PtoP. */
import { WORK_KIND, type WorkKind } from './timeline.ts';

/** Arrays are device memory. */
const KINDS: ReadonlyMap<string, WorkKind> = new Map<string, WorkKind>([
  ['HtoD', WORK_KIND.htod],
  ['HtoA', WORK_KIND.htod],
  ['DtoH', WORK_KIND.dtoh],
  ['AtoH', WORK_KIND.dtoh],
  ['DtoD', WORK_KIND.dtod],
  ['DtoA', WORK_KIND.dtod],
  ['AtoD', WORK_KIND.dtod],
  ['AtoA', WORK_KIND.dtod],
  ['HtoH', WORK_KIND.htoh],
  ['PtoP', WORK_KIND.ptop],
]);

/** Undefined for any other word. */
export function copyKind(word: string): WorkKind | undefined {
  return KINDS.get(word);
}
