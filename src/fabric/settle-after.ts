import type { TransportUser } from './transport.ts';

/**
 * Passes the events of a transport on to `user`, and calls `settle` after each that may have moved a
 * deadline or queued something to send. Frames alone do not count: a turn ends behind them.
 */
export function settleAfter(user: TransportUser, settle: () => void): TransportUser {
  return {
    frame: (now, bytes, offset, length) => user.frame(now, bytes, offset, length),
    turnEnd: (now) => {
      user.turnEnd(now);
      settle();
    },
    writable: (now) => {
      user.writable(now);
      settle();
    },
    closed: (now, reason) => {
      user.closed(now, reason);
      settle();
    },
  };
}
