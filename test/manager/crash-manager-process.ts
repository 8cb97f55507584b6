import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** A manager process: standing by, then running, then dead. */
export class CrashManager {
  readonly child: ChildProcess;
  readonly ended: Promise<void>;
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
    this.ended = once(this.child, 'close').then(() => {});
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
