/** What the options of `dxpu simulate` say of jobs in time when they are not given, without the simulator. */
export const USUAL_IN_TIME = {
  overhead: 0,
  backfill: 100,
  gpuMtbf: 0,
  serverMtbf: 0,
  boxMtbf: 0,
  repair: 24,
  checkpoint: 30,
  rebind: 60,
} as const;

/** The same of what belongs to `--fewest`. */
export const USUAL_OF_FEWEST = { demand: 100, served: 99, scan: 5 } as const;

/** The same of what `--jobs` leave open. */
export const USUAL_OF_JOBS = { cpuPerGpu: 8, memoryPerGpu: 32, gpusPerTask: 8 } as const;
