/**
 * The pure half of an agent: brings one proxy to what the manager ordered, step by step, and reports
 * what is. An `Agent` owns the newest order and what was last reported; the proxy is the data plane's.
 *
 * It keeps the order when the stream is lost, for traffic goes on without a manager, and forgets it
 * with the process: what a restarted proxy holds is nothing.
 *
 * `BoxAgentCore` and `HostAgentCore` are the two there are. What they share stands in
 * `order-sequence.ts` (which order may follow) and `reported.ts` (what a report need not repeat).
 */
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import type { AgentHello, AgentOrder, AgentReport } from '#proto/agent-messages';

/** The stream of the shell, while it is up. Calls may not call back into the agent. */
export interface AgentUplink {
  hello(hello: AgentHello): void;
  report(report: AgentReport): void;
}

export interface Agent extends Timed {
  /** A stream is up: hello and a whole report go out at once. */
  connected(now: Nanos, uplink: AgentUplink): void;
  disconnected(now: Nanos): void;
  /** An order that does not follow its predecessor is refused with an exception: end the stream. */
  order(now: Nanos, order: AgentOrder): void;
  /** Something of the data plane changed: acts on it, and reports what is new. */
  changed(now: Nanos): void;
}
