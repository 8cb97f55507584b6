/**
 * What can really pass between hosts and boxes, whatever anybody says: computed from the two proxies'
 * own state at each change. Judges the invariants 2 and 5, and who may read what a tenant has left.
 */
import type { BindingRecord } from '#manager/domain/records';
import { ClusterInvariant, type ClusterOracle } from './cluster-oracle.ts';
import type { Honesty } from './honesty.ts';
import type { ModelBox, SlotWatch } from './model-box.ts';
import type { BoxSlotRow } from './model-box-slot.ts';
import type { ModelHost } from './model-host.ts';
import type { ModelHostSlot } from './model-host-slot.ts';
import type { ModelLinks } from './model-links.ts';
import type { SlotTruth } from './store-checks.ts';
import type { StoreFacts } from './store-mirror.ts';

const { SINGLE_OWNER, FENCED, STORE_OWNS } = ClusterInvariant;

/** A host that could send a TLP to a box slot now, and be answered. */
interface Pass {
  readonly host: string;
  readonly hostSlot: number;
  readonly generation: number;
  /** Its function is set up: a program could work with it. */
  works: boolean;
}

export interface TruthOptions {
  readonly oracle: ClusterOracle;
  readonly honesty: Honesty;
  readonly links: ModelLinks;
  readonly store: StoreFacts;
}

export class GroundTruth implements SlotWatch, SlotTruth {
  readonly boxes = new Map<string, ModelBox>();
  readonly hosts = new Map<string, ModelHost>();
  readonly #options: TruthOptions;
  readonly #passing = new Map<string, Pass[]>();
  /** Functions that worked under a generation: as the host would have to report them. */
  readonly #worked = new Map<string, string>();

  constructor(options: TruthOptions) {
    this.#options = options;
  }

  slotChanged(boxId: string, slot: number, by: string): void {
    const key = `${boxId} ${slot}`;
    const before = this.#passing.get(key) ?? NONE;
    const after = this.#look(boxId, slot);
    if (before.length === 0 && after.length === 0) return;
    this.#passing.set(key, after);
    for (const pass of before) {
      const now = after.find((other) => isSamePass(pass, other));
      if (now === undefined) this.#ended(key, pass, by, 'passes');
      else if (pass.works && !now.works) this.#ended(key, pass, by, 'is set up');
    }
    for (const pass of after) {
      if (!before.some((other) => isSamePass(pass, other))) this.#began(boxId, slot, pass, after);
    }
  }

  isVacant(boxId: string, slot: number): boolean {
    const truth = this.boxes.get(boxId)?.box[slot];
    // A process that is dead has no row; the device keeps what was left in it.
    return truth === undefined || (truth.row === undefined && truth.hardware.content === 0);
  }

  isHostSlotVacant(hostId: string, slot: number): boolean {
    return this.hosts.get(hostId)?.host[slot]?.row === undefined;
  }

  highestUsed(record: BindingRecord, counts: (proxy: string) => boolean): number {
    const { box, boxSlot, host, hostSlot } = record;
    const ofBox = counts(box) ? this.boxes.get(box)?.box[boxSlot]?.highestGeneration : 0;
    const ofHost = counts(host) ? this.hosts.get(host)?.host[hostSlot]?.highestGeneration : 0;
    return Math.max(ofBox ?? 0, ofHost ?? 0);
  }

  hasWorked(record: BindingRecord): boolean {
    const { host, hostSlot, generation, attachment } = record;
    const worked = this.#worked.get(`${host} ${hostSlot} ${generation}`);
    return worked !== undefined && worked === JSON.stringify(attachment);
  }

  /** Whether a program of the binding's host could work with its function now. */
  works(record: BindingRecord): boolean {
    const passing = this.#passing.get(`${record.box} ${record.boxSlot}`) ?? NONE;
    return passing.some(
      (pass) =>
        pass.works &&
        pass.host === record.host &&
        pass.hostSlot === record.hostSlot &&
        pass.generation === record.generation,
    );
  }

