/** Files as people tell them apart: without what all their names have in common. */

/** The folder all files are in, with the slash, as far as their names tell; empty for one file. */
export function commonFolder(files: readonly string[]): string {
  const [first = ''] = files;
  if (files.every((file) => file === first)) return '';
  let folder = first.slice(0, first.lastIndexOf('/') + 1);
  while (!files.every((file) => file.startsWith(folder))) {
    // Above the root there is no folder: names may be absolute and relative.
    const above = folder.length > 1 ? folder.lastIndexOf('/', folder.length - 2) : -1;
    folder = folder.slice(0, above + 1);
  }
  return folder;
}

const ENDING = /(?<=[^/])(?:\.pt)?(?:\.trace)?\.(?:json|sqlite|csv)(?:\.gz)?$/;

/** A short name for each file, in their order, different for different files. */
export function shortNames(files: readonly string[]): string[] {
  const folder = commonFolder(files);
  const inFolder = files.map((file) => file.slice(folder.length));
  const names = inFolder.map((name) => name.replace(ENDING, ''));
  const isUnique = new Set(names).size === new Set(files).size;
  return isUnique ? names : inFolder;
}
