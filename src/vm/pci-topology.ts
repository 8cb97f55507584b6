/** Root ports as QEMU shows them (QMP `query-pci`): bus numbers and windows as the guest has set them. */

export interface PortWindow {
  readonly base: number;
  /** Below `base` while the window is empty. */
  readonly limit: number;
}

export interface RootPort {
  readonly id: string;
  /** 0 while the guest has given none. */
  readonly secondaryBus: number;
  readonly nonPrefetchable: PortWindow;
  readonly prefetchable: PortWindow;
}

const MIB = 2 ** 20;

/** Every bridge that has a name, by it; whatever else `answer` holds is left aside. */
export function rootPortsOf(answer: unknown): Map<string, RootPort> {
  const found = new Map<string, RootPort>();
  for (const bus of listOf(answer)) collect(found, fieldOf(bus, 'devices'));
  return found;
}

/** Each bridge has a bus of its own below it. */
const MOST_BUSES = 256;

function collect(found: Map<string, RootPort>, devices: unknown, depth = 1): void {
  if (depth > MOST_BUSES) return;
  for (const device of listOf(devices)) {
    const bridge = fieldOf(device, 'pci_bridge');
    if (typeof bridge !== 'object' || bridge === null) continue;
    collect(found, fieldOf(bridge, 'devices'), depth + 1);
    const id = fieldOf(device, 'qdev_id');
    const bus = fieldOf(bridge, 'bus');
    if (typeof id !== 'string' || id === '') continue;
    found.set(id, {
      id,
      secondaryBus: numberOf(fieldOf(bus, 'secondary')),
      nonPrefetchable: windowOf(fieldOf(bus, 'memory_range')),
      prefetchable: windowOf(fieldOf(bus, 'prefetchable_range')),
    });
  }
}

/** Windows are whole MiB (7.5.1.3.8); what is none, such as all zeros, is empty. */
function windowOf(range: unknown): PortWindow {
  const base = numberOf(fieldOf(range, 'base'));
  const limit = numberOf(fieldOf(range, 'limit'));
  const isWindow = limit > base && base >= MIB && base % MIB === 0 && (limit + 1) % MIB === 0;
  return isWindow ? { base, limit } : { base: MIB, limit: MIB - 1 };
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null
    ? (value as Record<string, unknown>)[name]
    : undefined;

const numberOf = (value: unknown): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
