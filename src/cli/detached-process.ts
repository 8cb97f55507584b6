/**
 * A process that outlives this one: in a session of its own, with its output in a file, found again by
 * its control socket.
 */
import { spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DxpuError } from '#base/errors';
import { askProcess } from './control-client.ts';
import { pause } from './pool-request.ts';
import type { KnownProcess } from './state-folder.ts';

const MAIN = fileURLToPath(new URL('./main.js', import.meta.url));
const READY_TIMEOUT_MS = 30_000;
const LOOK_EACH_MS = 25;
const SHOWN_LOG_LINES = 5;

export interface DetachedOptions {
  /** Of the command line. */
  readonly args: readonly string[];
  /** Its stdout and stderr are appended. */
  readonly logFile: string;
}

/** Starts `target` and returns its number once it serves. Fails with its last words when it ends before. */
export async function startDetached(
  target: KnownProcess,
  { args, logFile }: DetachedOptions,
): Promise<number> {
  const log = openSync(logFile, 'a', 0o600);
  const { size: begin } = fstatSync(log);
  let how: string | undefined;
  try {
    const child = spawn(process.execPath, ['--enable-source-maps', MAIN, ...args], {
      detached: true,
      stdio: ['ignore', log, log],
    });
    child.once('error', (error) => {
      how = `could not be started: ${error.message}`;
    });
    child.once('exit', (code, signal) => {
      how ??= signal === null ? `ended with status ${code}` : `was ended by ${signal}`;
    });
    child.unref();
  } finally {
    closeSync(log);
  }
  const deadline = performance.now() + READY_TIMEOUT_MS;
  for (;;) {
    // It knows what to answer once it serves, not before.
    const answer = (await askProcess(target, 'status', {}).catch(() => undefined)) as
      | { readonly pid: number }
      | undefined;
    if (how !== undefined) throw failure(target.name, how, logFile, begin);
    if (answer !== undefined) return answer.pid;
    if (performance.now() > deadline) {
      throw new DxpuError(
        'deadline_exceeded',
        `${target.name} does not get ready; it logs to ${logFile}`,
        { details: { process: target.name, log: logFile } },
      );
    }
    await pause(LOOK_EACH_MS);
  }
}

function failure(name: string, how: string, logFile: string, begin: number): DxpuError {
  const said = lastWords(logFile, begin);
  return new DxpuError('unavailable', `${name} ${how}; its last words:\n${said}`, {
    details: { process: name, log: logFile },
  });
}

/** The end of a log, for an error about its process; what was there before `begin` is another's. */
export function lastWords(logFile: string, begin: number): string {
  try {
    const said = readFileSync(logFile).subarray(begin).toString().trimEnd();
    return said.split('\n').slice(-SHOWN_LOG_LINES).join('\n');
  } catch {
    return '';
  }
}
