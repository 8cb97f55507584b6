import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** A box or a host of a crash test. */
export class AgentProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#ended = once(child, 'exit');
  }

  /** Resolves once it serves. It ends when this process does: its IPC channel is gone then. */
  static async start(program: string, args: readonly string[]): Promise<AgentProcess> {
    const child = spawn(process.execPath, [program, ...args], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    let complaints = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      complaints = (complaints + text).slice(-4000);
    });
    const agent = new AgentProcess(child);
    const isReady = once(child, 'message').then(() => true);
    if (await Promise.race([isReady, agent.#ended.then(() => false)])) return agent;
    throw new Error(`dxpu ${args.join(' ')} ended:\n${complaints}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Stopped or not, dead already or not. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }
}

/** A manager of a crash test: standing by, then running, then dead. */
export class CrashManager {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  output = '';

  constructor(program: string, config: string) {
    this.child = spawn(process.execPath, [program, config], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
    this.ended = once(this.child, 'close');
  }

  async tell(message: object): Promise<void> {
    const answered = once(this.child, 'message').then(() => true);
    this.child.send(message);
    const isThere = await Promise.race([answered, this.ended.then(() => false)]);
    if (!isThere) throw new Error(`the manager ended:\n${this.output}`);
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}
