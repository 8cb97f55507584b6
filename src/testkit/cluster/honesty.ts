/**
 * Which proxies do what they were told and say what is. One that has lied is believed again once it has
 * been restarted and the manager has had a whole report of it, and decided what it had heard before.
 */
export class Honesty {
  readonly #lying = new Set<string>();
  /** Restarted in earnest, but what the manager knows is still of the liar. */
  readonly #recovering = new Set<string>();

  isHonest(id: string): boolean {
    return !this.#lying.has(id) && !this.#recovering.has(id);
  }

  lies(id: string): void {
    this.#recovering.delete(id);
    this.#lying.add(id);
  }

  restarted(id: string): void {
    if (this.#lying.delete(id)) this.#recovering.add(id);
  }

  /** At the end of the manager's turn that took in the first whole report. */
  reported(id: string): void {
    this.#recovering.delete(id);
  }
}
