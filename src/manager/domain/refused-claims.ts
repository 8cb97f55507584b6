/**
 * What proxies claim and the manager does not believe. A claim is said once, when it appears, and shows
 * in the lists as long as it stands. There is an end to what one stream can write into the log.
 */
import { type Identity, identityName } from '#identity/identity';
import type { Box, Host } from './inventory.ts';
import type { Journal } from './journal.ts';
import { LogBudget } from './log-budget.ts';

/** By one proxy. */
const MOST_ENTRIES = 1000;
const SHOWN = 3;

export class RefusedClaims {
  readonly #journal: Journal;
  readonly #budget = new LogBudget(
    MOST_ENTRIES,
    'the last that is written down: there are too many',
  );

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** What is wrong under `key` is this now; '' when nothing is any more. */
  set(of: Box | Host, key: string, text: string): void {
    if (text === '') {
      of.problems.delete(key);
      return;
    }
    if (of.problems.get(key) === text) return;
    of.problems.set(key, text);
    this.log(of, text);
  }

  /** Of what has no place in the lists. */
  log(of: Identity<'box' | 'host'>, text: string): void {
    const name = identityName(of);
    const message = this.#budget.spend(name, text);
    if (message === undefined) return;
    const { kind, id } = of;
    this.#journal.log({ actor: name, subjectKind: kind, subject: id, action: 'refused', message });
  }
}

/** For a list: '' when nothing is wrong. */
export function problemText(problems: ReadonlyMap<string, string>): string {
  const texts = [...problems.values()];
  const more = texts.length - SHOWN;
  return texts.slice(0, SHOWN).join('; ') + (more > 0 ? `; and ${more} more` : '');
}
