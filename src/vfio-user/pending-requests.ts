/**
 * Requests this side has sent and their replies. All have the same time limit, so the order they were
 * sent in is the order they fall due.
 */
import { Errno, Refusal } from './refusal.ts';
import { commandName, FLAG_ERROR, type Message } from './message.ts';
import type { Nanos } from '#base/units';

/**
 * `reply` is the message, valid during the call, or what went wrong: the peer's errno, ETIMEDOUT,
 * ECONNRESET. `fds` came with the message and are the callee's; there are none unless it takes them.
 */
export type ReplyHandler = (now: Nanos, reply: Message | Refusal, fds: readonly number[]) => void;

interface Pending {
  readonly command: number;
  readonly deadlineNs: number;
  readonly done: ReplyHandler;
  readonly takesFds: boolean;
}

const IDS = 0x1_0000;
const NO_FDS: readonly number[] = [];

export class PendingRequests {
  readonly #timeoutNs: number;
  readonly #pending = new Map<number, Pending>();
  /** Timed out, and not answered yet: their numbers are not used again. */
  readonly #late = new Map<number, number>();
  #next = 0;

  constructor(timeoutNs: number) {
    this.#timeoutNs = timeoutNs;
  }

  /** The identifier to send a request of `command` with; undefined when all are in use. */
  add(now: Nanos, command: number, done: ReplyHandler, takesFds = false): number | undefined {
    if (this.#pending.size + this.#late.size >= IDS) return undefined;
    while (this.#pending.has(this.#next) || this.#late.has(this.#next)) this.#advance();
    const id = this.#next;
    this.#advance();
    this.#pending.set(id, { command, deadlineNs: now + this.#timeoutNs, done, takesFds });
    return id;
  }

  /** Whether the descriptors that come with `reply` are for whoever waits for it. */
  takesFds(reply: Message): boolean {
    const pending = this.#pending.get(reply.id);
    const isError = (reply.flags & FLAG_ERROR) !== 0;
    return pending?.command === reply.command && pending.takesFds && !isError;
  }

  /**
   * A reply has come, with `fds` if `takesFds` says so. Returns what is wrong with it if it answers
   * nothing. A late one is dropped without a word.
   */
  reply(now: Nanos, reply: Message, fds: readonly number[]): Refusal | undefined {
    const pending = this.#pending.get(reply.id);
    if (pending?.command !== reply.command) {
      if (pending === undefined && this.#late.get(reply.id) === reply.command) {
        this.#late.delete(reply.id);
        return undefined;
      }
      return new Refusal(Errno.EPROTO, `a ${commandName(reply.command)} reply nobody waits for`);
    }
    this.#pending.delete(reply.id);
    if ((reply.flags & FLAG_ERROR) === 0) {
      pending.done(now, reply, fds);
    } else {
      // The errno is optional.
      const errno = reply.errno === 0 ? Errno.EIO : reply.errno;
      const name = commandName(reply.command);
      pending.done(now, new Refusal(errno, `the peer refuses ${name}`), NO_FDS);
    }
    return undefined;
  }

  nextDeadlineNs(): number {
    for (const { deadlineNs } of this.#pending.values()) return deadlineNs;
    return Infinity;
  }

  tick(now: Nanos): void {
    for (const [id, pending] of this.#pending) {
      if (pending.deadlineNs > now) return;
      this.#pending.delete(id);
      this.#late.set(id, pending.command);
      const name = commandName(pending.command);
      pending.done(now, new Refusal(Errno.ETIMEDOUT, `no reply to ${name} in time`), NO_FDS);
    }
  }

  /** The connection is gone: nothing will be answered any more. */
  abort(now: Nanos, reason: string): void {
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    this.#late.clear();
    for (const { done } of pending) done(now, new Refusal(Errno.ECONNRESET, reason), NO_FDS);
  }

  #advance(): void {
    this.#next = (this.#next + 1) % IDS;
  }
}
