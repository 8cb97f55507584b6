/** What `dxpu status --help` says of the words of the status. */
export const STATUS_WORDS = `
Words:
  down, up       towards the device, towards the host
  last, least    the round trip measured last, and the shortest of this link
  waiting        the row is in force, its box has not said yet that the slot is ready
  contained      its session ended; it comes back under a higher generation alone
  quarantined    the device could not be scrubbed, or is not there: it comes back with a restart of the box,
                 one of another process (vfio-user) by itself
  stale-*        of an earlier generation or session, refused
  dropped        posted, and there was nowhere to send it
  aborted        requests a device had under way when its session ended, answered UR
  unroutable     to no window, bus or slot of the table
  refused-*      what a function asked for and may not do, by reason`;
