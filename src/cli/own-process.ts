/**
 * A process that belongs to this one: started with an IPC channel, whose end it takes as the order to
 * stop. So it never outlives us, however we end.
 */
import type { LoggedProcess } from './logged-process.ts';
import { READY_WITHIN_MS, startPoolProcess } from './pool-process.ts';
import type { KnownProcess } from './state-folder.ts';

const STOP_WITHIN_MS = 3000;

export class OwnProcess {
  readonly target: KnownProcess;
  readonly #process: LoggedProcess;
  #stopping = false;

  /** `main`: see `startPoolProcess`. */
  constructor(state: string, target: KnownProcess, main?: string) {
    this.target = target;
    this.#process = startPoolProcess(state, target, 'ours', main);
  }

  get pid(): number {
    return this.#process.child.pid ?? 0;
  }

  get logFile(): string {
    return this.#process.logFile;
  }

  /** Resolves once it serves; rejects when it ends before, with what it said last. */
  ready(): Promise<void> {
    return this.#process.untilTold(READY_WITHIN_MS);
  }

  /**
   * Rejects when it fails. Resolves when somebody else told it to stop, as `dxpu stop` does; stays
   * pending when it was `stop` here.
   */
  async watch(): Promise<void> {
    const { child, ended } = this.#process;
    const how = await ended;
    if (this.#stopping) return new Promise(() => {});
    if (child.exitCode !== 0) throw this.#process.failure(how);
  }

  /** Tells it to stop and waits until it is gone. */
  async stop(): Promise<void> {
    const timer = setTimeout(() => this.#process.child.kill('SIGKILL'), STOP_WITHIN_MS);
    await this.#end('SIGTERM');
    clearTimeout(timer);
  }

  /** Ends it as a power cut would. */
  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.#stopping = true;
    const { child, ended } = this.#process;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await ended;
  }
}
