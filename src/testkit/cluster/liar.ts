/**
 * Lies of a hostile agent: what its reports say in place of what is. All of them are such that the
 * contract of the stream lets them through; whatever the manager makes of them, no honest proxy may suffer.
 */
import type { Prng } from '#base/prng';
import type {
  AgentReport,
  BoxReport,
  BoxSlotReport,
  HostReport,
  HostSlotReport,
} from '#proto/agent-messages';

/** What a liar knows of the pool: it may be well informed. */
export interface LiarsKnowledge {
  readonly hosts: readonly string[];
  readonly boxes: readonly string[];
  readonly highestGeneration: () => number;
}

const BOX_LIES = [
  'rows nobody ordered',
  "another's UUID",
  'old generations',
  'absurd generations',
  'clean when not',
  'ready when not',
  'no row when there is one',
  'slots that are empty',
  'slots that do not exist',
  'quarantined when not',
  'ahead of its orders',
  'a host in place of a box',
  'refuses orders',
] as const;

const HOST_LIES = [
  'rows nobody ordered',
  "another's row",
  'old generations',
  'absurd generations',
  'BARs outside the windows',
  'attached when not',
  'no row when there is one',
  'windows that overlap',
  'problems when there are none',
  'ahead of its orders',
  'a box in place of a host',
  'paths to anywhere',
  'refuses orders',
] as const;

const ABSURD = [2 ** 20, 2 ** 39, 2 ** 41, 2 ** 52] as const;

type BoxLie = (typeof BOX_LIES)[number];
type HostLie = (typeof HOST_LIES)[number];

export class Liar {
  readonly lie: BoxLie | HostLie;
  readonly #prng: Prng;
  readonly #pool: LiarsKnowledge;

  constructor(kind: 'box' | 'host', prng: Prng, pool: LiarsKnowledge) {
    this.#prng = prng;
    this.#pool = pool;
    const lies = kind === 'box' ? BOX_LIES : HOST_LIES;
    // The most tempting one most often.
    this.lie = prng.chance(0.3) ? lies[0] : prng.pick(lies);
  }

