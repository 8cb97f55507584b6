/**
 * Walks both capability lists of a function (PCIe 5.0 base, 7.5.1.1.11 and 7.6.3). The lists come
 * from the device and may be anything: a walk visits each place once and always ends.
 */
import { CAPABILITY_PCIE, COMMAND } from './function-registers.ts';
import { configRead } from './host-operations.ts';
import type { PciCapability } from './pci-function.ts';
import type { SoftHost } from './root-complex.ts';
import type { Task } from './task.ts';

const CAPABILITIES_POINTER = 0x34;
const STATUS_CAPABILITIES_LIST = 1 << 20;
const FIRST_CAPABILITY = 0x40;
const FIRST_EXTENDED = 0x100;

/** The capabilities in list order. A list that loops or leaves its space is cut there. */
export function* walkCapabilities(host: SoftHost, bdf: number): Task<PciCapability[]> {
  const found: PciCapability[] = [];
  const status = yield* configRead(host, bdf, COMMAND);
  if ((status & STATUS_CAPABILITIES_LIST) === 0) return found;
  const seen = new Set<number>();
  let offset = (yield* configRead(host, bdf, CAPABILITIES_POINTER)) & 0xfc;
  while (offset >= FIRST_CAPABILITY && !seen.has(offset)) {
    seen.add(offset);
    const header = yield* configRead(host, bdf, offset);
    if (header === 0xffff_ffff) return found;
    const id = header & 0xff;
    // The PCI Express capability's version is its low nibble; others have none.
    const version = id === CAPABILITY_PCIE ? (header >>> 16) & 15 : 0;
    found.push({ id, offset, extended: false, version });
    offset = (header >>> 8) & 0xfc;
  }
  if (!found.some((capability) => capability.id === CAPABILITY_PCIE)) return found;
  offset = FIRST_EXTENDED;
  while (offset >= FIRST_EXTENDED && !seen.has(offset)) {
    seen.add(offset);
    const header = yield* configRead(host, bdf, offset);
    // An empty list is a null capability at the start (7.6.3).
    if (header === 0 || header === 0xffff_ffff) break;
    found.push({
      id: header & 0xffff,
      offset,
      extended: true,
      version: (header >>> 16) & 15,
    });
    offset = (header >>> 20) & 0xffc;
  }
  return found;
}

/** The first of this ID that is not an extended one. */
export function standardCapability(
  capabilities: readonly PciCapability[],
  id: number,
): PciCapability | undefined {
  return capabilities.find((one) => !one.extended && one.id === id);
}
