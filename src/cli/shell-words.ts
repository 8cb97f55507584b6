/** Commands that work as they stand, from where this one was started. */
import * as path from 'node:path';

/** Makes `dxpu WORDS`, in the way this process was called and with its state folder. */
export function shellWords(state: string | undefined): (words: string) => string {
  const main = process.argv[1] ?? 'dxpu';
  const dxpu = path.basename(main) === 'dxpu' ? 'dxpu' : `node ${quoted(path.relative('', main))}`;
  const folder = state === undefined ? '' : ` --state ${quoted(state)}`;
  return (words) => `${dxpu} ${words}${folder}`;
}

export function quoted(text: string): string {
  return /^[\w./@:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
