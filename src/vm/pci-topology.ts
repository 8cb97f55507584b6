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

interface PciDevice {
  readonly qdev_id?: unknown;
  readonly pci_bridge?: {
    readonly bus?: {
      readonly secondary?: unknown;
      readonly memory_range?: { readonly base?: unknown; readonly limit?: unknown };
      readonly prefetchable_range?: { readonly base?: unknown; readonly limit?: unknown };
    };
    readonly devices?: unknown;
  };
}

const MIB = 2 ** 20;

/** Every bridge that has a name, by it; whatever else `answer` holds is left aside. */
export function rootPortsOf(answer: unknown): Map<string, RootPort> {
  const found = new Map<string, RootPort>();
  for (const bus of listOf(answer)) collect(found, (bus as { devices?: unknown }).devices);
  return found;
}

function collect(found: Map<string, RootPort>, devices: unknown): void {
  for (const device of listOf(devices) as PciDevice[]) {
    const { qdev_id: id, pci_bridge: bridge } = device;
    if (bridge === undefined) continue;
    collect(found, bridge.devices);
    const { bus } = bridge;
    if (typeof id !== 'string' || id === '') continue;
    found.set(id, {
      id,
      secondaryBus: numberOf(bus?.secondary),
      nonPrefetchable: windowOf(bus?.memory_range),
      prefetchable: windowOf(bus?.prefetchable_range),
    });
  }
}

/** Windows are whole MiB (7.5.1.3.8); what is none, such as all zeros, is empty. */
function windowOf(range: { readonly base?: unknown; readonly limit?: unknown } = {}): PortWindow {
  const base = numberOf(range.base);
  const limit = numberOf(range.limit);
  const isWindow = limit > base && base >= MIB && base % MIB === 0 && (limit + 1) % MIB === 0;
  return isWindow ? { base, limit } : { base: MIB, limit: MIB - 1 };
}

const numberOf = (value: unknown): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
