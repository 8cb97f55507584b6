/** What a box proxy is made with, and what it tells. */
import type { Nanos } from '#base/units';
import type { Device } from '#pcie/device';

export type BoxProxyEvent =
  | { readonly kind: 'slot-ready'; readonly slot: number; readonly generation: number }
  | {
      readonly kind: 'slot-gone';
      readonly slot: number;
      readonly generation: number;
      readonly reason: string;
    }
  | { readonly kind: 'quarantined'; readonly slot: number; readonly reason: string }
  /** A device that was away, or took its time to reset, can be used. */
  | { readonly kind: 'device-ready'; readonly slot: number };

/** Test only: each leaves one check out. Never set outside tests. */
export interface BoxProxyFaults {
  readonly noPeerFence?: boolean;
  readonly noGenerationFence?: boolean;
  /** Outstanding requests of a device are forgotten at session down. */
  readonly noAbort?: boolean;
  /** A slot stays ready when its session ends. */
  readonly noContainment?: boolean;
  /** A row set while a session has no connection belongs to that session, and ends with it. */
  readonly bindsWhileResuming?: boolean;
  /** A slot goes to its next owner as the last one left it. */
  readonly noScrub?: boolean;
}

export interface BoxProxyOptions {
  readonly boxId: string;
  /** By slot number, 0 to 65535. The proxy plugs each device, and drives its `tick`. */
  readonly devices: ReadonlyMap<number, Device>;
  /**
   * Non-posted requests of one slot outstanding at once, on top of the device's own tags. Default:
   * no limit.
   */
  readonly outstandingReads?: number;
  /** Bytes a slot may send before slots that wait get their turn. Default 16 KiB. */
  readonly fairShareBytes?: number;
  readonly onEvent?: (now: Nanos, event: BoxProxyEvent) => void;
  readonly faults?: BoxProxyFaults;
}
