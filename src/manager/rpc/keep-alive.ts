/**
 * Finds out which peers are gone without a word: a machine without power, a process that is stopped, a
 * network that swallows everything. One timer for all connections sends an HTTP/2 PING on each every
 * interval; one from which nothing was heard for the timeout ends, and with it its streams. Peers need
 * nothing for it: answering a PING is part of HTTP/2.
 */
import type { ServerHttp2Session } from 'node:http2';

export interface KeepAliveOptions {
  readonly intervalMs: number;
  readonly timeoutMs: number;
}

export const DEFAULT_KEEP_ALIVE: KeepAliveOptions = { intervalMs: 2000, timeoutMs: 6000 };

export class KeepAlive {
  readonly #options: KeepAliveOptions;
  readonly #onDead: (session: ServerHttp2Session) => void;
  readonly #heardMs = new Map<ServerHttp2Session, number>();
  readonly #timer: NodeJS.Timeout;
  #lastRoundMs = performance.now();

  /** `onDead` is called before a session is destroyed. */
  constructor(options: KeepAliveOptions, onDead: (session: ServerHttp2Session) => void) {
    this.#options = options;
    this.#onDead = onDead;
    // What has come in meanwhile is read before anybody is judged.
    this.#timer = setInterval(() => setImmediate(() => this.#round()), options.intervalMs).unref();
  }

  add(session: ServerHttp2Session): void {
    this.#heardMs.set(session, performance.now());
    session.once('close', () => this.#heardMs.delete(session));
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#heardMs.clear();
  }

  #round(): void {
    const { intervalMs, timeoutMs } = this.#options;
    const nowMs = performance.now();
    // While this process stood still nobody could be heard: that is not their fault.
    const stoodStillMs = Math.max(0, nowMs - this.#lastRoundMs - intervalMs);
    this.#lastRoundMs = nowMs;
    for (const [session, heardMs] of this.#heardMs) {
      if (session.destroyed || session.closed) continue;
      const heardFairlyMs = heardMs + stoodStillMs;
      this.#heardMs.set(session, heardFairlyMs);
      if (nowMs - heardFairlyMs > timeoutMs) {
        this.#heardMs.delete(session);
        this.#onDead(session);
        session.destroy();
        continue;
      }
      session.ping((error) => {
        if (error === null && this.#heardMs.has(session)) {
          this.#heardMs.set(session, performance.now());
        }
      });
    }
  }
}
