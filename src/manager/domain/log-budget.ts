/** An end to what each of many can write into the log as long as this core lives: it can only grow. */
export class LogBudget {
  readonly #most: number;
  readonly #note: string;
  readonly #entries = new Map<string, number>();

  /** `note`: put behind the last message of each. */
  constructor(most: number, note: string) {
    this.#most = most;
    this.#note = note;
  }

  /** The message to write down; `undefined` when `name` has written enough. */
  spend(name: string, message: string): string | undefined {
    const entries = (this.#entries.get(name) ?? 0) + 1;
    if (entries > this.#most) return undefined;
    this.#entries.set(name, entries);
    return entries < this.#most ? message : `${message} (${this.#note})`;
  }
}
