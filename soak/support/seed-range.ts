import { parseArgs } from 'node:util';

export interface SeedRange {
  readonly first: number;
  readonly last: number;
  /** Of one seed: show what happens, event by event. */
  readonly events: boolean;
}

/** `--seeds A..B` and `--events` of the command line. Ends the process with status 2 where they are wrong. */
export function seedRange(name: string, usual: string): SeedRange {
  const { values: options } = parseArgs({
    options: {
      seeds: { type: 'string', default: usual },
      events: { type: 'boolean', default: false },
    },
  });
  const range = /^(\d+)(?:\.\.(\d+))?$/.exec(options.seeds);
  const first = Number(range?.[1]);
  const last = Number(range?.[2] ?? range?.[1]);
  if (range === null || !Number.isSafeInteger(last) || first > last) {
    console.error(
      `${name}: --seeds takes a number or a range such as ${usual}, not ${options.seeds}`,
    );
    process.exit(2);
  }
  return { first, last, events: options.events };
}
