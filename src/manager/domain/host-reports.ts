/**
 * Takes in what hosts report. It owns the records of host slots and paths. Windows are believed when
 * they can be those of one hierarchy; a slot whose windows cannot keeps those it had, and is not given
 * to anybody.
 */
import type { FunctionReport, HostReport, HostSlotReport, PathReport } from '#proto/agent-messages';
import type { FactsKeeper } from './facts-keeper.ts';
import { functionStage } from './function-check.ts';
import { type Host, type HostSlot, type Inventory, pathKey } from './inventory.ts';
import type { Journal } from './journal.ts';
import { hostRow } from './observe.ts';
import type { Reconciler } from './reconciler.ts';
import type { HostSlotRecord } from './records.ts';
import type { RefusedClaims } from './refused-claims.ts';
import { windowFaults } from './window-check.ts';

export interface HostReportsParts {
  readonly inventory: Inventory;
  readonly journal: Journal;
  readonly facts: FactsKeeper;
  readonly reconciler: Reconciler;
  readonly claims: RefusedClaims;
}

/** More ways to one box than any network has. */
const MOST_PATHS_PER_BOX = 16;

export class HostReports {
  readonly #parts: HostReportsParts;

  constructor(parts: HostReportsParts) {
    this.#parts = parts;
  }

  /** The report was checked, and its stream is `host.session`. */
  take(host: Host, report: HostReport): void {
    const { inventory, reconciler } = this.#parts;
    const reported = new Map<HostSlot, HostSlotReport | undefined>();
    if (report.whole) for (const slot of host.slots.values()) reported.set(slot, undefined);
    for (const one of report.slots) reported.set(inventory.hostSlot(host, one.slot), one);
    let isMoved = false;
    for (const [slot, one] of reported) {
      slot.report = one;
      if (one === undefined || !slot.isSound || !isSamePort(slot.record, one)) isMoved = true;
    }
    if (isMoved) this.#checkWindows(host);
    for (const slot of reported.keys()) {
      this.#noteRow(slot);
      this.#noteFunction(slot);
      reconciler.touchHostSlot(slot);
    }
    this.#takePaths(host, report);
  }

  /** The stream is over: nothing it said is known to hold. */
  forget(host: Host): void {
    for (const slot of host.slots.values()) {
      slot.report = undefined;
      slot.refused = '';
      this.#parts.reconciler.touchHostSlot(slot);
    }
    for (const path of host.paths.values()) {
      path.up = false;
      path.problem = 'its host is not connected';
    }
  }

  #checkWindows(host: Host): void {
    const { claims, journal, facts } = this.#parts;
    const reports: HostSlotReport[] = [];
    for (const { report } of host.slots.values()) if (report !== undefined) reports.push(report);
    const faults = windowFaults(reports);
    for (const slot of host.slots.values()) {
      const { report } = slot;
      const fault = faults.get(slot.slot) ?? '';
      claims.set(host, `windows ${slot.slot}`, fault);
      slot.isSound = fault === '';
      if (slot.isSound && report !== undefined && !isSamePort(slot.record, report)) {
        const { secondaryBus, nonPrefetchable, prefetchable } = report;
        const { slot: number } = slot;
        slot.record = { host: host.id, slot: number, secondaryBus, nonPrefetchable, prefetchable };
        journal.put('hostSlots', slot.record);
      }
      facts.hostSlot(slot);
    }
  }

  /** A row nobody has asked for: it is ordered away by being in no order. */
  #noteRow(slot: HostSlot): void {
    const { host, binding, report } = slot;
    const row = report?.row;
    const isOwn = binding !== undefined && hostRow(binding) === 'own';
    const text =
      row === undefined || isOwn
        ? ''
        : `slot ${slot.slot}: holds a row of box ${row.box}, slot ${row.boxSlot}, generation ${row.generation}, that no binding asks for`;
    this.#parts.claims.set(host, `row ${slot.slot}`, text);
  }

  #noteFunction(slot: HostSlot): void {
    const { host, binding, report, record } = slot;
    const found = report?.function;
    const { claims, reconciler, journal } = this.#parts;
    const key = `function ${slot.slot}`;
    if (found === undefined || record === undefined || binding === undefined) {
      claims.set(host, key, '');
      return;
    }
    const stage = functionStage(found, record, binding.boxSlot.record?.node.bars ?? []);
    const isWrong = typeof stage === 'object';
    claims.set(host, key, isWrong ? `slot ${slot.slot}: ${stage.wrong}` : '');
    const { attachment, state, id } = binding.record;
    const hasMoved =
      state === 'attached' && attachment !== undefined && !isSameFunction(attachment, found);
    if (stage !== 'final' || !hasMoved || hostRow(binding) !== 'own') return;
    reconciler.amend(binding, { attachment: { bdf: found.bdf, bars: found.bars } });
    journal.log({
      actor: `host/${host.id}`,
      subjectKind: 'binding',
      subject: id,
      action: 'moved',
      message: 'the host has given the function other addresses',
      binding: binding.record,
    });
  }

  #takePaths(host: Host, report: HostReport): void {
    const { facts } = this.#parts;
    const named = new Set<string>();
    for (const one of report.paths) {
      named.add(pathKey(one.box, one.path));
      this.#takePath(host, one);
    }
    if (!report.whole) return;
    for (const [key, path] of host.paths) {
      if (named.has(key)) continue;
      path.up = false;
      path.problem = 'its host does not report it any more';
      facts.path(host, path);
    }
  }

  #takePath(host: Host, report: PathReport): void {
    const { inventory, journal, facts, claims } = this.#parts;
    const { box, path, up, rttNs, bitsPerSecond, problem } = report;
    const known = host.paths.get(pathKey(box, path));
    if (known === undefined) {
      const isTooMany = host.paths.size >= inventory.boxes.size * MOST_PATHS_PER_BOX;
      if (isTooMany || !inventory.boxes.has(box)) {
        claims.set(host, 'paths', `claims a path ${path} to box ${box}, which is not known`);
        return;
      }
    }
    const record = { host: host.id, box, path, rttNs, bitsPerSecond };
    const entry = known ?? inventory.path(host, record);
    const isNews =
      known === undefined ||
      known.record.rttNs !== rttNs ||
      known.record.bitsPerSecond !== bitsPerSecond;
    if (isNews) {
      entry.record = record;
      journal.put('paths', record);
    }
    entry.up = up;
    entry.problem = problem;
    facts.path(host, entry);
  }
}

function isSamePort(record: HostSlotRecord | undefined, report: HostSlotReport): boolean {
  return (
    record?.secondaryBus === report.secondaryBus &&
    record.nonPrefetchable.base === report.nonPrefetchable.base &&
    record.nonPrefetchable.limit === report.nonPrefetchable.limit &&
    record.prefetchable.base === report.prefetchable.base &&
    record.prefetchable.limit === report.prefetchable.limit
  );
}

function isSameFunction(
  attachment: Pick<FunctionReport, 'bdf' | 'bars'>,
  found: FunctionReport,
): boolean {
  return (
    attachment.bdf === found.bdf &&
    attachment.bars.length === found.bars.length &&
    attachment.bars.every((bar, index) => {
      const other = found.bars[index];
      return bar.index === other?.index && bar.address === other.address;
    })
  );
}
