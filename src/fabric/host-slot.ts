/**
 * The state the parts of a host proxy share. `HostProxy` alone changes table and peers, `HostSlotLife`
 * the slots; `HostDownstream` and `HostUpstream` read them, and feed a slot's shadow and counters.
 */
import { AdvancedErrorReporting } from '#pcie/aer';
import { ConfigSpace } from '#pcie/config-space';
import { ConfigShadow } from './config-shadow.ts';
import { SlotCounters } from './counters.ts';
import { HostTable } from './host-table.ts';
import { IntxLine } from './intx-line.ts';
import { KeptTlps } from './kept-tlps.ts';
import type { LinkPort, SlotState } from './link-user.ts';
import type { HostRow } from './mapping-table.ts';
import type { MemoryMap } from './memory-map.ts';

/**
 * - `unused`: no used row.
 * - `waiting`: the row is set, its box has not said READY yet (config requests end with CRS).
 * - `ready`: TLPs pass.
 * - `contained`: the session or the box ended it (requests end with UR) until a higher generation.
 */
export type HostSlotState = 'unused' | 'waiting' | 'ready' | 'contained';

/**
 * Where the function of a row is, as its host should see it:
 *
 * - `held`: out of the slot until `plug`.
 * - `in`: in the slot while the slot is ready.
 * - `left`: taken out; it comes back under a new generation alone, for answers to what was asked of it
 *   before may still be on their way.
 */
export type FunctionPlace = 'held' | 'in' | 'left';

/** Only the capability counts: nobody enumerates this port. */
const PORT_IDENTITY = { vendorId: 0, deviceId: 0, revisionId: 0, classCode: 0x060400 };

export class HostSlot {
  readonly virtualSlot: number;
  /** What its function may reach by DMA. */
  readonly memory: MemoryMap;
  readonly counters = new SlotCounters();
  row: HostRow | undefined;
  state: HostSlotState = 'unused';
  place: FunctionPlace = 'in';
  /** The session the slot is `ready` in. */
  session: LinkPort | undefined;
  /** Where TLPs go: the session's link while the function is in the slot. */
  link: LinkPort | undefined;
  /** Of the function of this generation. */
  shadow = new ConfigShadow();
  readonly intx: IntxLine;
  /** Bit i: the refusal numbered i has been reported for this generation. */
  reportedRefusals = 0;
  readonly #aer: AdvancedErrorReporting | undefined;
  #ownAer: AdvancedErrorReporting | undefined;

  constructor(virtualSlot: number, memory: MemoryMap, aer: AdvancedErrorReporting | undefined) {
    this.virtualSlot = virtualSlot;
    this.memory = memory;
    this.intx = new IntxLine(virtualSlot);
    this.#aer = aer;
  }

  get generation(): number {
    return this.row?.generation ?? 0;
  }

  /** A new function is behind this slot: nothing is known of its configuration. */
  bind(row: HostRow, place: FunctionPlace): void {
    this.row = row;
    this.state = 'waiting';
    this.place = place;
    this.session = undefined;
    this.link = undefined;
    this.shadow = new ConfigShadow();
    this.reportedRefusals = 0;
  }

  /** Error log of the virtual port; made at the first error when the port brought none. */
  get aer(): AdvancedErrorReporting {
    if (this.#aer !== undefined) return this.#aer;
    this.#ownAer ??= new AdvancedErrorReporting(new ConfigSpace(PORT_IDENTITY, 1), { ecrc: false });
    return this.#ownAer;
  }
}

export class HostPeer {
  readonly box: string;
  readonly link: LinkPort;
  /** Slots of this box with a used row, by box slot. */
  readonly slots = new Map<number, HostSlot>();
  /** What the box last said of each of its slots, whether or not a row knows of it yet. */
  readonly states = new Map<number, { readonly generation: number; readonly state: SlotState }>();
  readonly kept = new KeptTlps();
  live = true;
  /** Something the box has said waits until the session has a connection again. */
  deferred = false;
  /** True while `kept` is being worked off. */
  draining = false;
  #lastNumber = -1;
  #last: HostSlot | undefined;

  constructor(link: LinkPort) {
    this.box = link.peer.id;
    this.link = link;
  }

  /** The slot behind box slot `number`: mostly the one asked for last. */
  slotAt(number: number): HostSlot | undefined {
    if (number !== this.#lastNumber) {
      this.#last = this.slots.get(number);
      this.#lastNumber = number;
    }
    return this.#last;
  }

  /** Another table: `slots` begins anew. */
  clearSlots(): void {
    this.slots.clear();
    this.#lastNumber = -1;
  }
}

export class HostRoutes {
  table = new HostTable([]);
  /** The slot of each row of `table`. */
  slotOfRow: HostSlot[] = [];
  /** What cannot be put down to any slot. */
  readonly stray = new SlotCounters();
}
