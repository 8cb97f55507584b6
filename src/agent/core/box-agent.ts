/** The agent of a box proxy. */
import type { Nanos } from '#base/units';
import type {
  BoxHello,
  BoxOrder,
  BoxReport,
  BoxSlotOrder,
  BoxSlotReport,
} from '#proto/agent-messages';
import { AgentCore, type AgentPart, type Said } from './agent-core.ts';
import type { AgentFaults } from './agent-faults.ts';
import type { BoxDataPlane, BoxRowOrder } from './data-plane.ts';
import { Reported } from './reported.ts';
import { RowsInForce } from './rows-in-force.ts';

export interface BoxAgentOptions {
  readonly hello: BoxHello;
  readonly plane: BoxDataPlane;
  readonly faults?: AgentFaults;
}

export class BoxAgentCore extends AgentCore<BoxOrder> {
  constructor(options: BoxAgentOptions) {
    const { hello, plane, faults = {} } = options;
    super(hello, new BoxPart(plane, faults), faults);
  }
}

class BoxPart implements AgentPart<BoxOrder> {
  readonly kind = 'box';
  readonly #plane: BoxDataPlane;
  readonly #faults: AgentFaults;
  readonly #rows: RowsInForce<BoxRowOrder>;
  readonly #reported = new Reported<BoxSlotReport>(({ slot }) => slot);
  #ordered = new Map<number, BoxSlotOrder>();

  constructor(plane: BoxDataPlane, faults: AgentFaults) {
    this.#plane = plane;
    this.#faults = faults;
    this.#rows = new RowsInForce(plane, faults.keepsOldRow === true);
  }

  take(_now: Nanos, order: BoxOrder): void {
    if (order.whole) this.#ordered = new Map();
    for (const slot of order.slots) this.#ordered.set(slot.slot, slot);
  }

  apply(now: Nanos): string {
    return this.#rows.apply(
      now,
      [...this.#ordered.values()].flatMap(({ slot, row }) =>
        row === undefined ? [] : { slot, ...row },
      ),
    );
  }

  report(_now: Nanos, said: Said, whole: boolean, force: boolean): BoxReport | undefined {
    const all = this.#slots();
    const slots = whole ? all : this.#reported.newsOf(all);
    if (!whole && !force && slots.length === 0) return undefined;
    if (whole) this.#reported.clear();
    this.#reported.note(slots);
    const highest = whole ? this.#rows.highest() : {};
    return { kind: 'box', ...said, whole, ...highest, slots };
  }

  nextLookNs(): number {
    return Infinity;
  }

  #slots(): readonly BoxSlotReport[] {
    const slots = this.#plane.slots();
    if (this.#faults.reportsWhatShouldBe !== true) return slots;
    return slots.map((slot) => {
      const row = this.#ordered.get(slot.slot)?.row;
      return row === undefined
        ? { ...slot, row, state: 'unused', clean: true, reason: '' }
        : {
            ...slot,
            row: { host: row.host, generation: row.generation },
            state: 'ready',
            clean: false,
            reason: '',
          };
    });
  }
}
