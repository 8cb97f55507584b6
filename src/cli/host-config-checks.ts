/** Checks of a host's configuration across its fields: windows, memory, what a running host keeps. */
import { INTERRUPT_BASE, INTERRUPT_LIMIT } from '#fabric/host-table';
import type { FieldPath } from './config-file.ts';
import { socketPathProblem } from './socket-path.ts';

/** Above this a single array of bytes cannot be had everywhere. */
const MAX_MEMORY_BYTES = 2 ** 32;

/** A root complex has no room for more. */
const MAX_SLOTS = 31;

export type Range = { readonly base: number; readonly size: number };

/** A virtual slot as its file has it; the table's rows take bus and windows from here. */
export interface SlotWindows {
  readonly slot: number;
  readonly secondaryBus: number;
  readonly nonPrefetchable: Range;
  readonly prefetchable: Range;
}

/** What a host was started with and keeps until it ends. */
interface RunningHost {
  readonly id: string;
  readonly paths: readonly { readonly name: string; readonly box: string }[];
  readonly slots: readonly SlotWindows[];
}

interface RowKeys {
  readonly virtualSlot: number;
  readonly box: string;
  readonly path: string;
}

const INTERRUPTS: Range = {
  base: INTERRUPT_BASE,
  size: INTERRUPT_LIMIT - INTERRUPT_BASE + 1,
};

const hex = (value: number): string => `0x${value.toString(16)}`;
const rangeText = ({ base, size }: Range): string => `${hex(base)}-${hex(base + size - 1)}`;

/** A row is built from its slot and goes over its path: both must be those the host runs with. */
export function checkRunning(
  inForce: RunningHost,
  parsed: { readonly slots: readonly SlotWindows[]; readonly table: readonly RowKeys[] },
  slotIndex: ReadonlyMap<number, number>,
  complain: (at: FieldPath, message: string) => void,
): void {
  const wayOut = `restart the host (dxpu stop --process host-${inForce.id}, then dxpu host)`;
  const checked = new Set<number>();
  for (const [index, row] of parsed.table.entries()) {
    const path = inForce.paths.find((one) => one.box === row.box && one.name === row.path);
    if (path === undefined) {
      complain(
        ['table', index, 'path'],
        `path ${row.path} to box ${row.box} is not one the host was started with: ${wayOut}`,
      );
    }
    const at = slotIndex.get(row.virtualSlot);
    const slot = at === undefined ? undefined : parsed.slots[at];
    if (at === undefined || slot === undefined || checked.has(row.virtualSlot)) continue;
    checked.add(row.virtualSlot);
    const before = inForce.slots.find((one) => one.slot === row.virtualSlot);
    if (before === undefined) {
      complain(
        ['table', index, 'virtualSlot'],
        `virtual slot ${row.virtualSlot} is not one the host was started with: ${wayOut}`,
      );
      continue;
    }
    const keeps = `a running host keeps the windows of slot ${slot.slot}: ${wayOut}, or put back`;
    if (before.secondaryBus !== slot.secondaryBus) {
      complain(['slots', at, 'secondaryBus'], `${keeps} bus ${before.secondaryBus}`);
    }
    for (const kind of ['nonPrefetchable', 'prefetchable'] as const) {
      if (rangeText(before[kind]) === rangeText(slot[kind])) continue;
      complain(['slots', at, kind], `${keeps} ${rangeText(before[kind])}`);
    }
  }
}

