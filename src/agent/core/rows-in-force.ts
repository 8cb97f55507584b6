/**
 * Brings the rows of a plane to those ordered. A generation is put in force once: a row the plane has
 * lost by itself stays out, for what was bound under it has gone with it (invariant 6c). A slot whose
 * row gets another generation is emptied first, so that the plane sees the old one leave.
 */

interface Row {
  readonly slot: number;
  readonly generation: number;
}

export interface RowPlane<R extends Row> {
  /** Generations by slot, as the plane shows them. */
  shown(): ReadonlyMap<number, number>;
  /** All or none; '' or why not. */
  set(rows: readonly R[]): string;
}

export class RowsInForce<R extends Row> {
  readonly #plane: RowPlane<R>;
  readonly #keepsOld: boolean;
  /** What was last put in force, by slot. */
  #rows = new Map<number, R>();

  constructor(plane: RowPlane<R>, keepsOld: boolean) {
    this.#plane = plane;
    this.#keepsOld = keepsOld;
  }

  /** The generation last put in force for a slot. */
  generationOf(slot: number): number | undefined {
    return this.#rows.get(slot)?.generation;
  }

  /** '' when the plane has taken these rows, otherwise why not. */
  apply(wanted: readonly R[]): string {
    const shown = this.#plane.shown();
    const isLost = (row: R): boolean =>
      this.generationOf(row.slot) === row.generation && shown.get(row.slot) !== row.generation;
    const next = wanted.filter((row) => !isLost(row));
    if (this.#keepsOld) {
      const named = new Set(next.map((row) => row.slot));
      for (const row of this.#rows.values()) if (!named.has(row.slot)) next.push(row);
    }
    const staying = next.filter((row) => {
      const generation = shown.get(row.slot);
      return generation === undefined || generation === row.generation;
    });
    if (staying.length < next.length) {
      const stayingNow = staying.filter((row) => shown.has(row.slot));
      const refused = this.#set(stayingNow, wanted);
      if (refused !== '') return refused;
    }
    return this.#set(next, wanted);
  }

  #set(rows: readonly R[], wanted: readonly R[]): string {
    const refused = this.#plane.set(rows);
    if (refused !== '') return refused;
    const after = new Map(rows.map((row) => [row.slot, row]));
    // Still ordered, but lost: remembered, so that it does not come back with the next order.
    for (const row of wanted) {
      const before = this.#rows.get(row.slot);
      if (before?.generation === row.generation && !after.has(row.slot))
        after.set(row.slot, before);
    }
    this.#rows = after;
    return '';
  }
}
