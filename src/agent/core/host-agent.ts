/** The agent of a host proxy. See `agent-core.ts`. */
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import type {
  AgentOrder,
  HostHello,
  HostSlotOrder,
  HostSlotReport,
  PathReport,
} from '#proto/agent-messages';
import type { Agent, AgentUplink } from './agent-core.ts';
import type { AgentFaults } from './agent-faults.ts';
import type { HostDataPlane, HostRowOrder } from './data-plane.ts';
import { OrderSequence } from './order-sequence.ts';
import { Reported } from './reported.ts';
import { RowsInForce } from './rows-in-force.ts';

export interface HostAgentOptions {
  readonly hello: HostHello;
  readonly plane: HostDataPlane;
  /** Paths are looked at, and said to have changed, at most so often. Default 1 s. */
  readonly pathIntervalNs?: number;
  readonly faults?: AgentFaults;
}

/** What a slot's function was last told, under a generation. A new row begins with it out. */
interface Told {
  readonly generation: number;
  readonly plugged: boolean;
  readonly surprise: boolean;
}

export class HostAgentCore implements Agent {
  readonly #hello: HostHello;
  readonly #plane: HostDataPlane;
  readonly #pathIntervalNs: number;
  readonly #faults: AgentFaults;
  readonly #sequence: OrderSequence;
  readonly #rows: RowsInForce<HostRowOrder>;
  readonly #reported = new Reported<HostSlotReport>((slot) => slot.slot);
  readonly #reportedPaths = new Reported<PathReport>(
    ({ box, path }) => `${box} ${path}`,
    isPathNews,
  );
  readonly #told = new Map<number, Told>();
  #ordered = new Map<number, HostSlotOrder>();
  #uplink: AgentUplink | undefined;
  #saidApplied = 0;
  #saidRefused = '';
  #pathsDueNs = Infinity;
  /** The plane may say that it changed while it is being changed. */
  #isBusy = false;
  #now: Nanos = 0 as Nanos;

  constructor(options: HostAgentOptions) {
    const { hello, plane } = options;
    this.#hello = hello;
    this.#plane = plane;
    this.#pathIntervalNs = options.pathIntervalNs ?? 1e9;
    this.#faults = options.faults ?? {};
    this.#sequence = new OrderSequence('host', this.#faults.appliesStaleOrder === true);
    this.#rows = new RowsInForce(
      {
        shown: () =>
          new Map(
            plane
              .slots()
              .flatMap(({ slot, row }) => (row === undefined ? [] : [[slot, row.generation]])),
          ),
        set: (rows) => plane.setRows(this.#now, rows),
      },
      this.#faults.keepsOldRow === true,
    );
  }

  connected(now: Nanos, uplink: AgentUplink): void {
    this.#uplink = uplink;
    this.#sequence.begin();
    uplink.hello(this.#hello);
    this.#report(now, true);
  }

  disconnected(_now: Nanos): void {
    this.#uplink = undefined;
    this.#pathsDueNs = Infinity;
  }

  order(now: Nanos, order: AgentOrder): void {
    if (this.#uplink === undefined)
      throw new DxpuError('failed_precondition', 'an order without a stream');
    this.#sequence.accept(order);
    if (order.kind !== 'host') return;
    if (order.whole) this.#ordered = new Map();
    for (const slot of order.slots) this.#ordered.set(slot.slot, slot);
    this.#isBusy = true;
    try {
      if (order.peers !== undefined) this.#plane.setPeers(now, order.peers);
    } finally {
      this.#isBusy = false;
    }
    this.#apply(now);
    this.#report(now, false);
  }

  changed(now: Nanos): void {
    if (this.#isBusy) return;
    if (this.#sequence.refused !== '') this.#apply(now);
    this.#report(now, false);
  }

  nextDeadlineNs(): number {
    return this.#pathsDueNs;
  }

  tick(now: Nanos): void {
    if (now >= this.#pathsDueNs) this.#report(now, false);
  }

  #apply(now: Nanos): void {
    this.#now = now;
    const rows = [...this.#ordered.values()].flatMap(({ slot, row }) =>
      row === undefined ? [] : [{ slot, ...row }],
    );
    this.#isBusy = true;
    try {
      const refused = this.#rows.apply(rows);
      if (refused === '') this.#moveFunctions(now);
      this.#sequence.tried(refused, refused === '' || this.#faults.claimsRefusedOrder === true);
    } finally {
      this.#isBusy = false;
    }
  }

  /** Each function into its slot or out of it, where that was not said before. */
  #moveFunctions(now: Nanos): void {
    for (const { slot, row, plugged, surprise } of this.#ordered.values()) {
      if (row === undefined) {
        this.#told.delete(slot);
        continue;
      }
      const { generation } = row;
      const before = this.#told.get(slot);
      const told = before?.generation === generation ? before : { plugged: false, surprise: true };
      if (told.plugged === plugged && (plugged || told.surprise || !surprise)) continue;
      this.#told.set(slot, { generation, plugged, surprise });
      if (plugged) this.#plane.plug(now, slot);
      else this.#plane.unplug(now, slot, surprise);
    }
  }

  #report(now: Nanos, asWhole: boolean): void {
    const uplink = this.#uplink;
    if (uplink === undefined) return;
    const allSlots = this.#slots();
    const looksAtPaths = asWhole || now >= this.#pathsDueNs;
    const allPaths = looksAtPaths ? this.#plane.paths() : [];
    if (looksAtPaths) this.#pathsDueNs = now + this.#pathIntervalNs;
    const whole = asWhole || (looksAtPaths && this.#reportedPaths.hasLost(allPaths));
    const slots = whole ? allSlots : this.#reported.newsOf(allSlots);
    const paths = whole ? allPaths : this.#reportedPaths.newsOf(allPaths);
    const { applied, refused } = this.#sequence;
    const isNews =
      slots.length + paths.length > 0 ||
      applied !== this.#saidApplied ||
      refused !== this.#saidRefused;
    if (!whole && !isNews) return;
    if (whole) {
      this.#reported.noteWhole(slots);
      this.#reportedPaths.noteWhole(paths);
    } else {
      this.#reported.note(slots);
      this.#reportedPaths.note(paths);
    }
    this.#saidApplied = applied;
    this.#saidRefused = refused;
    uplink.report({ kind: 'host', applied, whole, slots, paths, refused });
  }

  #slots(): readonly HostSlotReport[] {
    const slots = this.#plane.slots();
    if (this.#faults.reportsWhatShouldBe !== true) return slots;
    return slots.map((slot) => {
      const row = this.#ordered.get(slot.slot)?.row;
      if (row === undefined) {
        return {
          ...slot,
          row,
          state: 'unused' as const,
          function: undefined,
          inUse: false,
          reason: '',
        };
      }
      const { box, boxSlot, generation } = row;
      return { ...slot, row: { box, boxSlot, generation }, state: 'ready' as const, reason: '' };
    });
  }
}

/** Round trips waver all the time: an eighth more or less is worth a message. */
function isPathNews(before: PathReport, after: PathReport): boolean {
  if (
    before.up !== after.up ||
    before.problem !== after.problem ||
    before.bitsPerSecond !== after.bitsPerSecond
  ) {
    return true;
  }
  return Math.abs(after.rttNs - before.rttNs) * 8 > before.rttNs;
}
