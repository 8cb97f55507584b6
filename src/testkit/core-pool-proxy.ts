/** What a pool and its model proxies know of each other. */
import type { AgentHello, AgentOrder, AgentReport } from '#proto/agent-messages';

/** The manager, as a model proxy reaches it. Numbers are those of streams. */
export interface ProxyHome {
  open(proxy: ModelProxy, hello: AgentHello): number;
  report(session: number, report: AgentReport): void;
  close(session: number): void;
}

/** What a pool drives of a proxy, of either kind. */
export interface ModelProxy {
  readonly id: string;
  /** Carries out what was ordered and reports what is new; whether anything was to do. */
  work(): boolean;
  order(order: AgentOrder): void;
  /** The stream is gone; that of `session` alone where it is given. */
  lostStream(session?: number): void;
}
