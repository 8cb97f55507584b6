/** What the words of a Kineto trace mean: categories of events, and names of copies. */
import { copyKind } from './copy-kind.ts';
import { WORK_FLAG, WORK_KIND, type WorkKind } from './timeline.ts';

export const CATEGORY = {
  other: 0,
  kernel: 1,
  memcpy: 2,
  memset: 3,
  call: 4,
  sync: 5,
  /** CPU work of the framework, which may mark an iteration. */
  framework: 6,
  gpuAnnotation: 7,
  pythonFunction: 8,
} as const;
export type Category = (typeof CATEGORY)[keyof typeof CATEGORY];

/** The capitalised ones are of 2020 and 2021. The pseudo-category `Trace` is `other`. */
const CATEGORIES: ReadonlyMap<string, Category> = new Map<string, Category>([
  ['kernel', CATEGORY.kernel],
  ['Kernel', CATEGORY.kernel],
  ['gpu_memcpy', CATEGORY.memcpy],
  ['Memcpy', CATEGORY.memcpy],
  ['gpu_memset', CATEGORY.memset],
  ['Memset', CATEGORY.memset],
  ['cuda_runtime', CATEGORY.call],
  ['cuda_driver', CATEGORY.call],
  ['hip_runtime', CATEGORY.call],
  ['hip_driver', CATEGORY.call],
  ['Runtime', CATEGORY.call],
  ['cuda_sync', CATEGORY.sync],
  ['user_annotation', CATEGORY.framework],
  ['cpu_op', CATEGORY.framework],
  ['Operator', CATEGORY.framework],
  ['gpu_user_annotation', CATEGORY.gpuAnnotation],
  ['python_function', CATEGORY.pythonFunction],
]);

export function categoryOf(name: string): Category {
  return CATEGORIES.get(name) ?? CATEGORY.other;
}

export interface CopyName {
  readonly kind: WorkKind;
  /** `WORK_FLAG` bits. */
  readonly flags: number;
}

/** Of a copy on the GPU, such as "Memcpy HtoD (Pageable -> Device)". */
export function copyName(name: string): CopyName {
  const word = /\b([HDAP]to[HDAP])\b/.exec(name)?.[1];
  const kind = copyKind(word ?? '') ?? WORK_KIND.copy;
  const flags =
    (/\bPageable\b/.test(name) ? WORK_FLAG.pageable : 0) |
    (/\bPinned\b/.test(name) ? WORK_FLAG.pinned : 0);
  return { kind, flags };
}

/** Of the argument `kind` of a HIP copy call: hipMemcpyKind. */
export function hipCopyKind(value: number): WorkKind | undefined {
  switch (value) {
    case 0:
      return WORK_KIND.htoh;
    case 1:
      return WORK_KIND.htod;
    case 2:
      return WORK_KIND.dtoh;
    case 3:
      return WORK_KIND.dtod;
    default:
      return undefined;
  }
}
