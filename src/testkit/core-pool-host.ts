import type {
  AgentOrder,
  FunctionReport,
  HostHello,
  HostReport,
  HostSlotReport,
} from '#proto/agent-messages';
import { CommonProxy, type ProxyHome } from './core-pool-proxy.ts';

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

export class ModelHostProxy extends CommonProxy<ModelHostSlot, WantedRow, HostReport> {
  reach: readonly string[] = [];
  /** `refuses` is about orders that plug something in alone. */
  refusesPlugs = false;
  /** Does not find what is plugged in. */
  isBlind = false;
  /** Finds what is plugged in, and puts it where it has no window. */
  misplaces = false;
  /** Programs let go when they are asked to. */
  letsGo = true;
  peers: readonly string[] = [];
  /** Slot and generation under which a function was set up, ever. */
  readonly worked = new Set<string>();
  #saidPaths = '';
  protected readonly silence: HostReport = {
    kind: 'host',
    applied: 0,
    whole: false,
    slots: [],
    paths: [],
    refused: '',
  };

  constructor(pool: ProxyHome, id: string, slots: number) {
    super(pool, id);
    for (let slot = 0; slot < slots; slot++) this.slots.set(slot, emptySlot());
  }

  get hello(): HostHello {
    const { id, instance, reach } = this;
    return { kind: 'host', id, instance: `${id}-${instance}`, version: '0.1.0', reach };
  }

  override restart(): void {
    super.restart();
    for (const slot of this.slots.keys()) this.slots.set(slot, emptySlot());
  }

  reportOf(slot: number, state: ModelHostSlot): HostSlotReport {
    const { isPlugged: _, ...rest } = state;
    return { slot, ...portOf(slot), ...rest };
  }

  protected override news(whole: boolean): Partial<HostReport> | undefined {
    const paths = this.peers.map((box) => pathTo(box));
    const text = JSON.stringify(paths);
    if (!whole && text === this.#saidPaths) return undefined;
    this.#saidPaths = text;
    return { paths };
  }

  protected takeRows(order: AgentOrder): void {
    if (order.kind !== 'host') throw new Error('a host was ordered as a box');
    for (const { slot, row, plugged, surprise } of order.slots) {
      if (row === undefined) this.rows.delete(slot);
      else this.rows.set(slot, { ...row, plugged, surprise });
    }
    if (order.peers !== undefined) this.peers = order.peers.map(({ box }) => box);
  }

  protected override isRefusal(): boolean {
    return [...this.rows.values()].some((row) => row.plugged || !this.refusesPlugs);
  }

  protected enforce(_slot: number, state: ModelHostSlot, wanted: WantedRow | undefined): void {
    Object.assign(state, emptySlot());
    if (wanted === undefined) return;
    const { box, boxSlot, generation } = wanted;
    state.row = { box, boxSlot, generation };
    state.state = 'ready';
  }

  protected goOn(): boolean {
    let isBusy = false;
    for (const [slot, state] of this.slots) if (this.#move(slot, state)) isBusy = true;
    return isBusy;
  }

  /** Functions into their slots and out of them. */
  #move(slot: number, state: ModelHostSlot): boolean {
    const wanted = this.rows.get(slot);
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
