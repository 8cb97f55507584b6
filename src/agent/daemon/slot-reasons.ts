/** Why slots are not in use, for `status`, `tables`, `reload` and `accel run`. */

/** The table in force: what a reload answers, beside what it could not change. */
export interface TableReport {
  readonly rows: number;
  readonly contained: readonly { readonly slot: number; readonly reason: string }[];
}

/** Why each slot went down last. */
export class SlotReasons {
  readonly #reasons = new Map<number, { generation: number; reason: string }>();

  note(slot: number, generation: number, reason: string): void {
    this.#reasons.set(slot, { generation, reason });
  }

  of(slot: number, generation: number): string | undefined {
    const known = this.#reasons.get(slot);
    return known?.generation === generation ? known.reason : undefined;
  }
}

/** The way out of a contained slot whose table is a file; a manager needs no telling. */
export function withWayOut(why: string, generation: number, isManaged: boolean): string {
  if (isManaged) return why;
  return (
    `${why}; to bind it anew, raise its generation in both files to more than ${generation}, ` +
    'then dxpu reload'
  );
}
