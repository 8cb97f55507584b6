import type { Nanos } from '#base/units';
import type { TransportUser } from './transport.ts';

/**
 * Passes the events of a transport on to `user`, and calls `settle` with their time after each that may have
 * moved a deadline or queued something to send. Frames alone do not count: a turn ends behind them.
 */
export function settleAfter(user: TransportUser, settle: (now: Nanos) => void): TransportUser {
  return {
    frame: (now, bytes, offset, length) => user.frame(now, bytes, offset, length),
    turnEnd: (now) => {
      user.turnEnd(now);
      settle(now);
    },
    writable: (now) => {
      user.writable(now);
      settle(now);
    },
    closed: (now, reason) => {
      user.closed(now, reason);
      settle(now);
    },
  };
}
