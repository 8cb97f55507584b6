import type { TransportUser } from '#fabric/transport';

/** Calls `then` after each event that may have moved a deadline or queued something to send. */
export function afterEach(user: TransportUser, then: () => void): TransportUser {
  return {
    frame: (now, bytes, offset, length) => user.frame(now, bytes, offset, length),
    turnEnd: (now) => {
      user.turnEnd(now);
      then();
    },
    writable: (now) => {
      user.writable(now);
      then();
    },
    closed: (now, reason) => {
      user.closed(now, reason);
      then();
    },
  };
}
