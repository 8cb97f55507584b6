/**
 * A proxy process that belongs to this one: started with an IPC channel, whose end it takes as the
 * order to stop. So it never outlives us, however we end.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DxpuError } from '#base/errors';
import { lastWords } from './detached-process.ts';

const MAIN = fileURLToPath(new URL('./main.js', import.meta.url));
const READY_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 3000;

export class ProxyChild {
  readonly name: string;
  readonly logFile: string;
  readonly #logBegin: number;
  readonly #child: ChildProcess;
  readonly #ended: Promise<string>;
  #stopping = false;

  /** `args` are those of the command line; stdout and stderr are appended to `logFile`. */
  constructor(name: string, args: readonly string[], logFile: string) {
    this.name = name;
    this.logFile = logFile;
    const log = openSync(logFile, 'a', 0o600);
    this.#logBegin = fstatSync(log).size;
    try {
      this.#child = spawn(process.execPath, ['--enable-source-maps', MAIN, ...args], {
        stdio: ['ignore', log, log, 'ipc'],
      });
    } finally {
      closeSync(log);
    }
    this.#ended = new Promise((resolve) => {
      this.#child.once('error', (error) => resolve(`could not be started: ${error.message}`));
      this.#child.once('exit', (code, signal) =>
        resolve(signal === null ? `ended with status ${code}` : `was ended by ${signal}`),
      );
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Resolves once it serves; rejects when it ends before, with what it said last. */
  ready(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new DxpuError('deadline_exceeded', `${this.name} does not get ready`));
      }, READY_TIMEOUT_MS);
      this.#child.once('message', () => {
        clearTimeout(timer);
        resolve();
      });
      void this.#ended.then((how) => {
        clearTimeout(timer);
        reject(this.#failure(how));
      });
    });
  }

  /**
   * Rejects when it fails. Resolves when somebody else told it to stop, as `dxpu stop` does; stays
   * pending when it was `stop` here.
   */
  async watch(): Promise<void> {
    const how = await this.#ended;
    if (this.#stopping) return new Promise(() => {});
    if (this.#child.exitCode !== 0) throw this.#failure(how);
  }

  /** Tells it to stop and waits until it is gone. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await this.#ended;
    clearTimeout(timer);
  }

  #failure(how: string): DxpuError {
    const last = lastWords(this.logFile, this.#logBegin);
    return new DxpuError('unavailable', `${this.name} ${how}; its last words:\n${last}`, {
      details: { process: this.name, pid: this.pid, log: this.logFile },
    });
  }
}
