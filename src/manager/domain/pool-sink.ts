/** Where the effects of the manager's core go (ADR 1). None is called before what it tells is durable. */
import type { DxpuError } from '#base/errors';
import type { AgentOrder } from '#proto/agent-messages';
import type { CommandAnswer } from './commands.ts';
import type { LogRecord } from './records.ts';

/** One stream of an agent, as long as it lives. Numbers are the shell's and never used twice. */
export type AgentSessionId = number;

export interface PoolSink {
  /** The answer to the command given under `ticket`. Called once. */
  answer(ticket: number, answer: CommandAnswer): void;
  order(session: AgentSessionId, order: AgentOrder): void;
  /**
   * The stream must be ended: `already_exists` when another one of its identity lives,
   * `failed_precondition` when its peer breaks the contract.
   */
  endSession(session: AgentSessionId, error: DxpuError): void;
  /** New entries of the log, in order. */
  logged(entries: readonly LogRecord[]): void;
}
