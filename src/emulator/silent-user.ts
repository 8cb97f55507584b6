import type { Transport, TransportUser } from '#fabric/transport';

/** Of a process that died while the connection was being made: hears nothing any more. */
export function silentUser(transport: Transport): TransportUser {
  transport.close();
  return { frame: () => {}, turnEnd: () => {}, writable: () => {}, closed: () => {} };
}
