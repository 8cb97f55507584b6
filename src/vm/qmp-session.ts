/**
 * The QEMU Machine Protocol (QEMU, docs/interop/qmp-spec), as a client: commands, whose answers are found by
 * their ids, and events. A synchronous machine: text in, text out, deadlines by `tick`.
 */
import type { Timed } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';

export interface QmpRefusal {
  readonly ok: false;
  /** QEMU's error class, as `DeviceNotFound`; `timeout` and `gone` are our own. */
  readonly kind: string;
  readonly message: string;
}

export type QmpAnswer = { readonly ok: true; readonly value: unknown } | QmpRefusal;

export type QmpDone = (now: Nanos, answer: QmpAnswer) => void;

export interface QmpUser {
  /** Takes commands from here on. */
  ready(now: Nanos): void;
  event(now: Nanos, name: string, data: Readonly<Record<string, unknown>>): void;
  /** Nobody greets, or what answers is no QEMU: the connection is to be closed. */
  broken(now: Nanos, reason: string): void;
}

export interface QmpSessionOptions {
  readonly user: QmpUser;
  readonly send: (text: string) => void;
  readonly deadlineMoved?: () => void;
}

interface Pending {
  readonly command: string;
  readonly deadlineNs: number;
  readonly done: QmpDone;
}

/** Of the greeting, and of each command: QEMU answers from its main loop, which a guest's access may hold up. */
const ANSWER_WITHIN_NS = 10e9;

/** QEMU's longest answers here are those of `query-pci`: some hundred bytes a device. */
const MAX_LINE_CHARACTERS = 16 * 2 ** 20;

interface QmpMessage {
  readonly QMP?: unknown;
  readonly id?: unknown;
  readonly event?: string;
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly return?: unknown;
  readonly error?: { readonly class?: string; readonly desc?: string } | null;
}

export class QmpSession implements Timed {
  readonly #options: QmpSessionOptions;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  #text = '';
  #state: 'greeting' | 'negotiating' | 'ready' | 'closed' = 'greeting';
  #greetingByNs: number;

  /** `now`: when the connection was made. */
  constructor(now: Nanos, options: QmpSessionOptions) {
    this.#options = options;
    this.#greetingByNs = now + ANSWER_WITHIN_NS;
  }

  get isReady(): boolean {
    return this.#state === 'ready';
  }

  /** `done` is called once, also when the connection goes or the time is up. */
  execute(
    now: Nanos,
    command: string,
    args: Readonly<Record<string, unknown>>,
    done: QmpDone,
  ): void {
    if (this.#state !== 'ready') {
      done(now, { ok: false, kind: 'gone', message: `QMP ${command}: QEMU is not connected` });
      return;
    }
    this.#send(now, command, args, done);
  }

  receive(now: Nanos, text: string): void {
    if (!this.#isOpen()) return;
    // What has come of a long line is not looked through again for each part of it.
    const lines = text.includes('\n') ? (this.#text + text).split('\n') : [this.#text + text];
    this.#text = lines.pop() ?? '';
    if (this.#text.length > MAX_LINE_CHARACTERS) {
      this.#break(now, 'a line without an end');
      return;
    }
    for (const line of lines) {
      if (!this.#isOpen()) return;
      if (line.trim() !== '') this.#take(now, line);
    }
  }

  /** The connection is gone: what is pending ends with `gone`. */
  closed(now: Nanos, reason: string): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#greetingByNs = Infinity;
    this.#endAll(now, reason);
  }

  nextDeadlineNs(): number {
    let next = this.#greetingByNs;
    for (const { deadlineNs } of this.#pending.values()) next = Math.min(next, deadlineNs);
    return next;
  }

  tick(now: Nanos): void {
    if (now >= this.#greetingByNs) {
      this.#close(
        now,
        `no greeting from QEMU's QMP socket within ${ANSWER_WITHIN_NS / 1e9} s: it takes one client, and may have another: ` +
          'give the host proxy a -qmp of its own',
      );
      return;
    }
    for (const [id, { command, deadlineNs, done }] of this.#pending) {
      if (deadlineNs > now) continue;
      // Its answer may still come, and is then nobody's.
      this.#pending.delete(id);
      const message = `QMP ${command}: no answer within ${ANSWER_WITHIN_NS / 1e9} s`;
      done(now, { ok: false, kind: 'timeout', message });
    }
  }

  #isOpen(): boolean {
    return this.#state !== 'closed';
  }

  #take(now: Nanos, line: string): void {
    let message: QmpMessage;
    try {
      message = JSON.parse(line) as QmpMessage;
    } catch (error) {
      this.#break(now, `${DxpuError.from(error).message} in ${JSON.stringify(line.slice(0, 80))}`);
      return;
    }
    if (typeof message !== 'object' || message === null) {
      this.#break(now, `${JSON.stringify(line.slice(0, 80))} is no message`);
      return;
    }
    if (this.#state === 'greeting') {
      if (message.QMP === undefined) {
        this.#break(now, 'there was no greeting');
        return;
      }
      this.#state = 'negotiating';
      this.#greetingByNs = Infinity;
      this.#send(now, 'qmp_capabilities', {}, (then, answer) => {
        if (this.#state !== 'negotiating') return;
        if (!answer.ok) {
          this.#break(then, answer.message);
          return;
        }
        this.#state = 'ready';
        this.#options.user.ready(then);
      });
      return;
    }
    if (message.event !== undefined) {
      this.#options.user.event(now, message.event, message.data ?? {});
      return;
    }
    const { id } = message;
    const pending = typeof id === 'number' ? this.#pending.get(id) : undefined;
    if (pending === undefined || typeof id !== 'number') return;
    this.#pending.delete(id);
    const { error } = message;
    if (error === undefined || error === null) {
      pending.done(now, { ok: true, value: message.return });
      return;
    }
    const text = `QMP ${pending.command}: ${error.desc ?? 'refused'}`;
    pending.done(now, { ok: false, kind: error.class ?? 'GenericError', message: text });
  }

  #send(now: Nanos, command: string, args: Readonly<Record<string, unknown>>, done: QmpDone): void {
    const id = ++this.#lastId;
    this.#pending.set(id, { command, deadlineNs: now + ANSWER_WITHIN_NS, done });
    this.#options.send(`${JSON.stringify({ execute: command, arguments: args, id })}\n`);
    this.#options.deadlineMoved?.();
  }

  #break(now: Nanos, reason: string): void {
    this.#close(now, `what answers at the QMP socket is no QEMU: ${reason}`);
  }

  #close(now: Nanos, reason: string): void {
    this.closed(now, reason);
    this.#options.user.broken(now, reason);
  }

  #endAll(now: Nanos, reason: string): void {
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { command, done } of pending) {
      done(now, { ok: false, kind: 'gone', message: `QMP ${command}: ${reason}` });
    }
  }
}
