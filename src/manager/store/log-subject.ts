import type { LogRecord } from '../domain/records.ts';

/** The binding an entry of the log is of: the one it shows or, where it shows none, its subject. */
export function bindingOf(entry: LogRecord): string | undefined {
  if (entry.binding !== undefined) return entry.binding.id;
  return entry.subjectKind === 'binding' ? entry.subject : undefined;
}
