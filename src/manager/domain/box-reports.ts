/**
 * Takes in what boxes report. It owns the records of box slots, and which slot each GPU node is in: a
 * node is where it was first seen until that box says that it is gone, whoever else claims to have it.
 */
import type { BoxReport, BoxSlotReport, GpuNodeReport } from '#proto/agent-messages';
import type { FactsKeeper } from './facts-keeper.ts';
import type { Box, BoxSlot, Inventory } from './inventory.ts';
import type { Journal } from './journal.ts';
import { LogBudget } from './log-budget.ts';
import { boxRow } from './observe.ts';
import type { PoolFaults } from './pool-options.ts';
import type { Reconciler } from './reconciler.ts';
import type { BoxSlotRecord } from './records.ts';
import type { RefusedClaims } from './refused-claims.ts';

export interface BoxReportsParts {
  readonly inventory: Inventory;
  readonly journal: Journal;
  readonly facts: FactsKeeper;
  readonly reconciler: Reconciler;
  readonly claims: RefusedClaims;
  readonly faults: PoolFaults;
}

/** About the GPU nodes of one box. */
const MOST_ENTRIES = 10_000;

export class BoxReports {
  readonly #budget = new LogBudget(
    MOST_ENTRIES,
    'the last that is written down of this box: its GPU nodes come and go too often',
  );
  readonly #parts: BoxReportsParts;
  /** Slots whose GPU node is not believed, by the UUID they claim. */
  readonly #claimants = new Map<string, Set<BoxSlot>>();

  constructor(parts: BoxReportsParts) {
    this.#parts = parts;
  }

  /** The report was checked, and its stream is `box.session`. */
  take(box: Box, report: BoxReport): void {
    const { inventory, reconciler } = this.#parts;
    const reported = new Map<BoxSlot, BoxSlotReport | undefined>();
    if (report.whole) for (const slot of box.slots.values()) reported.set(slot, undefined);
    for (const one of report.slots) reported.set(inventory.boxSlot(box, one.slot), one);
    // First who leaves, then who comes: a GPU node may move between two slots in one report.
    const left: string[] = [];
    for (const [slot, one] of reported) {
      slot.report = one;
      this.#forgetClaim(slot);
      const { record } = slot;
      if (record?.present === true && record.node.uuid !== one?.node?.uuid) {
        left.push(record.node.uuid);
        this.#remove(slot, record);
      }
    }
    for (const [slot, one] of reported) {
      if (one?.node !== undefined) this.#place(slot, one.node);
      this.#noteQuarantine(slot);
      this.#noteRow(slot);
      reconciler.touchBoxSlot(slot);
    }
    for (const uuid of left) this.#offer(uuid);
  }

  /** The stream is over: nothing it said is known to hold. */
  forget(box: Box): void {
    for (const slot of box.slots.values()) {
      this.#forgetClaim(slot);
      slot.report = undefined;
      slot.refused = '';
      this.#parts.reconciler.touchBoxSlot(slot);
    }
  }

  #remove(slot: BoxSlot, record: BoxSlotRecord): void {
    const { inventory, journal, facts } = this.#parts;
    const { uuid } = record.node;
    if (inventory.nodes.get(uuid) === slot) inventory.nodes.delete(uuid);
    slot.record = { ...record, present: false };
    journal.put('boxSlots', slot.record);
    facts.boxSlot(slot, false);
    this.#log(slot, uuid, 'node-left', `is not in ${nameOf(slot)} any more`);
  }

  #place(slot: BoxSlot, node: GpuNodeReport): void {
    const { inventory, journal, facts, claims } = this.#parts;
    const { box, record } = slot;
    const holder = inventory.nodes.get(node.uuid);
    if (node.uuid === '' || (holder !== undefined && holder !== slot)) {
      this.#claim(slot, node.uuid);
      const text =
        holder === undefined
          ? `slot ${slot.slot}: a GPU node without a UUID is not believed`
          : `slot ${slot.slot}: claims GPU ${node.uuid}, which is in ${nameOf(holder)}`;
      claims.set(box, `node ${slot.slot}`, text);
      return;
    }
    inventory.nodes.set(node.uuid, slot);
    if (record?.present === true && isSameNode(record.node, node)) return;
    const isNew = record?.present !== true || record.node.uuid !== node.uuid;
    slot.record = {
      box: box.id,
      slot: slot.slot,
      node,
      present: true,
      quarantine: record?.quarantine ?? '',
    };
    journal.put('boxSlots', slot.record);
    facts.boxSlot(slot, true);
    if (isNew) this.#log(slot, node.uuid, 'node-came', `${node.model} is in ${nameOf(slot)}`);
  }

  #claim(slot: BoxSlot, uuid: string): void {
    slot.claim = uuid;
    const claimants = this.#claimants.get(uuid);
    if (claimants === undefined) this.#claimants.set(uuid, new Set([slot]));
    else claimants.add(slot);
  }

  #forgetClaim(slot: BoxSlot): void {
    const { claim, box } = slot;
    slot.claim = '';
    const claimants = this.#claimants.get(claim);
    claimants?.delete(slot);
    if (claimants?.size === 0) this.#claimants.delete(claim);
    if (slot.report?.node?.uuid !== claim || claim === '') {
      this.#parts.claims.set(box, `node ${slot.slot}`, '');
    }
  }

  /** A GPU node has left its slot: somebody else may have it in truth. */
  #offer(uuid: string): void {
    if (this.#parts.inventory.nodes.has(uuid)) return;
    for (const slot of this.#claimants.get(uuid) ?? []) {
      const node = slot.report?.node;
      if (node === undefined) continue;
      this.#forgetClaim(slot);
      this.#parts.claims.set(slot.box, `node ${slot.slot}`, '');
      this.#place(slot, node);
      this.#noteQuarantine(slot);
      this.#parts.reconciler.touchBoxSlot(slot);
      return;
    }
  }

  #noteQuarantine(slot: BoxSlot): void {
    const { record, report } = slot;
    if (record === undefined || report === undefined) return;
    const quarantine =
      report.state === 'quarantined' ? report.reason || 'the box gave no reason' : '';
    if (quarantine === record.quarantine) return;
    slot.record = { ...record, quarantine };
    this.#parts.journal.put('boxSlots', slot.record);
    const { uuid } = record.node;
    if (quarantine === '') this.#log(slot, uuid, 'released', `${nameOf(slot)} can be used again`);
    else this.#log(slot, uuid, 'quarantined', `${nameOf(slot)}: ${quarantine}`);
  }

  /** A row nobody has asked for: it is ordered away by being in no order. */
  #noteRow(slot: BoxSlot): void {
    const { box, binding, report } = slot;
    const row = report?.row;
    const isOwn = binding !== undefined && boxRow(binding) === 'own';
    const text =
      row === undefined || isOwn
        ? ''
        : `slot ${slot.slot}: holds a row of host ${row.host}, generation ${row.generation}, that no binding asks for`;
    this.#parts.claims.set(box, `row ${slot.slot}`, text);
    if (this.#parts.faults.actsOnReports === true && binding !== undefined && row !== undefined) {
      binding.record = { ...binding.record, host: row.host };
      this.#parts.journal.put('bindings', binding.record);
    }
  }

  #log({ box: { id } }: BoxSlot, uuid: string, action: string, text: string): void {
    const message = this.#budget.spend(id, text);
    if (message === undefined) return;
    const actor = `box/${id}`;
    this.#parts.journal.log({ actor, subjectKind: 'gpu', subject: uuid, action, message });
  }
}

function nameOf(slot: BoxSlot): string {
  return `slot ${slot.slot} of box ${slot.box.id}`;
}

function isSameNode(a: GpuNodeReport, b: GpuNodeReport): boolean {
  return (
    a === b ||
    (a.uuid === b.uuid &&
      a.model === b.model &&
      a.memoryBytes === b.memoryBytes &&
      a.nvlinkGroup === b.nvlinkGroup &&
      a.bars.length === b.bars.length &&
      a.bars.every((bar, index) => {
        const other = b.bars[index];
        return (
          bar.index === other?.index &&
          bar.sizeBytes === other.sizeBytes &&
          bar.prefetchable === other.prefetchable &&
          bar.is64 === other.is64
        );
      }))
  );
}
