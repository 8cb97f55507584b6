/**
 * The pool as the core has it in mind: records of the store, joined, with what the living streams have
 * told. Plain state without rules; whoever changes a part says so at its head:
 *
 * - records of boxes and hosts, and their sessions: `agent-desk.ts`;
 * - records of slots and paths, and reports: `box-reports.ts` and `host-reports.ts`;
 * - bindings and their flags: `command-desk.ts`, `reconciler.ts` and `wanted-orders.ts`;
 * - what the placement index was told (`told`, `gpus`, `gpusFree`): `facts-keeper.ts`;
 * - who is linked to whom (`peerZone`): `peer-lists.ts`; what is wrong (`problems`): `refused-claims.ts`.
 */
import type { HostSlotFacts, NodeFacts } from '#placement/facts';
import type {
  BoxSlotOrder,
  BoxSlotReport,
  HostSlotOrder,
  HostSlotReport,
} from '#proto/agent-messages';
import type { Due } from './deadline-lists.ts';
import type { OrderBook } from './order-book.ts';
import type { AgentSessionId } from './pool-sink.ts';
import type {
  BindingRecord,
  BoxRecord,
  BoxSlotRecord,
  HostRecord,
  HostSlotRecord,
  PathRecord,
} from './records.ts';
import { compareNumbers, compareText, SortedKeys } from './sorted-keys.ts';

export interface Binding extends Due {
  record: BindingRecord;
  readonly number: number;
  readonly boxSlot: BoxSlot;
  readonly hostSlot: HostSlot;
  /** Of this generation: its row was reported by the proxy. */
  boxHeld: boolean;
  hostHeld: boolean;
  /** Of this generation: the box confirmed its row, or may have, so the host shall have its own. */
  boxInForce: boolean;
  /** While detaching: the host confirmed that its row is gone. Later, what it does is no longer asked. */
  hostReleased: boolean;
  /** Of this generation: the box's row was ordered away, and never comes back. */
  boxReleasing: boolean;
  superseded: boolean;
  /** For the look that is due in this turn alone. */
  boxRestarted: boolean;
  hostRestarted: boolean;
  /** The reconciler will look at it. */
  isTouched: boolean;
}

export interface BoxSlot {
  readonly box: Box;
  readonly slot: number;
  /** `undefined` until a GPU node was seen in it. */
  record: BoxSlotRecord | undefined;
  /** Of the stream that lives; the GPU node in it is that of `record` when `claim` is ''. */
  report: BoxSlotReport | undefined;
  /** The UUID of a GPU node reported here that is not believed, for it is elsewhere; '' otherwise. */
  claim: string;
  binding: Binding | undefined;
  refused: string;
  told: NodeFacts['state'] | undefined;
  isTouched: boolean;
}

export interface Box extends Due {
  readonly kind: 'box';
  readonly id: string;
  record: BoxRecord;
  /** The stream that reports for it: there is one from the whole report that begins it on. */
  session: AgentSession<BoxSlotOrder> | undefined;
  /** Hosts that reach this zone keep a link to it; `undefined` while none need. */
  peerZone: string | undefined;
  readonly slots: Map<number, BoxSlot>;
  readonly slotNumbers: SortedKeys<number>;
  /** GPU nodes present, and those of them that can be planned while the box reports. */
  gpus: number;
  gpusFree: number;
  readonly problems: Map<string, string>;
  /** It has raised the generation counter since this core began; once is what a restored store explains. */
  hasRaised: boolean;
}

export interface HostSlot {
  readonly host: Host;
  readonly slot: number;
  /** `undefined` while no windows were reported that can be. */
  record: HostSlotRecord | undefined;
  report: HostSlotReport | undefined;
  /** Its windows as reported are believed. */
  isSound: boolean;
  binding: Binding | undefined;
  refused: string;
  told: HostSlotFacts | undefined;
  isTouched: boolean;
}

export interface Path {
  record: PathRecord;
  up: boolean;
  problem: string;
}

export interface Host {
  readonly kind: 'host';
  readonly id: string;
  record: HostRecord;
  session: AgentSession<HostSlotOrder> | undefined;
  readonly slots: Map<number, HostSlot>;
  readonly slotNumbers: SortedKeys<number>;
  readonly paths: Map<string, Path>;
  readonly pathKeys: SortedKeys<string>;
  readonly problems: Map<string, string>;
  hasRaised: boolean;
}

