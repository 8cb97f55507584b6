/**
 * Data planes that are nothing but their rows, for tests of agents. They do at once what is ordered,
 * keep what they were told for the test to see, and let the test play what happens by itself.
 */
import type {
  BoxDataPlane,
  BoxRowOrder,
  HostDataPlane,
  HostPeer,
  HostRowOrder,
} from '#agent/core/data-plane';
import type { Nanos } from '#base/units';
import type { BoxSlotReport, HostSlotReport, PathReport } from '#proto/agent-messages';

/** `S` is what it shows of a slot, `R` what is ordered of one. */
abstract class ModelPlane<
  S extends { readonly row: { readonly generation: number } | undefined },
  R extends { readonly slot: number; readonly generation: number },
> {
  readonly reports: S[];
  /** Every `setRows` that was taken, as `slot:generation`. */
  readonly taken: string[][] = [];
  /** Why rows are refused; '' takes them. */
  refusal = '';
  /** The order, for a test to look at. */
  rows: readonly R[] = [];

  constructor(reports: S[]) {
    this.reports = reports;
  }

  slots(): readonly S[] {
    return this.reports;
  }

  setRows(_now: Nanos, rows: readonly R[]): string {
    if (this.refusal !== '') return this.refusal;
    this.taken.push(rows.map(({ slot, generation }) => `${slot}:${generation}`));
    this.rows = rows;
    for (const [slot, report] of this.reports.entries()) {
      const row = rows.find((one) => one.slot === slot);
      if (row?.generation !== report.row?.generation) this.reports[slot] = this.bound(report, row);
    }
    return '';
  }

  /** The slot of `report`, once this row is in force. */
  protected abstract bound(report: S, row: R | undefined): S;

  /** A slot loses its row, though nobody ordered it. */
  lose(slot: number): void {
    const report = this.reports[slot];
    if (report !== undefined) this.reports[slot] = this.bound(report, undefined);
  }
}

export class ModelBoxPlane extends ModelPlane<BoxSlotReport, BoxRowOrder> implements BoxDataPlane {
  constructor(slots: number) {
    super(Array.from({ length: slots }, (_, slot) => unboundBoxSlot(slot)));
  }

  protected bound(report: BoxSlotReport, row: BoxRowOrder | undefined): BoxSlotReport {
    if (row === undefined) return unboundBoxSlot(report.slot);
    const { host, generation } = row;
    return { ...report, row: { host, generation }, state: 'ready', clean: false, reason: '' };
  }

  /** The session of a slot ends. */
  contain(slot: number): void {
    const report = this.reports[slot];
    if (report?.row === undefined) return;
    this.reports[slot] = { ...report, state: 'contained', reason: 'link down' };
  }
}

function unboundBoxSlot(slot: number): BoxSlotReport {
  return {
    slot,
    node: {
      uuid: `00000000-0000-8000-8000-${slot.toString(16).padStart(12, '0')}`,
      model: 'model',
      memoryBytes: 2 ** 26,
      nvlinkGroup: '',
      bars: [],
    },
    state: 'unused',
    clean: true,
    row: undefined,
    reason: '',
  };
}

export class ModelHostPlane
  extends ModelPlane<HostSlotReport, HostRowOrder>
  implements HostDataPlane
{
  peers: readonly HostPeer[] = [];
  pathReports: PathReport[] = [];
  /** Each `plug` and `unplug`, as `plug 0`, `unplug 0`, `unplug 0 surprise`. */
  readonly moves: string[] = [];
  /** Slots whose function may enter. */
  readonly plugged = new Set<number>();

  constructor(slots: number) {
    super(Array.from({ length: slots }, (_, slot) => unboundHostSlot(slot)));
  }

  protected bound({ slot }: HostSlotReport, row: HostRowOrder | undefined): HostSlotReport {
    this.plugged.delete(slot);
    const unbound = unboundHostSlot(slot);
    if (row === undefined) return unbound;
    const { box, boxSlot, generation } = row;
    return { ...unbound, row: { box, boxSlot, generation }, state: 'ready' };
  }

  paths(): readonly PathReport[] {
    return this.pathReports;
  }

  setPeers(_now: Nanos, peers: readonly HostPeer[]): void {
    this.peers = peers;
  }

  plug(_now: Nanos, slot: number): void {
    this.moves.push(`plug ${slot}`);
    this.plugged.add(slot);
    const report = this.reports[slot];
    if (report?.row === undefined || report.state !== 'ready') return;
    this.reports[slot] = { ...report, function: modelFunction(slot) };
  }

  unplug(_now: Nanos, slot: number, surprise: boolean): void {
    this.moves.push(`unplug ${slot}${surprise ? ' surprise' : ''}`);
    this.plugged.delete(slot);
    const report = this.reports[slot];
    if (report === undefined || (report.inUse && !surprise)) return;
    this.reports[slot] = { ...report, function: undefined, inUse: false };
  }

  contain(slot: number): void {
    const report = this.reports[slot];
    if (report?.row === undefined) return;
    this.reports[slot] = {
      ...report,
      state: 'contained',
      function: undefined,
      inUse: false,
      reason: 'link down',
    };
  }

  /** A program opens or closes the function of a slot. */
  use(slot: number, inUse: boolean): void {
    const report = this.reports[slot];
    if (report?.function === undefined) return;
    this.reports[slot] = { ...report, inUse };
  }
}

function unboundHostSlot(slot: number): HostSlotReport {
  return {
    slot,
    secondaryBus: slot + 1,
    nonPrefetchable: { base: 0xe000_0000 + slot * 2 ** 24, limit: 0xe0ff_ffff + slot * 2 ** 24 },
    prefetchable: { base: 2 ** 38 + slot * 2 ** 26, limit: 2 ** 38 + (slot + 1) * 2 ** 26 - 1 },
    row: undefined,
    state: 'unused',
    function: undefined,
    inUse: false,
    problem: undefined,
    reason: '',
  };
}

function modelFunction(slot: number): NonNullable<HostSlotReport['function']> {
  return {
    bdf: (slot + 1) << 8,
    vendorId: 0x1234,
    deviceId: 0x5678,
    bars: [{ index: 0, address: 0xe000_0000 + slot * 2 ** 24, sizeBytes: 4096 }],
    memoryEnable: true,
    busMaster: true,
  };
}
