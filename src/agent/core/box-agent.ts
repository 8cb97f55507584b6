/** The agent of a box proxy. See `agent-core.ts`. */
import type { Nanos } from '#base/units';
import type { AgentOrder, BoxHello, BoxSlotOrder, BoxSlotReport } from '#proto/agent-messages';
import { DxpuError } from '#base/errors';
import type { Agent, AgentUplink } from './agent-core.ts';
import type { AgentFaults } from './agent-faults.ts';
import type { BoxDataPlane, BoxRowOrder } from './data-plane.ts';
import { OrderSequence } from './order-sequence.ts';
import { Reported } from './reported.ts';
import { RowsInForce } from './rows-in-force.ts';

export interface BoxAgentOptions {
  readonly hello: BoxHello;
  readonly plane: BoxDataPlane;
  readonly faults?: AgentFaults;
}

export class BoxAgentCore implements Agent {
  readonly #hello: BoxHello;
  readonly #plane: BoxDataPlane;
  readonly #faults: AgentFaults;
  readonly #sequence: OrderSequence;
  readonly #rows: RowsInForce<BoxRowOrder>;
  readonly #reported = new Reported<BoxSlotReport>((slot) => slot.slot);
  #ordered = new Map<number, BoxSlotOrder>();
  #uplink: AgentUplink | undefined;
  #saidApplied = 0;
  #saidRefused = '';
  /** The plane may say that it changed while it is being changed. */
  #isBusy = false;
  #now: Nanos = 0 as Nanos;

  constructor(options: BoxAgentOptions) {
    const { hello, plane } = options;
    this.#hello = hello;
    this.#plane = plane;
    this.#faults = options.faults ?? {};
    this.#sequence = new OrderSequence('box', this.#faults.appliesStaleOrder === true);
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
  }

  order(now: Nanos, order: AgentOrder): void {
    if (this.#uplink === undefined)
      throw new DxpuError('failed_precondition', 'an order without a stream');
    this.#sequence.accept(order);
    if (order.kind !== 'box') return;
    if (order.whole) this.#ordered = new Map();
    for (const slot of order.slots) this.#ordered.set(slot.slot, slot);
    this.#apply(now);
    this.#report(now, false);
  }

  changed(now: Nanos): void {
    if (this.#isBusy) return;
    if (this.#sequence.refused !== '') this.#apply(now);
    this.#report(now, false);
  }

  nextDeadlineNs(): number {
    return Infinity;
  }

  tick(_now: Nanos): void {}

  #apply(now: Nanos): void {
    this.#now = now;
    const rows = [...this.#ordered.values()].flatMap(({ slot, row }) =>
      row === undefined ? [] : [{ slot, ...row }],
    );
    this.#isBusy = true;
    try {
      const refused = this.#rows.apply(rows);
      this.#sequence.tried(refused, refused === '' || this.#faults.claimsRefusedOrder === true);
    } finally {
      this.#isBusy = false;
    }
  }

  #report(_now: Nanos, whole: boolean): void {
    const uplink = this.#uplink;
    if (uplink === undefined) return;
    const all = this.#slots();
    const slots = whole ? all : this.#reported.newsOf(all);
    const { applied, refused } = this.#sequence;
    if (
      !whole &&
      slots.length === 0 &&
      applied === this.#saidApplied &&
      refused === this.#saidRefused
    )
      return;
    if (whole) this.#reported.noteWhole(all);
    else this.#reported.note(slots);
    this.#saidApplied = applied;
    this.#saidRefused = refused;
    uplink.report({ kind: 'box', applied, whole, slots, refused });
  }

  #slots(): readonly BoxSlotReport[] {
    const slots = this.#plane.slots();
    if (this.#faults.reportsWhatShouldBe !== true) return slots;
    return slots.map((slot) => {
      const row = this.#ordered.get(slot.slot)?.row;
      return row === undefined
        ? { ...slot, row, state: 'unused' as const, clean: true, reason: '' }
        : {
            ...slot,
            row: { host: row.host, generation: row.generation },
            state: 'ready' as const,
            clean: false,
            reason: '',
          };
    });
  }
}
