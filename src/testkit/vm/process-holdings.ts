/** What a process holds of the system, to compare: nothing may be left of what is over. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface Holdings {
  /** How many open files of each kind: `socket`, or what the file is called. */
  readonly files: Readonly<Record<string, number>>;
  /** How many mappings of each file; those of no file come and go with the heap. */
  readonly mappings: Readonly<Record<string, number>>;
  readonly children: number;
}

/** Of a process that lives. */
export function holdingsOf(pid: number): Holdings {
  return {
    files: counted(openFiles(pid)),
    mappings: counted(mappings(pid).filter((name) => name.startsWith('/'))),
    children: childrenOf(pid),
  };
}

/** How many mappings there are of any kind. */
export function mappingCount(pid: number): number {
  return mappings(pid).length;
}

/** The sockets in a folder and below it. */
export function socketFiles(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isSocket())
    .map(({ name }) => name)
    .sort();
}

function openFiles(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((fd) => {
    try {
      return readlinkSync(`${folder}/${fd}`).replace(/:\[\d+\]$/, '');
    } catch {
      return []; // It was closed between the two looks.
    }
  });
}

/** proc(5): the name is the sixth word of a line, and may have spaces. */
function mappings(pid: number): string[] {
  const lines = readFileSync(`/proc/${pid}/maps`, 'utf8').trim().split('\n');
  return lines.map((line) => line.split(/\s+/).slice(5).join(' '));
}

function childrenOf(pid: number): number {
  let count = 0;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const parent = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1];
      if (Number(parent) === pid) count++;
    } catch {
      // It has ended meanwhile.
    }
  }
  return count;
}

function counted(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names.toSorted()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
