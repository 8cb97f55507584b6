import type { Transport, TransportUser } from '#fabric/transport';

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

/** Of a process that died while the connection was being made: hears nothing any more. */
export function nobody(transport: Transport): TransportUser {
  transport.close();
  return { frame: () => {}, turnEnd: () => {}, writable: () => {}, closed: () => {} };
}