/** `source` is where the VM is written; `undefined` for one of the command line, which stands for the file. */
export function checkVm(
  { qmp, rootPorts }: { readonly qmp: string; readonly rootPorts: readonly string[] },
  source: { has(at: FieldPath): boolean } | undefined,
  complain: (at: FieldPath, message: string) => void,
): void {
  const at = (...rest: (string | number)[]): FieldPath =>
    source === undefined ? [] : ['vm', ...rest];
  const tooLong = socketPathProblem(qmp);
  if (tooLong !== undefined) complain(at('qmp'), `QMP socket: ${tooLong}: choose a shorter path`);
  if (rootPorts.length === 0) complain(at('rootPorts'), 'needs at least one root port');
  if (rootPorts.length > MAX_SLOTS) {
    complain(
      at('rootPorts'),
      `a host has room for ${MAX_SLOTS} virtual slots, not ${rootPorts.length}`,
    );
  }
  for (const [index, name] of rootPorts.entries()) {
    if (rootPorts.indexOf(name) === index) continue;
    complain(
      at('rootPorts', index),
      `root port ${name} is twice; each virtual slot needs one of its own`,
    );
  }
  for (const field of ['slots', 'memory']) {
    if (source?.has([field]) === true) {
      complain([field], `a host with vm has no ${field} of its own`);
    }
  }
}

export function checkWindows(
  slots: readonly SlotWindows[],
  complain: (at: FieldPath, message: string) => void,
): void {
  const seen: { range: Range; name: string }[] = [];
  const buses = new Map<number, number>();
  for (const [index, slot] of slots.entries()) {
    const other = buses.get(slot.secondaryBus);
    if (other !== undefined) {
      complain(
        ['slots', index, 'secondaryBus'],
        `bus ${slot.secondaryBus} is that of slot ${other}; each needs one of its own`,
      );
    }
    buses.set(slot.secondaryBus, slot.slot);
    for (const kind of ['nonPrefetchable', 'prefetchable'] as const) {
      const range = slot[kind];
      const clash = seen.find((one) => overlap(one.range, range));
      if (overlap(range, INTERRUPTS)) {
        complain(
          ['slots', index, kind],
          `${rangeText(range)} covers ${rangeText(INTERRUPTS)}, where interrupts go`,
        );
      }
      if (clash !== undefined) {
        complain(['slots', index, kind], `overlaps the ${clash.name}; give each its own addresses`);
      }
      seen.push({ range, name: `${kind} window of slot ${slot.slot}` });
    }
  }
}

export function checkMemory(
  memory: readonly Range[],
  isGiven: boolean,
  slots: readonly SlotWindows[],
  complain: (at: FieldPath, message: string) => void,
): void {
  for (const [index, region] of memory.entries()) {
    for (const part of ['base', 'size'] as const) {
      if (region[part] % 4096 !== 0) complain(['memory', index, part], 'must be 4 KiB aligned');
    }
    if (region.size === 0 || region.size > MAX_MEMORY_BYTES) {
      complain(['memory', index, 'size'], 'must be from 4KiB to 4GiB');
      continue;
    }
    if (!Number.isSafeInteger(region.base + region.size)) {
      complain(['memory', index, 'base'], 'the region ends above 2^53');
    }
    if (overlap(region, INTERRUPTS)) {
      complain(
        ['memory', index],
        `${rangeText(region)} covers ${rangeText(INTERRUPTS)}, where interrupts go: make two of it`,
      );
    }
    const other = memory.slice(0, index).find((one) => overlap(one, region));
    if (other !== undefined) {
      complain(['memory', index], `overlaps the region ${rangeText(other)} above it`);
    }
    for (const [at, slot] of slots.entries()) {
      for (const kind of ['nonPrefetchable', 'prefetchable'] as const) {
        if (!overlap(slot[kind], region)) continue;
        // What the file does not say cannot be shown there.
        if (isGiven) {
          complain(
            ['memory', index],
            `overlaps a window of slot ${slot.slot}: ${kind} ${rangeText(slot[kind])}`,
          );
        } else {
          complain(
            ['slots', at, kind],
            `${rangeText(slot[kind])} overlaps the host's memory, ${rangeText(region)} where the ` +
              'file has no memory: move the window, or write another memory',
          );
        }
      }
    }
  }
}

function overlap(a: Range, b: Range): boolean {
  return a.base < b.base + b.size && b.base < a.base + a.size;
}
