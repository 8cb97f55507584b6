/** Requests that a lying peer makes up, and what may come of them. */
import { CompletionStatus, FlowClass, flowClassOf, type Tlp, TlpKind } from '#pcie/tlp';
import { Invariant } from './oracle.ts';
import type { WatchedPort } from './watched-port.ts';

/** Requester ID of forged requests, which no function has. Their answers go no further. */
export const LIAR_ID = 0xfff8;

/** Whether `tlp` answers a forged request; one answer is due, and it must say no. */
export function judgeForgery(
  port: WatchedPort,
  { kind, requesterId, tag, status }: Tlp,
  fail: (invariant: Invariant, what: string) => void,
): boolean {
  if (requesterId !== LIAR_ID || flowClassOf(kind) !== FlowClass.COMPLETION) return false;
  if (kind === TlpKind.CplD || status === CompletionStatus.SC) {
    fail(Invariant.FENCED, `obeyed a forged request of ${port.peer.id}`);
  } else if (!port.forged.delete(tag)) {
    fail(Invariant.CONTAINED, `answered a forged request of ${port.peer.id} twice`);
  }
  return true;
}