export interface AgentSession<O extends { readonly slot: number }> {
  readonly id: AgentSessionId;
  readonly book: OrderBook<O>;
  /** Slots that wait in vain for an order the proxy has refused. */
  refusedSlots: readonly number[];
  /** Of hosts: which peers were ordered last, and whether that may be out of date. */
  peersKey: string;
  isPeersStale: boolean;
  /** When `seenMs` was last brought up to date, by the monotonic clock. */
  seenNs: number;
}

export class Inventory {
  readonly bindings = new Map<string, Binding>();
  readonly bindingNumbers = new SortedKeys<number>(compareNumbers);
  readonly boxes = new Map<string, Box>();
  readonly boxIds = new SortedKeys<string>(compareText);
  readonly hosts = new Map<string, Host>();
  readonly hostIds = new SortedKeys<string>(compareText);
  /** The slot each present GPU node is in, by UUID. */
  readonly nodes = new Map<string, BoxSlot>();

  addBox(record: BoxRecord): Box {
    const box: Box = {
      dueNs: Infinity,
      dueList: undefined,
      dueBefore: undefined,
      dueBehind: undefined,
      kind: 'box',
      id: record.id,
      record,
      session: undefined,
      peerZone: undefined,
      slots: new Map(),
      slotNumbers: new SortedKeys(compareNumbers),
      gpus: 0,
      gpusFree: 0,
      problems: new Map(),
      hasRaised: false,
    };
    this.boxes.set(box.id, box);
    this.boxIds.add(box.id);
    return box;
  }

  boxSlot(box: Box, slot: number): BoxSlot {
    let found = box.slots.get(slot);
    if (found === undefined) {
      found = {
        box,
        slot,
        record: undefined,
        report: undefined,
        claim: '',
        binding: undefined,
        refused: '',
        told: undefined,
        isTouched: false,
      };
      box.slots.set(slot, found);
      box.slotNumbers.add(slot);
    }
    return found;
  }

  addHost(record: HostRecord): Host {
    const host: Host = {
      kind: 'host',
      id: record.id,
      record,
      session: undefined,
      slots: new Map(),
      slotNumbers: new SortedKeys(compareNumbers),
      paths: new Map(),
      pathKeys: new SortedKeys(compareText),
      problems: new Map(),
      hasRaised: false,
    };
    this.hosts.set(host.id, host);
    this.hostIds.add(host.id);
    return host;
  }

  hostSlot(host: Host, slot: number): HostSlot {
    let found = host.slots.get(slot);
    if (found === undefined) {
      found = {
        host,
        slot,
        record: undefined,
        report: undefined,
        isSound: true,
        binding: undefined,
        refused: '',
        told: undefined,
        isTouched: false,
      };
      host.slots.set(slot, found);
      host.slotNumbers.add(slot);
    }
    return found;
  }

  path(host: Host, record: PathRecord): Path {
    const key = pathKey(record.box, record.path);
    let found = host.paths.get(key);
    if (found === undefined) {
      found = { record, up: false, problem: 'its host is not connected' };
      host.paths.set(key, found);
      host.pathKeys.add(key);
    }
    return found;
  }

  addBinding(record: BindingRecord, boxSlot: BoxSlot, hostSlot: HostSlot): Binding {
    const binding: Binding = {
      // All fields in one literal: one that begins with others' takes three times as long.
      dueNs: Infinity,
      dueList: undefined,
      dueBefore: undefined,
      dueBehind: undefined,
      record,
      number: bindingNumber(record.id),
      boxSlot,
      hostSlot,
      boxHeld: false,
      hostHeld: false,
      boxInForce: false,
      hostReleased: false,
      boxReleasing: false,
      superseded: false,
      boxRestarted: false,
      hostRestarted: false,
      isTouched: false,
    };
    this.bindings.set(record.id, binding);
    this.bindingNumbers.add(binding.number);
    boxSlot.binding = binding;
    hostSlot.binding = binding;
    return binding;
  }

  removeBinding(binding: Binding): void {
    this.bindings.delete(binding.record.id);
    this.bindingNumbers.delete(binding.number);
    binding.boxSlot.binding = undefined;
    binding.hostSlot.binding = undefined;
  }
}

/** In the order of keys: all paths to one box are neighbours. */
export function pathKey(box: string, path: string): string {
  return `${box}\0${path}`;
}

/** Of `b17`: 17. */
export function bindingNumber(id: string): number {
  return Number(id.slice(1));
}

/** The box's agent is there, and has told everything. */
export function isReporting(of: Box | Host): boolean {
  return of.session !== undefined;
}
