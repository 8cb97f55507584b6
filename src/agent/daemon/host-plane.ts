/**
 * A host proxy and the software behind it as their agent sees them.
 *
 * Whoever runs something on a function holds it (`hold`). `HostPlane` alone knows who does, and moves
 * functions: one that should leave without surprise is **draining** while somebody holds it, then
 * **leaving** while its user lets go of it, then out.
 */
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import type { HostProxy } from '#fabric/host-proxy';
import type { HostRow } from '#fabric/mapping-table';
import type { SoftHost } from '#host/root-complex';
import type { FunctionReport, HostSlotReport, PathReport } from '#proto/agent-messages';
import type { HostDataPlane, HostPeer, HostRowOrder } from '../core/data-plane.ts';
import { tableErrorText } from './box-plane.ts';
import type { SlotSoftware } from './slot-software.ts';

/** The links of a host, as the plane needs them. */
export interface PeerLinks {
  set(now: Nanos, peers: readonly HostPeer[]): void;
  reports(): readonly PathReport[];
}

export interface HostPlaneOptions {
  readonly soft: SoftHost;
  readonly software: SlotSoftware;
  /** With `holdsFunctions`. */
  readonly proxy: HostProxy;
  readonly links: PeerLinks;
  /** Why a slot is contained or waits, as far as it is known. */
  readonly reasonOf: (virtualSlot: number) => string | undefined;
  /** Something changed that nobody else tells of: who holds a function, a function that has left. */
  readonly onChanged: (now: Nanos) => void;
}

/** What is known of a slot under one generation. */
interface Tenure {
  readonly generation: number;
  holders: number;
  state: 'staying' | 'draining' | 'leaving';
}

export class HostPlane implements HostDataPlane {
  readonly #options: HostPlaneOptions;
  readonly #tenures = new Map<number, Tenure>();

  constructor(options: HostPlaneOptions) {
    this.#options = options;
  }

  slots(): readonly HostSlotReport[] {
    const { soft, proxy, software, reasonOf } = this.#options;
    return soft.ports.map((port) => {
      const slot = port.virtualSlot;
      const row = this.#rowOf(slot);
      const state = proxy.slotState(slot);
      const fn = this.#functionOf(slot);
      const problem = software.problemAt(slot);
      return {
        slot,
        ...port.routing,
        row:
          row === undefined
            ? undefined
            : { box: row.box, boxSlot: row.slot, generation: row.generation },
        state,
        function: fn,
        inUse: fn !== undefined && (this.#tenureOf(slot)?.holders ?? 0) > 0,
        // The slot's own state says that its link went down.
        problem:
          problem === undefined || problem.kind === 'link-down'
            ? undefined
            : { kind: problem.kind, message: problem.message },
        reason:
          (state === 'contained' || state === 'waiting' ? reasonOf(slot) : software.noteAt(slot)) ??
          '',
      };
    });
  }

  paths(): readonly PathReport[] {
    return this.#options.links.reports();
  }

  setPeers(now: Nanos, peers: readonly HostPeer[]): void {
    this.#options.links.set(now, peers);
  }

  /** Bus and windows are those the virtual ports have now. */
  setRows(now: Nanos, rows: readonly HostRowOrder[]): string {
    const { soft, proxy } = this.#options;
    const table: HostRow[] = [];
    for (const { slot: virtualSlot, box, boxSlot, generation, path } of rows) {
      const port = soft.ports[virtualSlot];
      if (port === undefined) return `there is no virtual slot ${virtualSlot} here`;
      table.push({
        virtualSlot,
        used: true,
        ...port.routing,
        box,
        slot: boxSlot,
        path,
        generation,
      });
    }
    const errors = proxy.setTable(now, table);
    return tableErrorText(errors, (row) => `virtual slot ${rows[row]?.slot}`);
  }

  plug(now: Nanos, slot: number): void {
    const tenure = this.#tenureOf(slot);
    if (tenure === undefined) return;
    // Once it is being switched off it leaves.
    if (tenure.state === 'draining') tenure.state = 'staying';
    this.#options.proxy.plug(now, slot);
  }

  unplug(now: Nanos, slot: number, surprise: boolean): void {
    const tenure = this.#tenureOf(slot);
    if (tenure === undefined) return;
    if (surprise) {
      this.#options.proxy.unplug(now, slot, true);
      return;
    }
    if (tenure.state === 'staying') tenure.state = 'draining';
    this.#leaveIfUnused(now, slot, tenure);
  }

  /** Whether the function of a slot is to leave: nobody gets to hold it any more. */
  isLeaving(slot: number): boolean {
    return (this.#tenureOf(slot)?.state ?? 'staying') !== 'staying';
  }

  /**
   * Keeps the function of a slot from leaving without surprise, until what is returned is called.
   * Fails with `unavailable` while it is to leave.
   */
  hold(now: Nanos, slot: number): (now: Nanos) => void {
    if (this.isLeaving(slot)) {
      throw new DxpuError(
        'unavailable',
        `virtual slot ${slot} is being unbound: what runs on its function may end, nothing new begins`,
        { details: { slot } },
      );
    }
    const tenure = this.#tenureOf(slot);
    if (tenure === undefined) return () => {};
    tenure.holders++;
    this.#options.onChanged(now);
    let isHeld = true;
    return (then) => {
      if (!isHeld) return;
      isHeld = false;
      tenure.holders--;
      this.#leaveIfUnused(then, slot, tenure);
      this.#options.onChanged(then);
    };
  }

  #leaveIfUnused(now: Nanos, slot: number, tenure: Tenure): void {
    if (tenure.state !== 'draining' || tenure.holders > 0) return;
    const { software, proxy, onChanged } = this.#options;
    tenure.state = 'leaving';
    const isUsed = software.leave(now, slot, (then) => {
      // The row may be another by now, and its function in use.
      if (this.#tenureOf(slot) === tenure) proxy.unplug(then, slot, false);
      onChanged(then);
    });
    if (isUsed) return;
    // Never put to use: there is nobody to let go.
    tenure.state = 'staying';
    proxy.unplug(now, slot, false);
  }

  #functionOf(slot: number): FunctionReport | undefined {
    const { software, proxy } = this.#options;
    const fn = software.functionAt(slot);
    if (fn === undefined) return undefined;
    return {
      bdf: fn.bdf,
      vendorId: fn.vendorId,
      deviceId: fn.deviceId,
      bars: fn.bars.map(({ index, address, sizeBytes }) => ({ index, address, sizeBytes })),
      ...proxy.command(slot),
    };
  }

  #rowOf(slot: number): HostRow | undefined {
    return this.#options.proxy.rows.find((one) => one.virtualSlot === slot && one.used);
  }

  /** Of the row there is now; `undefined` without one. */
  #tenureOf(slot: number): Tenure | undefined {
    const generation = this.#rowOf(slot)?.generation;
    if (generation === undefined) return undefined;
    let tenure = this.#tenures.get(slot);
    if (tenure?.generation !== generation) {
      tenure = { generation, holders: 0, state: 'staying' };
      this.#tenures.set(slot, tenure);
    }
    return tenure;
  }
}
