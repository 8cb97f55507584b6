/** What of a configuration a reload cannot change: all but the table, field by field. */
import { createHash } from 'node:crypto';

/** A hash for each top-level field. */
export type FixedPart = Readonly<Record<string, string>>;

export function fixedPartOf(fields: Readonly<Record<string, unknown>>): FixedPart {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      createHash('sha256')
        .update(JSON.stringify(value) ?? '')
        .digest('hex'),
    ]),
  );
}

/** What to say of fields that differ and were not taken; `undefined` where none does. */
export function ignoredChanges(inForce: FixedPart, next: FixedPart): string | undefined {
  const names = [...new Set([...Object.keys(inForce), ...Object.keys(next)])];
  const changed = names.filter((name) => inForce[name] !== next[name]);
  if (changed.length === 0) return undefined;
  return `only the table was reloaded; what changed in ${changed.join(', ')} needs a restart`;
}
