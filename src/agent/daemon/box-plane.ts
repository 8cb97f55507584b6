/** A box proxy as its agent sees it. */
import type { Nanos } from '#base/units';
import type { BoxProxy } from '#fabric/box-proxy';
import type { TableError } from '#fabric/table-check';
import type { BoxSlotReport, GpuNodeReport } from '#proto/agent-messages';
import type { BoxDataPlane, BoxRowOrder } from '../core/data-plane.ts';

export interface BoxPlaneOptions {
  readonly proxy: BoxProxy;
  readonly slots: readonly number[];
  /** What is in a slot; `undefined` while nobody knows. */
  readonly nodeOf: (slot: number) => GpuNodeReport | undefined;
  /** Why a slot is contained or quarantined, as far as it is known. */
  readonly reasonOf: (slot: number) => string | undefined;
}

export class BoxPlane implements BoxDataPlane {
  readonly #options: BoxPlaneOptions;

  constructor(options: BoxPlaneOptions) {
    this.#options = options;
  }

  slots(): readonly BoxSlotReport[] {
    const { proxy, reasonOf } = this.#options;
    return this.#options.slots.map((slot) => {
      const row = proxy.rows.find((one) => one.slot === slot && one.valid && one.used);
      const state = proxy.slotState(slot);
      const isDown = state === 'contained' || state === 'quarantined';
      return {
        slot,
        node: this.#options.nodeOf(slot),
        state,
        clean: proxy.isClean(slot) && state !== 'quarantined',
        row: row === undefined ? undefined : { host: row.host, generation: row.generation },
        reason: isDown ? (reasonOf(slot) ?? '') : '',
      };
    });
  }

  /** A device is scrubbed before this returns. */
  setRows(now: Nanos, rows: readonly BoxRowOrder[]): string {
    const { proxy, slots } = this.#options;
    const stranger = rows.find(({ slot }) => !slots.includes(slot));
    if (stranger !== undefined) return `there is no slot ${stranger.slot} here`;
    const errors = proxy.setTable(
      now,
      rows.map((row) => ({ ...row, valid: true, used: true })),
    );
    if (errors.length === 0) proxy.scrubUnbound(now);
    return tableErrorText(errors, (row) => `slot ${rows[row]?.slot}`);
  }
}

/** '' for no errors. */
export function tableErrorText(
  errors: readonly TableError[],
  nameOf: (row: number) => string,
): string {
  return errors.map(({ row, field, message }) => `${nameOf(row)}: ${field} ${message}`).join('; ');
}
