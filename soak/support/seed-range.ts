export interface SeedRange {
  readonly first: number;
  readonly last: number;
}

/** Of `--seeds A..B`, as given on the command line. Ends the process with status 2 where it is none. */
export function seedRange(name: string, seeds: string): SeedRange {
  const range = /^(\d+)(?:\.\.(\d+))?$/.exec(seeds);
  const first = Number(range?.[1]);
  const last = Number(range?.[2] ?? range?.[1]);
  if (range === null || !Number.isSafeInteger(last) || first > last) {
    console.error(`${name}: --seeds takes a number or a range such as 2..20, not ${seeds}`);
    process.exit(2);
  }
  return { first, last };
}
