/**
 * Data planes of agents that a test plays itself: nothing but their rows. They do at once what is
 * ordered, keep it whatever becomes of the manager, and say what is, or what the test has them say.
 */
import type {
  BoxDataPlane,
  BoxRowOrder,
  HostDataPlane,
  HostRowOrder,
} from '#agent/core/data-plane';
import type { Nanos } from '#base/units';
import type { BoxSlotReport, HostSlotReport, PathReport } from '#proto/agent-messages';

/** What is said of a slot in place of what is. */
export type Saying<Slot> = (is: Slot) => Slot;

/** What the two kinds have in common. */
class ScriptedPlane<Slot extends BoxSlotReport | HostSlotReport, Row extends { slot: number }> {
  /** By slot. */
  readonly says = new Map<number, Saying<Slot>>();
  /** Why no rows are put in force; '' where they are. */
  refusal = '';
  readonly #unused: readonly Slot[];
  readonly #are: Slot[];
  readonly #filled: (unused: Slot, row: Row) => Slot;

  /** `filled`: an unused slot once a row is in force in it. */
  constructor(unused: readonly Slot[], filled: (unused: Slot, row: Row) => Slot) {
    this.#unused = unused;
    this.#are = [...unused];
    this.#filled = filled;
  }

  slots(): readonly Slot[] {
    return this.#are.map((is) => this.says.get(is.slot)?.(is) ?? is);
  }

  /** Those without a row, whatever is said of them. */
  get unused(): readonly number[] {
    return this.#are.filter(({ row }) => row === undefined).map(({ slot }) => slot);
  }

  setRows(_now: Nanos, rows: readonly (Row & { generation: number })[]): string {
    if (this.refusal !== '') return this.refusal;
    for (const unused of this.#unused) {
      const { slot } = unused;
      const row = rows.find((one) => one.slot === slot);
      if (row?.generation === this.#are[slot]?.row?.generation) continue;
      this.#are[slot] = row === undefined ? unused : this.#filled(unused, row);
    }
    return '';
  }

  /** Something happens to a slot that has a row. */
  happens(slot: number, change: Partial<Slot>): void {
    const is = this.#are[slot];
    if (is?.row !== undefined) this.#are[slot] = { ...is, ...change };
  }

  /** A slot is without its row, though nobody has ordered it. */
  lose(slot: number): void {
    const unused = this.#unused[slot];
    if (unused !== undefined) this.#are[slot] = unused;
  }
}

export class ScriptedBoxPlane
  extends ScriptedPlane<BoxSlotReport, BoxRowOrder>
  implements BoxDataPlane
{
  constructor(box: string, slots: number) {
    const unused = Array.from({ length: slots }, (_, slot): BoxSlotReport => {
      const uuid = `${box}-gpu${slot}`;
      const node = { uuid, model: 'script', memoryBytes: 2 ** 26, nvlinkGroup: '', bars: [] };
      return { slot, node, state: 'unused', clean: true, row: undefined, reason: '' };
    });
    super(unused, (is, { host, generation }) => ({
      ...is,
      row: { host, generation },
      state: 'ready',
      clean: false,
    }));
  }

  /** The session of a slot ends. */
  contain(slot: number): void {
    this.happens(slot, { state: 'contained', reason: 'its link has ended' });
  }
}

export class ScriptedHostPlane
  extends ScriptedPlane<HostSlotReport, HostRowOrder>
  implements HostDataPlane
{
  readonly #paths: readonly PathReport[];

  /** `box`: the one that it reaches. */
  constructor(box: string, slots: number) {
    super(
      Array.from({ length: slots }, (_, slot) => unusedHostSlot(slot)),
      (is, { box: of, boxSlot, generation }) => ({
        ...is,
        row: { box: of, boxSlot, generation },
        state: 'ready',
      }),
    );
    this.#paths = [{ box, path: 'lan', up: true, rttNs: 20_000, bitsPerSecond: 1e11, problem: '' }];
  }

  paths(): readonly PathReport[] {
    return this.#paths;
  }

  setPeers(): void {}

  plug(_now: Nanos, slot: number): void {
    const port = unusedHostSlot(slot);
    const bars = [{ index: 0, address: port.nonPrefetchable.base, sizeBytes: 4096 }];
    const found = { bdf: port.secondaryBus << 8, vendorId: 1, deviceId: 1, bars };
    this.happens(slot, { function: { ...found, memoryEnable: true, busMaster: true } });
  }

  unplug(_now: Nanos, slot: number, surprise: boolean): void {
    const isInUse = this.slots()[slot]?.inUse === true;
    if (surprise || !isInUse) this.happens(slot, { function: undefined, inUse: false });
  }

  /** A program has the function of a slot, and does not let go. */
  use(slot: number): void {
    this.happens(slot, { inUse: true });
  }
}

const MIB = 2 ** 20;

/** A MiB below 4 GiB and one above for each. */
function unusedHostSlot(slot: number): HostSlotReport {
  const low = 0xc000_0000 + slot * MIB;
  const high = 2 ** 40 + slot * MIB;
  return {
    slot,
    secondaryBus: slot + 1,
    nonPrefetchable: { base: low, limit: low + MIB - 1 },
    prefetchable: { base: high, limit: high + MIB - 1 },
    row: undefined,
    state: 'unused',
    function: undefined,
    inUse: false,
    problem: undefined,
    reason: '',
  };
}
