/**
 * The routing state of the two proxies, one row a slot. Bus numbers and windows are the host's own
 * and are checked here, never chosen.
 */

/** An inclusive address range, as a type 1 header's base and limit registers express it. */
export interface Window {
  readonly base: number;
  readonly limit: number;
}

/** A virtual slot of a host. A row with `used` false routes nothing and owns nothing. */
export interface HostRow {
  /** Index of the virtual slot (downstream port) on this host. */
  readonly virtualSlot: number;
  readonly used: boolean;
  /** Secondary bus number of the virtual port, 1 to 255. */
  readonly secondaryBus: number;
  /** Below 4 GiB, 1 MiB granules. */
  readonly nonPrefetchable: Window;
  /** 64 bit, 1 MiB granules. */
  readonly prefetchable: Window;
  readonly box: string;
  readonly slot: number;
  readonly path: string;
  /** Never used twice; 1 to 2^53 − 1. */
  readonly generation: number;
}

/** A slot of a box. TLPs pass only while `valid` and `used`. */
export interface BoxRow {
  readonly slot: number;
  readonly valid: boolean;
  readonly used: boolean;
  readonly host: string;
  readonly path: string;
  readonly generation: number;
}
