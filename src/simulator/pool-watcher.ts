export type GpuState = 'free' | 'bound' | 'broken';

/** Is told of every change to a pool, after it was made. */
export interface PoolWatcher {
  /** What suits host `h`, and its group, may have changed. */
  hostChanged?(h: number): void;
  /** What the boxes of a group have free may have changed. */
  groupChanged?(group: number): void;
  gpuChanged?(gpu: number, state: GpuState): void;
  boxChanged?(b: number, down: boolean): void;
}
