/**
 * What a proxy's agent and the manager say to each other, as plain checked values. On the wire these
 * are the messages of `proto/dxpu/agent/v1/agent.proto`; `agent-wire.ts` maps between the two and
 * refuses what cannot be. Both sides' cores speak in these alone, so that a whole pool runs without
 * a wire.
 *
 * The stream is level-triggered in both directions. Each direction begins with the whole state and
 * goes on with what changed; a new stream begins anew. An agent says what is, never what should be; an
 * order says what should be, never how to get there.
 */

/** An inclusive address range of a virtual port's bridge window; empty while `base > limit`. */
export interface WindowReport {
  readonly base: number;
  readonly limit: number;
}

/** A base address register of a function, as sizing it shows (PCIe base 7.5.1.2.1). */
export interface BarSize {
  readonly index: number;
  readonly sizeBytes: number;
  readonly prefetchable: boolean;
  /** Takes two registers and may lie above 4 GiB. */
  readonly is64: boolean;
}

export interface GpuNodeReport {
  readonly uuid: string;
  readonly model: string;
  readonly memoryBytes: number;
  /** GPU nodes of one box with the same name here reach each other by NVLink; '' for none. */
  readonly nvlinkGroup: string;
  readonly bars: readonly BarSize[];
}

export const BOX_KINDS = ['pcie', 'nvswitch'] as const;
export type BoxKind = (typeof BOX_KINDS)[number];

/** A network way to a box: a name, and where its proxy listens on it. */
export interface Endpoint {
  readonly path: string;
  /** `address:port`, IPv6 addresses in brackets. */
  readonly address: string;
}

export interface BoxHello {
  readonly kind: 'box';
  readonly id: string;
  /** Made anew at each start of the process: everything an earlier instance held is gone. */
  readonly instance: string;
  readonly version: string;
  readonly boxKind: BoxKind;
  /** Where in the datacenter, for who may reach whom: '' where there are no zones. */
  readonly zone: string;
  readonly endpoints: readonly Endpoint[];
}

export interface HostHello {
  readonly kind: 'host';
  readonly id: string;
  readonly instance: string;
  readonly version: string;
  /** The zones of boxes this host reaches; empty means all. */
  readonly reach: readonly string[];
}

export type AgentHello = BoxHello | HostHello;

export const BOX_SLOT_STATES = ['unused', 'ready', 'contained', 'quarantined'] as const;
export type BoxSlotStateName = (typeof BOX_SLOT_STATES)[number];

export interface BoxSlotReport {
  readonly slot: number;
  /** `undefined` when nothing is plugged into the slot. */
  readonly node: GpuNodeReport | undefined;
  readonly state: BoxSlotStateName;
  /** Reset and scrubbed since the last row was in force. Never true while there is a row. */
  readonly clean: boolean;
  /** The row in force: valid and used. */
  readonly row: { readonly host: string; readonly generation: number } | undefined;
  /** Why it is contained or quarantined; '' otherwise. */
  readonly reason: string;
}

export const HOST_SLOT_STATES = ['unused', 'waiting', 'ready', 'contained'] as const;
export type HostSlotStateName = (typeof HOST_SLOT_STATES)[number];

/** A function the host has found behind a virtual port. */
export interface FunctionReport {
  readonly bdf: number;
  readonly vendorId: number;
  readonly deviceId: number;
  /** Final values: what sizing wrote is never reported. Empty until all are assigned. */
  readonly bars: readonly {
    readonly index: number;
    readonly address: number;
    readonly sizeBytes: number;
  }[];
  /** Live bits of the command register (7.5.1.1.3). */
  readonly memoryEnable: boolean;
  readonly busMaster: boolean;
}

export interface HostSlotReport {
  readonly slot: number;
  /** The type 1 registers of the virtual port, as firmware or system set them. */
  readonly secondaryBus: number;
  readonly nonPrefetchable: WindowReport;
  readonly prefetchable: WindowReport;
  readonly row:
    | { readonly box: string; readonly boxSlot: number; readonly generation: number }
    | undefined;
  readonly state: HostSlotStateName;
  /** `undefined` before enumeration, after removal, and while plugged out. */
  readonly function: FunctionReport | undefined;
  /** A program of this host holds the function: removal without surprise waits for it. */
  readonly inUse: boolean;
  /** Why the host cannot use the function that is there; `kind` as `no-space`. */
  readonly problem: { readonly kind: string; readonly message: string } | undefined;
  /** Why it is contained or waits; '' otherwise. */
  readonly reason: string;
}

/** A way from this host to a box, as measured over the link's own pings. */
export interface PathReport {
  readonly box: string;
  readonly path: string;
  readonly up: boolean;
  /** Smallest of the recent round trips; 0 while nothing was measured. */
  readonly rttNs: number;
  /** 0 where unknown. */
  readonly bitsPerSecond: number;
  /** What is in the way while it is not up; '' otherwise. */
  readonly problem: string;
}

/**
 * `applied` is the revision of the newest order in force (0 before the first of this stream): what is
 * said of a slot here was seen after that order took effect.
 */
export interface BoxReport {
  readonly kind: 'box';
  readonly applied: number;
  /** All slots there are; otherwise those that changed. */
  readonly whole: boolean;
  /**
   * Of a whole report: the highest generation any slot had since the process began, for none at or below
   * it may be used again; absent while there was none.
   */
  readonly highestGeneration?: number;
  readonly slots: readonly BoxSlotReport[];
  /** Why the newest order could not be put in force; '' when it is. */
  readonly refused: string;
}

export interface HostReport {
  readonly kind: 'host';
  readonly applied: number;
  readonly whole: boolean;
  /** As in `BoxReport`. */
  readonly highestGeneration?: number;
  readonly slots: readonly HostSlotReport[];
  /** All paths there are when `whole`; otherwise those that changed. */
  readonly paths: readonly PathReport[];
  readonly refused: string;
}

export type AgentReport = BoxReport | HostReport;

/** What a box slot should hold. Without a row it should be reset, scrubbed and unused. */
export interface BoxSlotOrder {
  readonly slot: number;
  readonly row:
    | { readonly host: string; readonly generation: number; readonly path: string }
    | undefined;
}

/** What a virtual slot should hold. */
export interface HostSlotOrder {
  readonly slot: number;
  readonly row:
    | {
        readonly box: string;
        readonly boxSlot: number;
        readonly generation: number;
        readonly path: string;
      }
    | undefined;
  /** Whether the function should be in the slot while there is a row. */
  readonly plugged: boolean;
  /** How it leaves: by surprise, or after its users have let go. */
  readonly surprise: boolean;
}

/** Revisions rise by one with each order of a stream, beginning at 1 with a whole one. */
export interface BoxOrder {
  readonly kind: 'box';
  readonly revision: number;
  /** Slots not named hold nothing; otherwise they stay as ordered before. */
  readonly whole: boolean;
  readonly slots: readonly BoxSlotOrder[];
}

export interface HostOrder {
  readonly kind: 'host';
  readonly revision: number;
  readonly whole: boolean;
  readonly slots: readonly HostSlotOrder[];
  /** The boxes to keep links to, always all of them; `undefined` when unchanged. */
  readonly peers:
    | readonly { readonly box: string; readonly endpoints: readonly Endpoint[] }[]
    | undefined;
}

export type AgentOrder = BoxOrder | HostOrder;
