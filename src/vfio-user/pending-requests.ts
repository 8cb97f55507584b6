/**
 * Requests this side has sent and their replies. All have the same time limit, so the order they were
 * sent in is the order they fall due.
 */
import { Errno, Refusal } from './refusal.ts';
import { commandName, FLAG_ERROR, type Message } from './message.ts';
import type { Nanos } from '#base/units';

/**
 * `reply` is the message, valid during the call, with the descriptors of `fds` (the callee's then), or
 * what went wrong: the peer's errno, ETIMEDOUT, ECONNRESET.
 */
export type ReplyHandler = (now: Nanos, reply: Message | Refusal, fds: readonly number[]) => void;

interface Pending {
  readonly command: number;
  readonly deadlineNs: number;
  readonly done: ReplyHandler;
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

  get size(): number {
    return this.#pending.size;
  }

  /** The identifier to send a request of `command` with; undefined when all are in use. */
  add(now: Nanos, command: number, done: ReplyHandler): number | undefined {
    if (this.#pending.size + this.#late.size >= IDS) return undefined;
    while (this.#pending.has(this.#next) || this.#late.has(this.#next)) this.#advance();
    const id = this.#next;
    this.#advance();
    this.#pending.set(id, { command, deadlineNs: now + this.#timeoutNs, done });
    return id;
  }

  /**
   * A reply has come. Returns what is wrong with it if it answers nothing; `fds` are then the caller's
   * still. A late one is dropped without a word, and counted as `dropped`.
   */
  reply(now: Nanos, reply: Message, fds: readonly number[]): Refusal | 'dropped' | undefined {
    const pending = this.#pending.get(reply.id);
    if (pending?.command !== reply.command) {
      if (pending === undefined && this.#late.get(reply.id) === reply.command) {
        this.#late.delete(reply.id);
        return 'dropped';
      }
      return new Refusal(Errno.EPROTO, `a ${commandName(reply.command)} reply nobody waits for`);
    }
    this.#pending.delete(reply.id);
    if ((reply.flags & FLAG_ERROR) === 0) {
      pending.done(now, reply, fds);
      return undefined;
    }
    const reason = `the peer refuses ${commandName(reply.command)}`;
    // The errno is optional.
    pending.done(now, new Refusal(reply.errno === 0 ? Errno.EIO : reply.errno, reason), NO_FDS);
    return fds.length === 0 ? undefined : 'dropped';
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
