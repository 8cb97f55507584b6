/**
 * What proxies claim and the manager does not believe. A claim is said once, when it appears, and shows
 * in the lists as long as it stands. There is an end to what one stream can write into the log.
 */
import type { Box, Host } from './inventory.ts';
import type { Journal } from './journal.ts';

/** By one proxy, as long as this core lives. */
const MOST_ENTRIES = 1000;
const SHOWN = 3;

export class RefusedClaims {
  readonly #journal: Journal;
  readonly #entries = new Map<string, number>();

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** What is wrong under `key` is this now; '' when nothing is any more. */
  set(kind: 'box' | 'host', of: Box | Host, key: string, text: string): void {
    if (text === '') {
      of.problems.delete(key);
      return;
    }
    if (of.problems.get(key) === text) return;
    of.problems.set(key, text);
    this.log(kind, of.id, text);
  }

  /** Of what has no place in the lists. */
  log(kind: 'box' | 'host', id: string, text: string): void {
    const name = `${kind}/${id}`;
    const entries = (this.#entries.get(name) ?? 0) + 1;
    if (entries > MOST_ENTRIES) return;
    this.#entries.set(name, entries);
    const message =
      entries < MOST_ENTRIES ? text : `${text} (the last that is written down: there are too many)`;
    this.#journal.log({ actor: name, subjectKind: kind, subject: id, action: 'refused', message });
  }
}

/** For a list: '' when nothing is wrong. */
export function problemText(problems: ReadonlyMap<string, string>): string {
  const texts = [...problems.values()];
  const more = texts.length - SHOWN;
  return texts.slice(0, SHOWN).join('; ') + (more > 0 ? `; and ${more} more` : '');
}
