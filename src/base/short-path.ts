/** Of a path longer than that, a message has beginning and end. */
const MAX_CHARS = 255;

/** The path for a message, the middle left out where nobody would read it. */
export function shortPath(path: string): string {
  if (path.length <= MAX_CHARS) return path;
  return `${path.slice(0, 100)}…${path.slice(-100)}`;
}
