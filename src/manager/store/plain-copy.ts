/**
 * A copy of plain data (objects, arrays, strings, numbers, booleans, `undefined`), frozen all the way
 * down: whoever gets it shares nothing with whoever gave it and cannot change it.
 */
export function plainCopy<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(plainCopy)) as T;
  const copy: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(value)) copy[name] = plainCopy(field);
  return Object.freeze(copy) as T;
}
