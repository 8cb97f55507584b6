/** The near end of a guest's control channel (`#vm/guest-scripts`): runs commands in the guest, one at a time. */
import * as net from 'node:net';
import { CONTROL_READY } from '#vm/guest-scripts';

export interface GuestAnswer {
  readonly status: number;
  /** What it printed, stderr included. */
  readonly text: string;
}

interface Running {
  readonly number: number;
  readonly command: string;
  readonly resolve: (answer: GuestAnswer) => void;
  readonly reject: (reason: Error) => void;
}

const ENDED = 'the VM has ended';

export class GuestControl {
  readonly #socket: net.Socket;
  #input = Buffer.alloc(0);
  #number = 0;
  #running: Running | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #isEnded = false;
  readonly #waiting: { readonly resolve: () => void; readonly reject: (reason: Error) => void }[] =
    [];
  /** Settles when the guest has come up; fails where the VM ends before. */
  readonly ready: Promise<void>;

  constructor(path: string) {
    this.#socket = net.connect(path);
    this.#socket.on('data', (chunk: Buffer) => this.#take(chunk));
    this.#socket.on('error', () => {});
    this.#socket.on('close', () => {
      this.#isEnded = true;
      this.#reject(ENDED);
      for (const { reject } of this.#waiting) reject(new Error(ENDED));
    });
    this.ready = this.nextReady();
  }

  /** Settles when the guest comes up the next time; fails where the VM ends before. */
  nextReady(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
    });
  }

  /** Whatever its status; fails where the guest restarts or ends before it has answered. */
  run(command: string): Promise<GuestAnswer> {
    const answer = this.#queue.then(() => this.#start(command));
    this.#queue = answer.catch(() => {});
    return answer;
  }

  close(): void {
    this.#socket.destroy();
  }

  #start(command: string): Promise<GuestAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#isEnded) return reject(new Error(`${ENDED}: ${command}`));
      this.#running = { number: ++this.#number, command, resolve, reject };
      const text = Buffer.from(command).toString('base64');
      this.#socket.write(`${this.#number} ${text}\n`);
    });
  }

  #take(chunk: Buffer): void {
    this.#input = Buffer.concat([this.#input, chunk]);
    // A restart may cut an answer short: the word is looked for wherever it stands.
    const ready = this.#input.lastIndexOf(`${CONTROL_READY}\n`);
    if (ready >= 0) {
      this.#input = this.#input.subarray(ready + CONTROL_READY.length + 1);
      for (const { resolve } of this.#waiting.splice(0)) resolve();
      this.#reject('the guest has restarted');
    }
    const running = this.#running;
    const end = this.#input.indexOf('\n');
    if (running === undefined || end < 0) return;
    const line = this.#input.toString('latin1', 0, end);
    const [number, status, bytes = 0] = line.split(' ').map(Number);
    if (number !== running.number || status === undefined) {
      return this.#reject(`the guest answers ${JSON.stringify(line)}`);
    }
    if (this.#input.length < end + 1 + bytes) return;
    const text = this.#input.toString('utf8', end + 1, end + 1 + bytes);
    this.#input = this.#input.subarray(end + 1 + bytes);
    this.#running = undefined;
    running.resolve({ status, text });
  }

  #reject(reason: string): void {
    const running = this.#running;
    this.#running = undefined;
    running?.reject(new Error(`${reason}: ${running.command}`));
  }
}
