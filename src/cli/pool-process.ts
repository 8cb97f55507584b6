/** A process of the pool of a state folder as it is started, with its output in its log there. */
import { fileURLToPath } from 'node:url';
import { LoggedProcess } from './logged-process.ts';
import { ownFile } from './own-file.ts';
import { configFile, logFile } from './pool-folder.ts';
import type { KnownProcess } from './state-folder.ts';

const MAIN = fileURLToPath(ownFile('main.js'));

/** How long it may take until it serves. */
export const READY_WITHIN_MS = 30_000;

/** `main` is the command line it runs: this one, but for tests, which are not of a build. */
export function startPoolProcess(
  state: string,
  { name, kind }: KnownProcess,
  how: 'ours' | 'detached',
  main = MAIN,
): LoggedProcess {
  const config = configFile(state, name);
  const args = [kind, '--config', config, '--state', state, '--log-format', 'text'];
  return new LoggedProcess(name, process.execPath, [main, ...args], logFile(state, name), how);
}
