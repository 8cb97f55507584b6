/** A process of the pool of a state folder as it is started, with its output in its log there. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DxpuError } from '#base/errors';
import { configFile, logFile } from './pool-folder.ts';
import type { KnownProcess } from './state-folder.ts';

const MAIN = fileURLToPath(new URL('./main.js', import.meta.url));
const SHOWN_LOG_LINES = 5;

/** How long it may take until it serves. */
export const READY_WITHIN_MS = 30_000;

export class PoolProcess {
  readonly child: ChildProcess;
  /** How it ended. */
  readonly ended: Promise<string>;
  readonly logFile: string;
  readonly #name: string;
  readonly #logBegin: number;

  /** `ours` has a channel to this process, `detached` is in a session of its own. */
  constructor(state: string, { name, kind }: KnownProcess, how: 'ours' | 'detached') {
    this.#name = name;
    this.logFile = logFile(state, name);
    const log = openSync(this.logFile, 'a', 0o600);
    this.#logBegin = fstatSync(log).size;
    const config = configFile(state, name);
    const args = [kind, '--config', config, '--state', state, '--log-format', 'text'];
    try {
      this.child = spawn(process.execPath, ['--enable-source-maps', MAIN, ...args], {
        detached: how === 'detached',
        stdio: how === 'detached' ? ['ignore', log, log] : ['ignore', log, log, 'ipc'],
      });
    } finally {
      closeSync(log);
    }
    this.ended = new Promise((resolve) => {
      this.child.once('error', (error) => resolve(`could not be started: ${error.message}`));
      this.child.once('exit', (code, signal) =>
        resolve(signal === null ? `ended with status ${code}` : `was ended by ${signal}`),
      );
    });
  }

  /** It ended when it should not: with what it said last. */
  failure(how: string): DxpuError {
    return this.#error('unavailable', `${how}; its last words:\n${this.#lastWords()}`);
  }

  /** It does not serve within `READY_WITHIN_MS`. */
  late(): DxpuError {
    return this.#error('deadline_exceeded', `does not get ready; it logs to ${this.logFile}`);
  }

  #error(code: 'unavailable' | 'deadline_exceeded', what: string): DxpuError {
    return new DxpuError(code, `${this.#name} ${what}`, {
      details: { process: this.#name, pid: this.child.pid, log: this.logFile },
    });
  }

  /** What was in the log before is another's. */
  #lastWords(): string {
    try {
      const said = readFileSync(this.logFile).subarray(this.#logBegin).toString().trimEnd();
      return said.split('\n').slice(-SHOWN_LOG_LINES).join('\n');
    } catch {
      return '';
    }
  }
}
