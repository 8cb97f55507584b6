import type {
  AgentOrder,
  BoxHello,
  BoxReport,
  BoxSlotReport,
  GpuNodeReport,
} from '#proto/agent-messages';
import type { ModelProxy, ProxyHome } from './core-pool-proxy.ts';

export interface ModelBoxSlot {
  node: GpuNodeReport | undefined;
  state: BoxSlotReport['state'];
  clean: boolean;
  row: { readonly host: string; readonly generation: number } | undefined;
  reason: string;
}

/** What a test may want to know of a slot's past. */
export interface RowEvent {
  readonly box: string;
  readonly slot: number;
  readonly generation: number;
  readonly host: string;
  /** As the slot was when the row came. */
  readonly wasClean: boolean;
  readonly wasEmpty: boolean;
}

export class ModelBoxProxy implements ModelProxy {
  readonly id: string;
  readonly slots = new Map<number, ModelBoxSlot>();
  readonly rowEvents: RowEvent[] = [];
  instance = 1;
  zone = '';
  session: number | undefined;
  applied = 0;
  refused = '';
  /** Keeps orders for later. */
  isDeaf = false;
  /** Keeps what changes to itself. */
  isMute = false;
  /** Does not come to the end of a scrub. */
  scrubsForever = false;
  /** Ends every scrub with the slot in quarantine. */
  scrubsInVain = false;
  /** Orders with a row are refused with this. */
  refuses = '';
  /** Keeps the rows it has, and says so. */
  keepsRows = false;
  readonly orders: AgentOrder[] = [];
  readonly #pool: ProxyHome;
  #rows = new Map<number, { host: string; generation: number }>();
  /** By this process. */
  #used = new Set<number>();
  #pending: AgentOrder[] = [];
  #said = new Map<number, string>();
  #saidApplied = '';

  constructor(pool: ProxyHome, id: string, gpus: number) {
    this.#pool = pool;
    this.id = id;
    for (let slot = 0; slot < gpus; slot++) {
      const node = nodeOf(`${id}-gpu${slot}`);
      this.slots.set(slot, {
        node,
        state: 'unused',
        clean: true,
        row: undefined,
        reason: '',
      });
    }
  }

  get hello(): BoxHello {
    return {
      kind: 'box',
      id: this.id,
      instance: `${this.id}-${this.instance}`,
      version: '0.1.0',
      boxKind: 'pcie',
      zone: this.zone,
      endpoints: [{ path: 'lan', address: '127.0.0.1:7001' }],
    };
  }

  slot(slot: number): ModelBoxSlot {
    return this.slots.get(slot) as ModelBoxSlot;
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

  /** Another process: no row, no stream, and every device must be scrubbed. */
  restart(): void {
    this.disconnect();
    this.instance++;
    this.#rows = new Map();
    this.#used = new Set();
    for (const slot of this.slots.values()) {
      if (slot.row !== undefined) slot.clean = false;
      slot.row = undefined;
      slot.state = 'unused';
      if (!this.scrubsForever) slot.clean = true;
    }
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
      if (this.#scrub()) isBusy = true;
    }
    return this.say(false) || isBusy;
  }

  /** Reports what is, or what is new of it. */
  say(whole: boolean): boolean {
    if (this.session === undefined || (this.isMute && !whole)) return false;
    if (whole) this.#said = new Map();
    const slots: BoxSlotReport[] = [];
    for (const [slot, { node, state, clean, row, reason }] of this.slots) {
      const report = { slot, node, state, clean: clean && row === undefined, row, reason };
      const text = JSON.stringify(report);
      if (this.#said.get(slot) === text) continue;
      this.#said.set(slot, text);
      slots.push(report);
    }
    const { applied, refused } = this;
    if (!whole && slots.length === 0 && this.#saidApplied === `${applied} ${refused}`) return false;
    this.#saidApplied = `${applied} ${refused}`;
    this.sayThis({ whole, slots });
    return true;
  }

  /** Any report at all. */
  sayThis(report: Partial<BoxReport>): void {
    const { applied, refused, session } = this;
    if (session === undefined) return;
    this.#pool.report(session, {
      kind: 'box',
      applied,
      whole: false,
      slots: [],
      refused,
      ...report,
    });
  }

  #carryOut(order: AgentOrder): void {
    if (order.kind !== 'box') throw new Error('a box was ordered as a host');
    if (order.whole) this.#rows = new Map();
    for (const { slot, row } of order.slots) {
      if (row === undefined) this.#rows.delete(slot);
      else this.#rows.set(slot, { host: row.host, generation: row.generation });
    }
    if (this.refuses !== '' && this.#rows.size > 0) {
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
      // A generation is put in force once: what was lost stays lost.
      if (wanted !== undefined && this.#used.has(wanted.generation)) continue;
      if ((wanted === undefined && this.keepsRows) || state.state === 'quarantined') continue;
      if (wanted !== undefined) {
        this.#used.add(wanted.generation);
        this.rowEvents.push({
          box: this.id,
          slot,
          ...wanted,
          wasClean: state.clean && state.row === undefined,
          wasEmpty: state.row === undefined,
        });
      }
      state.clean = false;
      state.row = wanted;
      state.state = wanted === undefined ? 'unused' : 'ready';
      state.reason = '';
      isBusy = true;
    }
    return isBusy;
  }

  #scrub(): boolean {
    let isBusy = false;
    for (const slot of this.slots.values()) {
      if (slot.clean || slot.row !== undefined || slot.state === 'quarantined') continue;
      if (this.scrubsInVain) {
        Object.assign(slot, { state: 'quarantined', reason: 'memory could not be scrubbed' });
        isBusy = true;
      } else if (!this.scrubsForever && slot.node !== undefined) {
        slot.clean = true;
        isBusy = true;
      }
    }
    return isBusy;
  }
}

const GIB = 2 ** 30;

export function nodeOf(uuid: string): GpuNodeReport {
  return {
    uuid,
    model: 'accel',
    memoryBytes: 16 * GIB,
    nvlinkGroup: '',
    bars: [
      { index: 0, sizeBytes: 4096, prefetchable: false, is64: false },
      { index: 2, sizeBytes: 16 * GIB, prefetchable: true, is64: true },
    ],
  };
}
