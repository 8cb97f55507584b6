/** The agent of a host proxy. */
import type { Nanos } from '#base/units';
import type {
  HostHello,
  HostOrder,
  HostReport,
  HostSlotOrder,
  HostSlotReport,
  PathReport,
} from '#proto/agent-messages';
import { AgentCore, type AgentPart, type Said } from './agent-core.ts';
import type { AgentFaults } from './agent-faults.ts';
import type { HostDataPlane, HostRowOrder } from './data-plane.ts';
import { RowsInForce } from './rows-in-force.ts';
import { Reported } from './reported.ts';

export interface HostAgentOptions {
  readonly hello: HostHello;
  readonly plane: HostDataPlane;
  /** Paths are looked at, and said to have changed, at most so often. Default 1 s. */
  readonly pathIntervalNs?: number;
  readonly faults?: AgentFaults;
}

export class HostAgentCore extends AgentCore<HostOrder> {
  constructor(options: HostAgentOptions) {
    super(options.hello, new HostPart(options), options.faults);
  }
}

/** What was last asked for a slot's function, under a generation. A new row begins with it out. */
interface Asked {
  readonly generation: number;
  readonly plugged: boolean;
  readonly surprise: boolean;
}

class HostPart implements AgentPart<HostOrder> {
  readonly kind = 'host';
  readonly #plane: HostDataPlane;
  readonly #pathIntervalNs: number;
  readonly #faults: AgentFaults;
  readonly #rows: RowsInForce<HostRowOrder>;
  readonly #reported = new Reported<HostSlotReport>(({ slot }) => slot);
  readonly #reportedPaths = new Reported<PathReport>(
    ({ box, path }) => `${box} ${path}`,
    isPathNews,
  );
  readonly #asked = new Map<number, Asked>();
  #ordered = new Map<number, HostSlotOrder>();
  #pathsDueNs = 0;

  constructor(options: HostAgentOptions) {
    const { plane, faults = {} } = options;
    this.#plane = plane;
    this.#pathIntervalNs = options.pathIntervalNs ?? 1e9;
    this.#faults = faults;
    this.#rows = new RowsInForce(plane, faults.keepsOldRow === true);
  }

  take(now: Nanos, order: HostOrder): void {
    if (order.whole) this.#ordered = new Map();
    for (const slot of order.slots) this.#ordered.set(slot.slot, slot);
    // First: the rows need their links.
    if (order.peers !== undefined) this.#plane.setPeers(now, order.peers);
  }

  apply(now: Nanos): string {
    const refused = this.#rows.apply(
      now,
      [...this.#ordered.values()].flatMap(({ slot, row }) =>
        row === undefined ? [] : { slot, ...row },
      ),
    );
    // Also where a row is refused: those that are in force go on.
    this.#moveFunctions(now);
    return refused;
  }

  /** Each function into its slot or out of it, where that was not asked for before. */
  #moveFunctions(now: Nanos): void {
    for (const { slot, row, plugged, surprise } of this.#ordered.values()) {
      if (row === undefined || !this.#rows.has(slot, row.generation)) continue;
      const { generation } = row;
      const last = this.#asked.get(slot);
      const asked = last?.generation === generation ? last : NOT_ASKED;
      const isStronger = !plugged && surprise && !asked.surprise;
      if (asked.plugged === plugged && !isStronger) continue;
      this.#asked.set(slot, { generation, plugged, surprise });
      if (plugged) this.#plane.plug(now, slot);
      else this.#plane.unplug(now, slot, surprise);
    }
  }

  report(now: Nanos, said: Said, asWhole: boolean, force: boolean): HostReport | undefined {
    const allSlots = this.#slots();
    const looksAtPaths = asWhole || now >= this.#pathsDueNs;
    const allPaths = looksAtPaths ? this.#plane.paths() : [];
    if (looksAtPaths) this.#pathsDueNs = now + this.#pathIntervalNs;
    // Changes have no way to say that a path is no more.
    const whole = asWhole || (looksAtPaths && this.#reportedPaths.hasLost(allPaths));
    const slots = whole ? allSlots : this.#reported.newsOf(allSlots);
    const paths = whole ? allPaths : this.#reportedPaths.newsOf(allPaths);
    if (!whole && !force && slots.length + paths.length === 0) return undefined;
    if (whole) {
      this.#reported.clear();
      this.#reportedPaths.clear();
    }
    this.#reported.note(slots);
    this.#reportedPaths.note(paths);
    const highest = whole ? this.#rows.highest() : {};
    return { kind: 'host', ...said, whole, ...highest, slots, paths };
  }

  nextLookNs(): number {
    return this.#pathsDueNs;
  }

  #slots(): readonly HostSlotReport[] {
    const slots = this.#plane.slots();
    if (this.#faults.reportsWhatShouldBe !== true) return slots;
    return slots.map((slot) => {
      const row = this.#ordered.get(slot.slot)?.row;
      if (row === undefined) {
        return { ...slot, row, state: 'unused', function: undefined, inUse: false, reason: '' };
      }
      const { box, boxSlot, generation } = row;
      return { ...slot, row: { box, boxSlot, generation }, state: 'ready', reason: '' };
    });
  }
}

/** Out, and no way to be more so. */
const NOT_ASKED = { plugged: false, surprise: true };

/** Round trips waver all the time: an eighth more or less is worth a message. */
function isPathNews(before: PathReport, after: PathReport): boolean {
  return (
    before.up !== after.up ||
    before.problem !== after.problem ||
    before.bitsPerSecond !== after.bitsPerSecond ||
    Math.abs(after.rttNs - before.rttNs) * 8 > before.rttNs
  );
}
