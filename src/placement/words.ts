/** Quantities and names, as messages show them. */
const SHOWN_CHARACTERS = 64;
const SHOWN_NAMES = 8;

/** Quoted, with control characters escaped, and cut where it is long. */
export function quoted(name: string): string {
  return JSON.stringify(
    name.length > SHOWN_CHARACTERS ? `${name.slice(0, SHOWN_CHARACTERS)}…` : name,
  );
}

/** As `80 GiB`, with at most two decimals. */
export function bytesText(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${decimals(value)} ${units[unit]}`;
}

/** As `7.2 µs`. */
export function timeText(ns: number): string {
  if (ns < 1000) return `${decimals(ns)} ns`;
  return ns < 1e6 ? `${decimals(ns / 1000)} µs` : `${decimals(ns / 1e6)} ms`;
}

/** As `1 GPU node`, `8 GPU nodes`. */
export function nodesText(count: number): string {
  return `${count} GPU node${count === 1 ? '' : 's'}`;
}

/** `is` or `are`, and the like. */
export function verb(count: number, one: string, several: string): string {
  return count === 1 ? one : several;
}

/** The first few, and how many more there are. */
export function listText(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN_NAMES).join(', ');
  const more = names.length - SHOWN_NAMES;
  return more > 0 ? `${shown} and ${more} more` : shown;
}

function decimals(value: number): string {
  return String(Math.round(value * 100) / 100);
}
