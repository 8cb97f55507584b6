import type {
  AgentOrder,
  FunctionReport,
  HostHello,
  HostReport,
  HostSlotReport,
} from '#proto/agent-messages';
import type { ModelProxy, ProxyHome } from './core-pool-proxy.ts';

export interface ModelHostSlot {
  row: { readonly box: string; readonly boxSlot: number; readonly generation: number } | undefined;
  state: HostSlotReport['state'];
  isPlugged: boolean;
  function: FunctionReport | undefined;
  inUse: boolean;
  problem: { kind: string; message: string } | undefined;
  reason: string;
}

interface WantedRow {
  readonly box: string;
  readonly boxSlot: number;
  readonly generation: number;
  readonly plugged: boolean;
  readonly surprise: boolean;
}

export class ModelHostProxy implements ModelProxy {
  readonly id: string;
  readonly slots = new Map<number, ModelHostSlot>();
  instance = 1;
  reach: readonly string[] = [];
  session: number | undefined;
  applied = 0;
  refused = '';
  isDeaf = false;
  isMute = false;
  refuses = '';
  /** `refuses` is about orders that plug something in alone. */
  refusesPlugs = false;
  /** Does not find what is plugged in. */
  isBlind = false;
  /** Finds what is plugged in, and puts it where it has no window. */
  misplaces = false;
  /** Programs let go when they are asked to. */
  letsGo = true;
  keepsRows = false;
  peers: readonly string[] = [];
  /** Slot and generation under which a function was set up, ever. */
  readonly worked = new Set<string>();
  readonly orders: AgentOrder[] = [];
  readonly #pool: ProxyHome;
  #rows = new Map<number, WantedRow>();
  /** By this process. */
  #used = new Set<number>();
  #pending: AgentOrder[] = [];
  #said = new Map<number, string>();
  #saidApplied = '';
  #saidPaths = '';

  constructor(pool: ProxyHome, id: string, slots: number) {
    this.#pool = pool;
    this.id = id;
    for (let slot = 0; slot < slots; slot++) this.slots.set(slot, emptySlot());
  }

  get hello(): HostHello {
    const { id, instance, reach } = this;
    return { kind: 'host', id, instance: `${id}-${instance}`, version: '0.1.0', reach };
  }

  slot(slot: number): ModelHostSlot {
    return this.slots.get(slot) as ModelHostSlot;
  }

  connect(): void {
    this.applied = 0;
    this.refused = '';
    this.#pending = [];
    this.session = this.#pool.open(this, this.hello);
    this.say(true);
  }

  disconnect(): void {
    if (this.session !== undefined) this.#pool.close(this.session);
    this.session = undefined;
  }

  lostStream(session = this.session): void {
    if (session === this.session) this.session = undefined;
  }

  restart(): void {
    this.disconnect();
    this.instance++;
    this.#rows = new Map();
    this.#used = new Set();
    for (const slot of this.slots.keys()) this.slots.set(slot, emptySlot());
  }

  contain(slot: number): void {
    Object.assign(this.slot(slot), { state: 'contained', reason: 'its link has ended' });
  }

  order(order: AgentOrder): void {
    this.orders.push(order);
    this.#pending.push(order);
  }

