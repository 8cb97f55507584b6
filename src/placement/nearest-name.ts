/** The name somebody probably meant. */

/**
 * The one with the fewest changes of a letter from `name`, when they are few and no other is as near;
 * upper and lower case are the same.
 */
export function nearestName(name: string, names: readonly string[]): string | undefined {
  const wanted = name.toLowerCase();
  let best: string | undefined;
  let bestChanges = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const one of names) {
    // Longer by more than this, it has more changes than that.
    if (Math.abs(one.length - name.length) > bestChanges) continue;
    const changes = changesBetween(wanted, one.toLowerCase());
    if (changes === bestChanges) best = undefined;
    if (changes < bestChanges) {
      best = one;
      bestChanges = changes;
    }
  }
  return best;
}

/** Letters inserted, removed or replaced (Levenshtein 1965). */
export function changesBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
