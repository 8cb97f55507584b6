/** What the slots of real nodes are, whatever the manager makes of them. */
import type { BindingRecord } from '#manager/domain/records';
import type { RealBox, RealHost } from './real-proxies.ts';
import type { SlotTruth } from './store-checks.ts';

export class RealTruth implements SlotTruth {
  readonly boxes = new Map<string, RealBox>();
  readonly hosts = new Map<string, RealHost>();
  /** Functions that worked under a generation: as the host would have to report them. */
  readonly #worked = new Set<string>();

  /** What a host shows, should somebody call it attached. */
  note(host: RealHost): void {
    for (const { slot, row, function: fn, state } of host.slots()) {
      if (row === undefined || fn === undefined || state !== 'ready') continue;
      const { bdf, bars } = fn;
      this.#worked.add(`${host.id} ${slot} ${row.generation} ${JSON.stringify({ bdf, bars })}`);
    }
  }

  isVacant(id: string, slot: number): boolean {
    const box = this.boxes.get(id);
    if (box === undefined || box.isDead) return true;
    const report = box.slots()[slot];
    return report?.row === undefined && report?.clean === true;
  }

  isHostSlotVacant(id: string, slot: number): boolean {
    const host = this.hosts.get(id);
    return host === undefined || host.isDead || host.slots()[slot]?.row === undefined;
  }

  /** Stores are not set back here. */
  highestUsed(): number {
    return 0;
  }

  hasWorked({ host, hostSlot, generation, attachment }: BindingRecord): boolean {
    return this.#worked.has(`${host} ${hostSlot} ${generation} ${JSON.stringify(attachment)}`);
  }
}
