import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import type { Device } from '#pcie/device';
import type { SlotCounters } from './counters.ts';
import type { TlpTap } from './host-proxy.ts';
import type { LinkPort, LinkUser, SlotState } from './link-user.ts';
import type { BoxRow } from './mapping-table.ts';
import type { TableError } from './table-check.ts';

/**
 * - `unused`: no row, or one that is not valid and used.
 * - `ready`: device reset and scrubbed, TLPs pass while the link of the row's host is up.
 * - `contained`: the session ended, until a higher generation.
 * - `quarantined`: a scrub failed; nothing uses the slot until the proxy starts anew.
 */
export type BoxSlotState = 'unused' | 'ready' | 'contained' | 'quarantined';

export type BoxProxyEvent =
  | { readonly kind: 'slot-ready'; readonly slot: number; readonly generation: number }
  | {
      readonly kind: 'slot-gone';
      readonly slot: number;
      readonly generation: number;
      readonly reason: string;
    }
  | { readonly kind: 'quarantined'; readonly slot: number; readonly reason: string };

export interface BoxProxyOptions {
  readonly boxId: string;
  /** By slot number, 0 to 65535. The proxy plugs each device, and drives its `tick`. */
  readonly devices: ReadonlyMap<number, Device>;
  /** Non-posted requests of one slot outstanding at once, on top of the device's own tags. Default: no limit. */
  readonly outstandingReads?: number;
  /** Payload a slot may send before slots that wait get their turn. Default 16 KiB. */
  readonly fairShareBytes?: number;
  readonly onEvent?: (now: Nanos, event: BoxProxyEvent) => void;
}

/** Drives its devices: after each call on the proxy, `nextDeadlineNs` includes theirs. */
export class BoxProxy implements LinkUser, Timed {
  /** Set to see the TLPs that pass (capture). */
  tap: TlpTap | undefined;

  constructor(_options: BoxProxyOptions) {}

  /**
   * Puts a whole table in force, or refuses all of it and changes nothing. Slots whose row goes or
   * changes are fenced, then reset and scrubbed, before this returns.
   */
  setTable(_now: Nanos, _rows: readonly BoxRow[]): TableError[] {
    throw new Error('to be written');
  }
  /** The table in force. */
  get rows(): readonly BoxRow[] {
    throw new Error('to be written');
  }
  slotState(_slot: number): BoxSlotState {
    throw new Error('to be written');
  }
  /** Live counters of a slot, kept over generations. */
  counters(_slot: number): SlotCounters {
    throw new Error('to be written');
  }
  /** What could not be put down to any slot of this box. */
  get strayCounters(): SlotCounters {
    throw new Error('to be written');
  }

  linkUp(_now: Nanos, _link: LinkPort): void {
    throw new Error('to be written');
  }
  linkTlp(
    _now: Nanos,
    _link: LinkPort,
    _slot: number,
    _generation: number,
    _bytes: Uint8Array,
    _offset: number,
    _length: number,
  ): boolean {
    throw new Error('to be written');
  }
  linkSlotState(
    _now: Nanos,
    _link: LinkPort,
    _slot: number,
    _generation: number,
    _state: SlotState,
  ): void {
    throw new Error('to be written');
  }
  linkResume(_now: Nanos, _link: LinkPort): void {
    throw new Error('to be written');
  }
  linkDown(_now: Nanos, _link: LinkPort, _reason: string): void {
    throw new Error('to be written');
  }

  nextDeadlineNs(): number {
    throw new Error('to be written');
  }
  tick(_now: Nanos): void {
    throw new Error('to be written');
  }
}
