/**
 * A file of this folder's build. The command line is bundled into one folder, so that this holds in a
 * chunk of the bundle as it does here.
 */
export function ownFile(name: string): URL {
  return new URL(`./${name}`, import.meta.url);
}
