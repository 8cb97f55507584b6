/** The virtual slots of a host as `dxpu status` and `dxpu tables` show them, and why one is not in use. */
import { formatBdf } from '#base/units';
import type { HostProxy } from '#fabric/host-proxy';
import type { HostRow } from '#fabric/mapping-table';
import type { SoftHost } from '#host/root-complex';
import { type CounterReport, reportCounters } from './counter-report.ts';
import type { HostLinks } from './host-links.ts';
import { type SlotReasons, withWayOut } from './slot-reasons.ts';
import type { SlotSoftware, UsedFunction } from './slot-software.ts';

export interface HostSlotStatus {
  readonly slot: number;
  readonly state: string;
  /** Of the row in force. */
  readonly generation: number | undefined;
  readonly function: (Omit<UsedFunction, 'bdf'> & { readonly bdf: string }) | undefined;
  readonly problem: string | undefined;
  /** Why it is not in use, and the way out. */
  readonly reason: string | undefined;
  readonly counters: CounterReport;
}

export interface HostSlotStatusesOptions {
  readonly hostId: string;
  readonly isManaged: boolean;
  readonly soft: SoftHost;
  readonly software: SlotSoftware;
  readonly proxy: HostProxy;
  readonly links: HostLinks;
  readonly reasons: SlotReasons;
  /** Whether the function of a slot is to leave. */
  readonly isLeaving: (slot: number) => boolean;
}

export class HostSlotStatuses {
  readonly #options: HostSlotStatusesOptions;

  constructor(options: HostSlotStatusesOptions) {
    this.#options = options;
  }

  all(): HostSlotStatus[] {
    const { soft, software, proxy } = this.#options;
    return soft.ports.map(({ virtualSlot: slot }): HostSlotStatus => {
      const fn = software.functionAt(slot);
      return {
        slot,
        state: proxy.slotState(slot),
        generation: this.#rowOf(slot)?.generation,
        function:
          fn === undefined
            ? undefined
            : {
                bdf: formatBdf(fn.bdf),
                vendorId: fn.vendorId,
                deviceId: fn.deviceId,
                bars: fn.bars,
              },
        problem: software.problemAt(slot)?.message,
        reason: this.reasonOf(slot),
        counters: reportCounters(proxy.counters(slot)),
      };
    });
  }

  /** Why a slot is not in use, and the way out. */
  reasonOf(virtualSlot: number): string | undefined {
    const { proxy, software, isManaged, isLeaving } = this.#options;
    const reason = this.linkReasonOf(virtualSlot);
    const state = proxy.slotState(virtualSlot);
    if (reason !== undefined && state === 'contained') {
      return withWayOut(reason, this.#rowOf(virtualSlot)?.generation ?? 0, isManaged);
    }
    // An empty slot may be one that nothing can be plugged into.
    if (state === 'unused') return software.noteAt(virtualSlot);
    if (state !== 'ready') return reason;
    const place = proxy.functionPlace(virtualSlot);
    if (place === 'held')
      return 'its function is held out of the slot until the manager lets it in';
    if (place === 'left') return 'its function was taken out';
    if (isLeaving(virtualSlot)) return 'its function is about to be taken out';
    return software.noteAt(virtualSlot);
  }

  /** Why a slot is contained or waits. */
  linkReasonOf(virtualSlot: number): string | undefined {
    const { hostId, proxy, links, reasons } = this.#options;
    const row = this.#rowOf(virtualSlot);
    if (row === undefined) return undefined;
    const { box, slot, generation } = row;
    switch (proxy.slotState(virtualSlot)) {
      case 'contained':
        return reasons.of(virtualSlot, generation) ?? `box ${box} has contained slot ${slot}`;
      case 'waiting': {
        const toBox = links.of(box);
        if (toBox?.link.state === 'up') {
          return (
            `box ${box} has not said that slot ${slot} is ready: look for a row with host ` +
            `${hostId} and generation ${generation} in its table`
          );
        }
        const why = toBox?.problem === undefined ? '' : `: ${toBox.problem}`;
        return `no connection to box ${box} yet${why}`;
      }
      default:
        return undefined;
    }
  }

  #rowOf(virtualSlot: number): HostRow | undefined {
    return this.#options.proxy.rows.find((one) => one.virtualSlot === virtualSlot && one.used);
  }
}
