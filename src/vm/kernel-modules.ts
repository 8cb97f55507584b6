/** Which files of a Linux kernel's tree hold the modules asked for, and in which order they can be loaded. */
import { readdirSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';

interface KernelModule {
  /** With `_`, as the kernel shows it. */
  readonly name: string;
  readonly bytes: Buffer;
}

/** The bytes of a module's file; they may be compressed in the tree. */
type ReadModule = (file: string) => Promise<Buffer>;

/** Dashes and underscores are one in names of modules. */
const nameOf = (text: string): string => text.replaceAll('-', '_');

/**
 * The modules `wanted` and all they need, each behind those it needs. One that is built into the kernel is
 * left out. `tree` is `lib/modules/VERSION` of the kernel's package.
 */
export async function modulesFor(
  tree: string,
  wanted: readonly string[],
  read: ReadModule,
): Promise<KernelModule[]> {
  const files = moduleFiles(tree);
  const builtIn = builtInNames(tree);
  const ordered = new Map<string, KernelModule>();
  const visit = async (name: string): Promise<void> => {
    if (ordered.has(name) || builtIn.has(name)) return;
    const file = files.get(name);
    if (file === undefined) {
      throw new DxpuError('not_found', `the kernel in ${tree} has no module ${name}`);
    }
    const bytes = await read(file);
    for (const needed of neededModules(bytes)) await visit(needed);
    ordered.set(name, { name, bytes });
  };
  for (const name of wanted) await visit(nameOf(name));
  return [...ordered.values()];
}

/** Names in the module's own list of what it needs: `depends=` of its section `.modinfo`. */
function neededModules(bytes: Buffer): string[] {
  const begin = bytes.indexOf('\0depends=');
  if (begin < 0) return [];
  const text = bytes.subarray(begin + '\0depends='.length, bytes.indexOf(0, begin + 1));
  return text.toString('latin1').split(',').filter(Boolean).map(nameOf);
}

function moduleFiles(tree: string): Map<string, string> {
  const files = new Map<string, string>();
  for (const entry of readdirSync(tree, { recursive: true, withFileTypes: true })) {
    const match = /^(.+)\.ko(?:\.xz)?$/.exec(entry.name);
    if (match === null || !entry.isFile()) continue;
    files.set(nameOf(match[1] ?? ''), path.join(entry.parentPath, entry.name));
  }
  return files;
}

function builtInNames(tree: string): Set<string> {
  const text = readFileSync(path.join(tree, 'modules.builtin'), 'utf8');
  return new Set(text.split('\n').map((line) => nameOf(path.basename(line, '.ko'))));
}