  tell(report: AgentReport): AgentReport {
    if (!this.#prng.chance(0.8)) return report;
    return report.kind === 'box' ? this.#ofBox(report) : this.#ofHost(report);
  }

  #ofBox(report: BoxReport): AgentReport {
    const prng = this.#prng;
    const each = (change: (slot: BoxSlotReport) => BoxSlotReport): BoxReport => ({
      ...report,
      slots: this.#mostOf(report.slots, change),
    });
    const unused = { state: 'unused', row: undefined, reason: '' } as const;
    switch (this.lie as BoxLie) {
      case 'rows nobody ordered':
        return each((slot) => ({ ...slot, clean: false, state: 'ready', row: this.#boxRow(0) }));
      case "another's UUID":
        return each((slot) => {
          const uuid = `GPU-${prng.below(10)}-${prng.below(4)}`;
          return slot.node === undefined ? slot : { ...slot, node: { ...slot.node, uuid } };
        });
      case 'old generations':
        return each((slot) => ({ ...slot, row: this.#older(slot.row) }));
      case 'absurd generations':
        return each((slot) => ({
          ...slot,
          clean: false,
          state: 'ready',
          row: this.#boxRow(prng.pick(ABSURD)),
        }));
      case 'clean when not':
        return each((slot) => ({ ...slot, ...unused, clean: true }));
      case 'ready when not':
        return each((slot) => (slot.row === undefined ? slot : { ...slot, state: 'ready' }));
      case 'no row when there is one':
        return each((slot) => ({ ...slot, ...unused, clean: prng.chance(0.5) }));
      case 'slots that are empty':
        return each((slot) => ({ ...slot, ...unused, clean: false, node: undefined }));
      case 'slots that do not exist':
        return {
          ...report,
          slots: [
            ...report.slots,
            ...report.slots.map((slot) => ({ ...slot, slot: slot.slot + prng.between(4, 999) })),
          ],
        };
      case 'quarantined when not':
        return each((slot) => ({
          ...slot,
          clean: false,
          state: 'quarantined',
          reason: 'scrub failed, or so it says',
        }));
      case 'ahead of its orders':
        return { ...each((slot) => slot), applied: report.applied + prng.between(1, 5) };
      case 'a host in place of a box':
        return {
          kind: 'host',
          applied: report.applied,
          whole: report.whole,
          slots: [],
          paths: [],
          refused: '',
        };
      case 'refuses orders':
        return { ...report, refused: 'slot 0: does not want to' };
    }
  }

  #ofHost(report: HostReport): AgentReport {
    const prng = this.#prng;
    const each = (change: (slot: HostSlotReport) => HostSlotReport): HostReport => ({
      ...report,
      slots: this.#mostOf(report.slots, change),
    });
    const unused = { state: 'unused', row: undefined, function: undefined, inUse: false } as const;
    switch (this.lie as HostLie) {
      case 'rows nobody ordered':
      case "another's row":
        return each((slot) => ({ ...slot, state: 'ready', row: this.#hostRow(0) }));
      case 'old generations':
        return each((slot) => ({ ...slot, row: this.#older(slot.row) }));
      case 'absurd generations':
        return each((slot) => ({
          ...slot,
          state: 'ready',
          row: this.#hostRow(prng.pick(ABSURD)),
        }));
      case 'BARs outside the windows':
        return each((slot) => this.#attached(slot, slot.prefetchable.limit + 1));
      case 'attached when not':
        return each((slot) => this.#attached(slot, slot.prefetchable.base));
      case 'no row when there is one':
        return each((slot) => ({ ...slot, ...unused, problem: undefined, reason: '' }));
      case 'windows that overlap': {
        const [first] = report.slots;
        if (first === undefined) return report;
        const { prefetchable, nonPrefetchable, secondaryBus } = first;
        return each((slot) => ({ ...slot, prefetchable, nonPrefetchable, secondaryBus }));
      }
      case 'problems when there are none':
        return each((slot) => ({
          ...slot,
          problem: { kind: prng.pick(['no-space', 'bad-header']), message: 'or so it says' },
        }));
      case 'ahead of its orders':
        return { ...each((slot) => slot), applied: report.applied + prng.between(1, 5) };
      case 'a box in place of a host':
        return {
          kind: 'box',
          applied: report.applied,
          whole: report.whole,
          slots: [],
          refused: '',
        };
      case 'paths to anywhere':
        return {
          ...report,
          paths: [...report.paths, { ...LIE_PATH, box: 'b99' }, { ...LIE_PATH, box: 'b0' }],
        };
      case 'refuses orders':
        return { ...report, refused: 'virtual slot 0: does not want to' };
    }
  }

  #mostOf<S>(slots: readonly S[], change: (slot: S) => S): S[] {
    return slots.map((slot) => (this.#prng.chance(0.7) ? change(slot) : slot));
  }

  #older<R extends { readonly generation: number }>(row: R | undefined): R | undefined {
    if (row === undefined) return undefined;
    return { ...row, generation: Math.max(1, row.generation - this.#prng.between(1, 9)) };
  }

  #attached(slot: HostSlotReport, address: number): HostSlotReport {
    if (slot.row === undefined) return slot;
    const bars = [{ index: 0, address, sizeBytes: 2 ** 20 }];
    const ids = { bdf: slot.secondaryBus << 8, vendorId: 1, deviceId: 1 };
    const fn = { ...ids, bars, memoryEnable: true, busMaster: true };
    return { ...slot, state: 'ready', function: fn, problem: undefined, reason: '' };
  }

  #boxRow(above: number): { host: string; generation: number } {
    return { host: this.#prng.pick(this.#pool.hosts), generation: this.#generation(above) };
  }

  #hostRow(above: number): { box: string; boxSlot: number; generation: number } {
    const box = this.#prng.pick(this.#pool.boxes);
    return { box, boxSlot: this.#prng.below(4), generation: this.#generation(above) };
  }

  #generation(above: number): number {
    const highest = this.#pool.highestGeneration();
    const low = Math.max(1, highest - 5);
    return Math.min(Number.MAX_SAFE_INTEGER, above + this.#prng.between(low, Math.max(1, highest)));
  }
}

const LIE_PATH = {
  path: 'net0',
  up: true,
  rttNs: 1,
  bitsPerSecond: 1e12,
  problem: '',
} as const;