  work(): boolean {
    if (this.session === undefined) return false;
    let isBusy = false;
    if (!this.isDeaf) {
      for (const order of this.#pending.splice(0)) {
        this.#carryOut(order);
        isBusy = true;
      }
      if (this.#enforce()) isBusy = true;
      for (const [slot, state] of this.slots) if (this.#move(slot, state)) isBusy = true;
    }
    return this.say(false) || isBusy;
  }

  say(whole: boolean): boolean {
    if (this.session === undefined || (this.isMute && !whole)) return false;
    if (whole) this.#said = new Map();
    const slots: HostSlotReport[] = [];
    for (const [slot, state] of this.slots) {
      const report = this.reportOf(slot, state);
      const text = JSON.stringify(report);
      if (this.#said.get(slot) === text) continue;
      this.#said.set(slot, text);
      slots.push(report);
    }
    const paths = this.peers.map((box) => pathTo(box));
    const isNewPath = whole || JSON.stringify(paths) !== this.#saidPaths;
    this.#saidPaths = JSON.stringify(paths);
    const { applied, refused } = this;
    const isSame = this.#saidApplied === `${applied} ${refused}`;
    if (!whole && slots.length === 0 && isSame && !isNewPath) return false;
    this.#saidApplied = `${applied} ${refused}`;
    this.sayThis({ whole, slots, paths: isNewPath ? paths : [] });
    return true;
  }

  reportOf(slot: number, state: ModelHostSlot): HostSlotReport {
    const { isPlugged: _, ...rest } = state;
    return { slot, ...portOf(slot), ...rest };
  }

  sayThis(report: Partial<HostReport>): void {
    const { applied, refused, session } = this;
    if (session === undefined) return;
    this.#pool.report(session, {
      kind: 'host',
      applied,
      whole: false,
      slots: [],
      paths: [],
      refused,
      ...report,
    });
  }

  #carryOut(order: AgentOrder): void {
    if (order.kind !== 'host') throw new Error('a host was ordered as a box');
    if (order.whole) this.#rows = new Map();
    for (const { slot, row, plugged, surprise } of order.slots) {
      if (row === undefined) this.#rows.delete(slot);
      else this.#rows.set(slot, { ...row, plugged, surprise });
    }
    if (order.peers !== undefined) this.peers = order.peers.map(({ box }) => box);
    const isRefused = [...this.#rows.values()].some((row) => row.plugged || !this.refusesPlugs);
    if (this.refuses !== '' && isRefused) {
      this.refused = this.refuses;
      return;
    }
    this.refused = '';
    this.applied = order.revision;
  }

  /** The rows in force are those of the newest order that was not refused. */
  #enforce(): boolean {
    let isBusy = false;
    for (const [slot, state] of this.slots) {
      const wanted = this.#rows.get(slot);
      if (wanted?.generation === state.row?.generation || this.refused !== '') continue;
      if (wanted !== undefined && this.#used.has(wanted.generation)) continue;
      if (wanted === undefined && this.keepsRows) continue;
      Object.assign(state, emptySlot());
      isBusy = true;
      if (wanted === undefined) continue;
      const { box, boxSlot, generation } = wanted;
      this.#used.add(generation);
      state.row = { box, boxSlot, generation };
      state.state = 'ready';
    }
    return isBusy;
  }

  /** Functions into their slots and out of them. */
  #move(slot: number, state: ModelHostSlot): boolean {
    const wanted = this.#rows.get(slot);
    if (wanted === undefined || state.row === undefined || state.state !== 'ready') return false;
    if (wanted.plugged) {
      state.isPlugged = true;
      if (state.function !== undefined || state.problem !== undefined || this.isBlind) return false;
      const found = functionOf(slot);
      const bars = found.bars.map((bar) => ({ ...bar, address: 2 ** 46 }));
      state.function = this.misplaces ? { ...found, bars } : found;
      if (!this.misplaces) this.worked.add(`${slot} ${state.row.generation}`);
      return true;
    }
    state.isPlugged = false;
    if (state.function === undefined || (!wanted.surprise && !this.letsGo)) return false;
    state.function = undefined;
    return true;
  }
}

function emptySlot(): ModelHostSlot {
  return {
    row: undefined,
    state: 'unused',
    isPlugged: false,
    function: undefined,
    inUse: false,
    problem: undefined,
    reason: '',
  };
}

const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** One MiB below 4 GiB, and 16 GiB high up, for each port. */
export function portOf(
  slot: number,
): Pick<HostSlotReport, 'secondaryBus' | 'nonPrefetchable' | 'prefetchable'> {
  const low = 0xc000_0000 + slot * MIB;
  const high = 2 ** 40 + slot * 16 * GIB;
  return {
    secondaryBus: slot + 1,
    nonPrefetchable: { base: low, limit: low + MIB - 1 },
    prefetchable: { base: high, limit: high + 16 * GIB - 1 },
  };
}

/** As the firmware sets it up: each BAR at the start of its window. */
export function functionOf(slot: number): FunctionReport {
  const { secondaryBus, nonPrefetchable, prefetchable } = portOf(slot);
  return {
    bdf: secondaryBus << 8,
    vendorId: 0x1234,
    deviceId: 0x5678,
    bars: [
      { index: 0, address: nonPrefetchable.base, sizeBytes: 4096 },
      { index: 2, address: prefetchable.base, sizeBytes: 16 * GIB },
    ],
    memoryEnable: true,
    busMaster: true,
  };
}

export function pathTo(box: string): HostReport['paths'][number] {
  return { box, path: 'lan', up: true, rttNs: 20_000, bitsPerSecond: 1e11, problem: '' };
}
