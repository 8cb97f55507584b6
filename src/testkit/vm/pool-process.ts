/** A process of a test's pool: started from dist, ended as a power cut would, started again. */
import { fileURLToPath } from 'node:url';
import { LoggedProcess } from '#cli/logged-process';
import { configFile, logFile } from '#cli/pool-folder';
import { READY_WITHIN_MS } from '#cli/pool-process';
import { type ProcessKind, socketOf } from '#cli/state-folder';

export const MAIN = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

export class PoolProcess {
  /** As `host-vm1`. */
  readonly name: string;
  readonly kind: ProcessKind;
  readonly socket: string;
  readonly #process: LoggedProcess;

  /** Its configuration is `pool/NAME.yaml` of the state folder. It ends when this process does. */
  constructor(state: string, kind: ProcessKind, id: string) {
    this.name = `${kind}-${id}`;
    this.kind = kind;
    this.socket = socketOf(state, this.name);
    const config = configFile(state, this.name);
    const words = [MAIN, kind, '--config', config, '--state', state, '--log-format', 'text'];
    const log = logFile(state, this.name);
    this.#process = new LoggedProcess(this.name, process.execPath, words, log, 'ours');
  }

  get pid(): number {
    return this.#process.child.pid ?? 0;
  }

  get logFile(): string {
    return this.#process.logFile;
  }

  /** Resolves once it serves; fails where it ends before. */
  ready(): Promise<void> {
    return this.#process.untilTold(READY_WITHIN_MS);
  }

  async kill(): Promise<void> {
    const { child, ended } = this.#process;
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await ended;
  }
}
