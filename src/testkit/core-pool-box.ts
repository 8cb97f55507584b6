import type {
  AgentOrder,
  BoxHello,
  BoxReport,
  BoxSlotReport,
  GpuNodeReport,
} from '#proto/agent-messages';
import { CommonProxy, type ProxyHome } from './core-pool-proxy.ts';

interface BoxRow {
  readonly host: string;
  readonly generation: number;
}

export interface ModelBoxSlot {
  node: GpuNodeReport | undefined;
  state: BoxSlotReport['state'];
  clean: boolean;
  row: BoxRow | undefined;
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

export class ModelBoxProxy extends CommonProxy<ModelBoxSlot, BoxRow, BoxReport> {
  readonly rowEvents: RowEvent[] = [];
  zone = '';
  /** Does not come to the end of a scrub. */
  scrubsForever = false;
  /** Ends every scrub with the slot in quarantine. */
  scrubsInVain = false;
  protected readonly silence: BoxReport = {
    kind: 'box',
    applied: 0,
    whole: false,
    slots: [],
    refused: '',
  };

  constructor(pool: ProxyHome, id: string, gpus: number) {
    super(pool, id);
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

  /** And every device must be scrubbed. */
  override restart(): void {
    super.restart();
    for (const slot of this.slots.values()) {
      if (slot.row !== undefined) slot.clean = false;
      slot.row = undefined;
      slot.state = 'unused';
      if (!this.scrubsForever) slot.clean = true;
    }
  }

  reportOf(slot: number, { node, state, clean, row, reason }: ModelBoxSlot): BoxSlotReport {
    return { slot, node, state, clean: clean && row === undefined, row, reason };
  }

  protected takeRows(order: AgentOrder): void {
    if (order.kind !== 'box') throw new Error('a box was ordered as a host');
    for (const { slot, row } of order.slots) {
      if (row === undefined) this.rows.delete(slot);
      else this.rows.set(slot, { host: row.host, generation: row.generation });
    }
  }

  protected enforce(slot: number, state: ModelBoxSlot, row: BoxRow | undefined): void {
    if (row !== undefined) {
      this.rowEvents.push({
        box: this.id,
        slot,
        ...row,
        wasClean: state.clean && state.row === undefined,
        wasEmpty: state.row === undefined,
      });
    }
    state.clean = false;
    state.row = row;
    state.state = row === undefined ? 'unused' : 'ready';
    state.reason = '';
  }

  /** Scrubs. */
  protected goOn(): boolean {
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