  #look(boxId: string, number: number): Pass[] {
    const slot = this.boxes.get(boxId)?.box[number];
    if (slot === undefined) return [];
    const passes: Pass[] = [];
    if (slot.row !== undefined && slot.session !== 0) this.#find(boxId, number, slot.row, passes);
    for (const row of slot.secret) this.#find(boxId, number, row, passes);
    return passes;
  }

  /** The host slots behind a row that a box lets pass. */
  #find(boxId: string, number: number, row: BoxSlotRow, into: Pass[]): void {
    const link = this.#options.links.of(row.host, boxId);
    const host = this.hosts.get(row.host);
    if (host === undefined || link?.isUp !== true) return;
    for (const slot of host.host) {
      if (!uses(slot, boxId, number, row.generation, link.session)) continue;
      const pass = { host: row.host, hostSlot: slot.number, generation: row.generation };
      if (into.some((other) => isSamePass(pass, other))) continue;
      const works = slot.fn?.memoryEnable === true;
      if (works) this.#works(pass, slot);
      into.push({ ...pass, works });
    }
  }

  #works(pass: Omit<Pass, 'works'>, { fn }: ModelHostSlot): void {
    if (fn === undefined) return;
    const key = `${pass.host} ${pass.hostSlot} ${pass.generation}`;
    if (!this.#worked.has(key)) {
      this.#worked.set(key, JSON.stringify({ bdf: fn.bdf, bars: fn.bars }));
    }
  }

  #began(boxId: string, slot: number, pass: Pass, all: readonly Pass[]): void {
    const { oracle, honesty, store } = this.#options;
    const { host, hostSlot, generation } = pass;
    const what = `${host}/${hostSlot} reaches ${boxId}/${slot} with generation ${generation}`;
    oracle.event(what);
    const hardware = this.boxes.get(boxId)?.box[slot]?.hardware;
    if (hardware === undefined) return;
    const isBoxHonest = honesty.isHonest(boxId);
    if (isBoxHonest && hardware.content !== 0 && hardware.content !== generation) {
      oracle.fail(FENCED, `${what} and finds what generation ${hardware.content} left there`);
    }
    hardware.content = generation;
    for (const other of all) {
      if (other.host === host || this.#isExcused(other)) continue;
      if (!honesty.isHonest(host) || !honesty.isHonest(other.host)) continue;
      oracle.fail(SINGLE_OWNER, `${what}, and so does ${other.host} with ${other.generation}`);
    }
    if (!isBoxHonest || this.#isExcused(pass)) return;
    const owner = store.bindingOf(generation);
    const isOwn =
      owner?.box === boxId &&
      owner.boxSlot === slot &&
      owner.host === host &&
      owner.hostSlot === hostSlot;
    if (!isOwn) oracle.fail(FENCED, `${what}, which is not what the store says`);
  }

  #ended(key: string, pass: Pass, by: string, what: string): void {
    const { oracle, honesty, store } = this.#options;
    oracle.event(`${pass.host}/${pass.hostSlot} to ${key}: no longer ${what}`);
    if (by === '' || !honesty.isHonest(by) || store.isLost(pass.generation)) return;
    const record = store.bindingOf(pass.generation);
    if (record?.state !== 'attached') return;
    oracle.fail(STORE_OWNS, `${by} took ${record.id} away, which the store says is attached`);
  }

  #isExcused(pass: Pass): boolean {
    const { store } = this.#options;
    return store.isLost(pass.generation) || store.wasForced(pass.generation);
  }
}

const NONE: readonly Pass[] = [];

function uses(
  slot: ModelHostSlot,
  box: string,
  boxSlot: number,
  generation: number,
  session: number,
): boolean {
  const { row } = slot;
  if (row !== undefined && slot.state === 'ready' && slot.session === session) {
    if (row.box === box && row.boxSlot === boxSlot && row.generation === generation) return true;
  }
  return slot.secret.some(
    (old) => old.box === box && old.boxSlot === boxSlot && old.generation === generation,
  );
}

function isSamePass(a: Omit<Pass, 'works'>, b: Omit<Pass, 'works'>): boolean {
  return a.host === b.host && a.hostSlot === b.hostSlot && a.generation === b.generation;
}
