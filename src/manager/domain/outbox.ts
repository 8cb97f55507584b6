/**
 * Effects that wait until what they tell is durable. They leave in the order: log, answers, orders,
 * ends of streams. The sink may call back into the core, which is at rest by then, and may even drive
 * it through another turn: what that lets out follows behind.
 */
import type { DxpuError } from '#base/errors';
import type { AgentOrder } from '#proto/agent-messages';
import type { CommandAnswer } from './commands.ts';
import type { AgentSessionId, PoolSink } from './pool-sink.ts';
import type { LogRecord } from './records.ts';

type Effect = (sink: PoolSink) => void;

export class Outbox {
  readonly #sink: PoolSink;
  #answers: Effect[] = [];
  #orders: Effect[] = [];
  #ends: Effect[] = [];
  /** Of batches that were taken. */
  #sealed: Effect[] = [];
  /** Of batches that are durable. */
  readonly #leaving: Effect[] = [];
  #isEmptying = false;

  constructor(sink: PoolSink) {
    this.#sink = sink;
  }

  answer(ticket: number, answer: CommandAnswer): void {
    this.#answers.push((sink) => sink.answer(ticket, answer));
  }

  order(session: AgentSessionId, order: AgentOrder): void {
    this.#orders.push((sink) => sink.order(session, order));
  }

  end(session: AgentSessionId, error: DxpuError): void {
    this.#ends.push((sink) => sink.endSession(session, error));
  }

  /** The turn is over: what was said in it leaves with the next `release`. */
  seal(log: readonly LogRecord[]): void {
    if (log.length > 0) this.#sealed.push((sink) => sink.logged(log));
    this.#sealed.push(...this.#answers, ...this.#orders, ...this.#ends);
    this.#answers = [];
    this.#orders = [];
    this.#ends = [];
  }

  release(): void {
    this.#leaving.push(...this.#sealed);
    this.#sealed = [];
    if (this.#isEmptying) return;
    this.#isEmptying = true;
    try {
      for (let index = 0; index < this.#leaving.length; index++) this.#leaving[index]?.(this.#sink);
    } finally {
      this.#leaving.length = 0;
      this.#isEmptying = false;
    }
  }
}
