/** A process of the pool of a state folder as it is started, with its output in its log there. */
import { fileURLToPath } from 'node:url';
import { LoggedProcess } from './logged-process.ts';
import { ownFile } from './own-file.ts';
import { configFile, logFile } from './pool-folder.ts';
import type { KnownProcess } from './state-folder.ts';

const MAIN = fileURLToPath(ownFile('main.js'));

/** How long it may take until it serves. */
export const READY_WITHIN_MS = 30_000;

export function startPoolProcess(
  state: string,
  { name, kind }: KnownProcess,
  how: 'ours' | 'detached',
): LoggedProcess {
  const config = configFile(state, name);
  const args = [kind, '--config', config, '--state', state, '--log-format', 'text'];
  const words = [MAIN, ...args];
  return new LoggedProcess(name, process.execPath, words, logFile(state, name), how);
}
