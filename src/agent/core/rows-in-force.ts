/**
 * Brings the rows of a plane to those ordered.
 *
 * A generation is put in force once for a slot, and none comes after a higher one: a row the plane has
 * lost by itself stays out, for what was bound under it has gone with it (invariant 6c). A slot whose
 * row gets another generation is emptied first, so that the plane sees the old one leave.
 */
import type { Nanos } from '#base/units';

interface Row {
  readonly slot: number;
  readonly generation: number;
}

/** Of a `BoxDataPlane` or a `HostDataPlane` what is needed here. */
interface RowPlane<R extends Row> {
  slots(): readonly { readonly slot: number; readonly row: Generation | undefined }[];
  setRows(now: Nanos, rows: readonly R[]): string;
}

interface Generation {
  readonly generation: number;
}

export class RowsInForce<R extends Row> {
  readonly #plane: RowPlane<R>;
  readonly #keepsOld: boolean;
  readonly #highest = new Map<number, number>();
  /** What was last put in force. */
  #rows: readonly R[] = [];

  /** `keepsOld`: test only, see `AgentFaults.keepsOldRow`. */
  constructor(plane: RowPlane<R>, keepsOld: boolean) {
    this.#plane = plane;
    this.#keepsOld = keepsOld;
  }

  /** Whether the row of a slot was put in force and not taken out since. */
  has(slot: number, generation: number): boolean {
    return this.#rows.some((row) => row.slot === slot && row.generation === generation);
  }

  /** The highest generation that was ever in force, for reports; nothing before the first. */
  highest(): { readonly highestGeneration?: number } {
    let highestGeneration = 0;
    for (const generation of this.#highest.values()) {
      if (generation > highestGeneration) highestGeneration = generation;
    }
    return highestGeneration === 0 ? {} : { highestGeneration };
  }

  /** '' when the plane has taken these rows, otherwise why not. */
  apply(now: Nanos, wanted: readonly R[]): string {
    const shown = this.#generations();
    for (const [slot, generation] of shown) this.#used(slot, generation);
    const next = wanted.filter(
      (row) =>
        shown.get(row.slot) === row.generation ||
        row.generation > (this.#highest.get(row.slot) ?? 0),
    );
    if (this.#keepsOld) {
      const named = new Set(next.map((row) => row.slot));
      next.push(...this.#rows.filter((row) => !named.has(row.slot)));
    }
    const isReplaced = next.some(
      (row) => (shown.get(row.slot) ?? row.generation) !== row.generation,
    );
    if (isReplaced) {
      const refused = this.#set(
        now,
        next.filter((row) => shown.get(row.slot) === row.generation),
      );
      if (refused !== '') return refused;
    }
    return this.#set(now, next);
  }

  #set(now: Nanos, rows: readonly R[]): string {
    const refused = this.#plane.setRows(now, rows);
    if (refused !== '') return refused;
    this.#rows = rows;
    for (const row of rows) this.#used(row.slot, row.generation);
    return '';
  }

  #used(slot: number, generation: number): void {
    if (generation > (this.#highest.get(slot) ?? 0)) this.#highest.set(slot, generation);
  }

  /** By slot, as the plane shows them, of the slots that have a row. */
  #generations(): ReadonlyMap<number, number> {
    const generations = new Map<number, number>();
    for (const { slot, row } of this.#plane.slots()) {
      if (row !== undefined) generations.set(slot, row.generation);
    }
    return generations;
  }
}
