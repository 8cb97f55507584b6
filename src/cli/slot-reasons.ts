/** Why slots are not in use, for `status`, `tables`, `reload` and `accel run`. */

/** What a reload answers, beside what it could not change. */
export interface RowsInForce {
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

  /** For a contained slot: why, as far as it is known, and the way out. */
  contained(slot: number, generation: number, otherwise: string): string {
    const why = this.of(slot, generation) ?? otherwise;
    return (
      `${why}; to bind it anew, raise its generation in both files to more than ${generation}, ` +
      'then dxpu reload'
    );
  }
}
