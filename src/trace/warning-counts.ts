/** Warnings by code: the first message and place, and how often. */
import type { TraceWarning } from './timeline.ts';

interface Counted {
  readonly message: string;
  readonly place: string | undefined;
  count: number;
}

export class WarningCounts {
  readonly #byCode = new Map<string, Counted>();

  /**
   * `message` follows a count in the printed text ("3 events without a usable time were dropped");
   * `place` names the first one, such as "byte 1234".
   */
  count(
    code: string,
    message: string,
    { place, by = 1 }: { readonly place?: string; readonly by?: number } = {},
  ): void {
    const known = this.#byCode.get(code);
    if (known === undefined) this.#byCode.set(code, { message, place, count: by });
    else known.count += by;
  }

  list(): TraceWarning[] {
    return [...this.#byCode].map(([code, { message, place, count }]) => ({
      code,
      count,
      message: `${count} ${message}${place === undefined ? '' : ` (the first at ${place})`}`,
    }));
  }
}
