import type { Nanos } from '#base/units';
import type { DownstreamFabric, RootSide } from '#pcie/root-port';
import type { FlowClass, Tlp } from '#pcie/tlp';
import type { Direction, RefusalName, SlotCounters } from './counters.ts';
import type { LinkPort, LinkUser, SlotState } from './link-user.ts';
import type { HostRow } from './mapping-table.ts';
import type { TableError } from './table-check.ts';

/** Sees each TLP that passes a proxy. The record is valid during the call alone. */
export type TlpTap = (now: Nanos, slot: number, direction: Direction, tlp: Tlp) => void;

/**
 * - `waiting`: the row is set, its box has not said READY yet (config requests end with CRS).
 * - `ready`: TLPs pass.
 * - `contained`: the session or the box ended it (requests end with UR) until a higher generation.
 */
export type HostSlotState = 'unused' | 'waiting' | 'ready' | 'contained';

export type HostProxyEvent =
  | { readonly kind: 'slot-up'; readonly virtualSlot: number; readonly generation: number }
  | {
      readonly kind: 'slot-down';
      readonly virtualSlot: number;
      readonly generation: number;
      readonly surprise: boolean;
      readonly reason: string;
    }
  | {
      /** The first refusal of a reason for a generation; later ones are only counted. */
      readonly kind: 'refused';
      readonly virtualSlot: number;
      readonly reason: RefusalName;
      readonly message: string;
    };

export interface HostProxyOptions {
  readonly hostId: string;
  readonly rootSide: RootSide;
  /** Largest completion payload the root port makes. A power of two from 128 to 4096; default 512. */
  readonly maxPayloadBytes?: number;
  /** Read completion boundary, 64 or 128; default 64. */
  readonly rcbBytes?: 64 | 128;
  /** Who completes DMA, as completions name it; default 0, the root complex itself. */
  readonly completerBdf?: number;
  readonly onEvent?: (now: Nanos, event: HostProxyEvent) => void;
}

export class HostProxy implements DownstreamFabric, LinkUser {
  /** Set to see the TLPs that pass (capture); `slot` is the virtual slot. */
  tap: TlpTap | undefined;

  constructor(_options: HostProxyOptions) {}

  /**
   * Puts a whole table in force, or refuses all of it and changes nothing. Rows that go, or come
   * with another generation, are fenced before this returns.
   */
  setTable(_now: Nanos, _rows: readonly HostRow[]): TableError[] {
    throw new Error('to be written');
  }
  /** The table in force. */
  get rows(): readonly HostRow[] {
    throw new Error('to be written');
  }
  slotState(_virtualSlot: number): HostSlotState {
    throw new Error('to be written');
  }
  /** Live counters of a virtual slot, kept over generations. */
  counters(_virtualSlot: number): SlotCounters {
    throw new Error('to be written');
  }
  /** What could not be put down to any row: unknown slots, undecodable TLPs, requests to no window. */
  get strayCounters(): SlotCounters {
    throw new Error('to be written');
  }

  canRequest(_virtualSlot: number, _flow: FlowClass, _payloadBytes: number): boolean {
    throw new Error('to be written');
  }
  request(_now: Nanos, _tlp: Tlp): void {
    throw new Error('to be written');
  }
  registerMemory(
    _base: number,
    _memory: Uint8Array,
    _access: { read: boolean; write: boolean },
  ): void {
    throw new Error('to be written');
  }
  unregisterMemory(_base: number): void {
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
}
