import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * One side of a comparison in a process of its own: `SCRIPT.js` of this folder with `args`, which prints one JSON
 * object. Returns it when the process has ended; throws if that failed.
 */
export function sideResult<Result>(
  script: string,
  args: readonly string[],
  nodeOptions: readonly string[] = [],
): Result {
  const file = fileURLToPath(new URL(`./${script}.js`, import.meta.url));
  const output = execFileSync(process.execPath, [...nodeOptions, file, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return JSON.parse(output) as Result;
}
