/** A process with its output in a log file, told of by what it said last when it ends too early. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { DxpuError } from '#base/errors';
import { lookUntil } from './look-until.ts';

const SHOWN_LOG_LINES = 6;
const LOOK_EACH_MS = 25;

export class LoggedProcess {
  readonly child: ChildProcess;
  /** How it ended. */
  readonly ended: Promise<string>;
  readonly logFile: string;
  readonly #name: string;
  readonly #logBegin: number;

  /** `ours` has a channel to this process, `detached` is in a session of its own. */
  constructor(
    name: string,
    program: string,
    args: readonly string[],
    logFile: string,
    how: 'ours' | 'detached',
  ) {
    this.#name = name;
    this.logFile = logFile;
    const log = openSync(logFile, 'a', 0o600);
    this.#logBegin = fstatSync(log).size;
    try {
      this.child = spawn(program, args, {
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

  /**
   * What `look` gives, once it gives something. Fails with its last words when it ends before. It may outlive
   * this process.
   */
  async untilReady<T>(withinMs: number, look: () => Promise<T | undefined>): Promise<T> {
    this.child.unref();
    let end: string | undefined;
    void this.ended.then((how) => {
      end = how;
    });
    const found = await lookUntil(withinMs, LOOK_EACH_MS, async () => {
      const seen = await look();
      if (end !== undefined) throw this.failure(end);
      return seen;
    });
    if (found === undefined) throw this.#late();
    return found;
  }

  /** Resolves once one of `ours` tells that it serves. Fails with its last words when it ends before. */
  untilTold(withinMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(this.#late()), withinMs);
      this.child.once('message', () => {
        clearTimeout(timer);
        resolve();
      });
      void this.ended.then((how) => {
        clearTimeout(timer);
        reject(this.failure(how));
      });
    });
  }

  /** It ended when it should not: with what it said last. */
  failure(how: string): DxpuError {
    return this.#error('unavailable', `${how}; its last words:\n${this.#lastWords()}`);
  }

  /** It does not serve in time. */
  #late(): DxpuError {
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
