/** The bus of a soft host as text, in the manner of lspci. */
import { formatBdf } from '#base/units';
import { formatBytes } from './bar-assignment.ts';
import type { HotPlug } from './hot-plug.ts';
import type { PciBar, PciCapability, PciFunction } from './pci-function.ts';
import type { SoftHost } from './root-complex.ts';
import { PORT_DEVICE_ID, PORT_VENDOR_ID, type VirtualPort } from './virtual-port.ts';

const CLASS_NAMES: Readonly<Record<number, string>> = {
  0x0300: 'VGA compatible controller',
  0x0302: '3D controller',
  0x0380: 'Display controller',
  0x0604: 'PCI bridge',
  0x1200: 'Processing accelerator',
};

const CAPABILITY_NAMES: Readonly<Record<number, string>> = {
  0x01: 'Power Management',
  0x05: 'MSI',
  0x09: 'Vendor Specific',
  0x10: 'PCI Express',
  0x11: 'MSI-X',
};

const EXTENDED_NAMES: Readonly<Record<number, string>> = {
  0x0001: 'Advanced Error Reporting',
  0x0003: 'Device Serial Number',
  0x000b: 'Vendor-Specific Extended',
};

export interface ListingOptions {
  /** Windows, BARs and capabilities too. */
  readonly verbose?: boolean;
}

/** A line per port and per function, ports first; a slot whose function is not set up says why. */
export function formatListing(
  host: SoftHost,
  hotPlug: HotPlug,
  options: ListingOptions = {},
): string {
  const verbose = options.verbose ?? false;
  const lines: string[] = [];
  for (const port of host.ports) {
    const state = port.linkActive ? 'link up' : 'empty';
    lines.push(
      headline(port.bdf, 0x060400, PORT_VENDOR_ID, PORT_DEVICE_ID, 1) +
        ` slot ${port.virtualSlot}, ${state}`,
    );
    if (verbose) lines.push(...portDetails(port));
    const problem = hotPlug.problemAt(port.virtualSlot);
    if (problem !== undefined) lines.push(`\tNot usable: ${problem.message}`);
  }
  for (const fn of hotPlug.functions()) {
    lines.push(headline(fn.bdf, fn.classCode, fn.vendorId, fn.deviceId, fn.revision));
    if (verbose) lines.push(...functionDetails(fn));
  }
  return `${lines.join('\n')}\n`;
}

function headline(
  bdf: number,
  classCode: number,
  vendorId: number,
  deviceId: number,
  revision: number,
): string {
  const name = CLASS_NAMES[classCode >>> 8] ?? 'Unknown class';
  return (
    `${formatBdf(bdf)} ${name} [${hex(classCode >>> 8, 4)}]: ` +
    `Device [${hex(vendorId, 4)}:${hex(deviceId, 4)}] (rev ${hex(revision, 2)})`
  );
}

function portDetails(port: VirtualPort): string[] {
  const { secondaryBus, nonPrefetchableBase, prefetchableBase } = port.options;
  const { nonPrefetchableBytes, prefetchableBytes } = port.options;
  const bus = hex(secondaryBus, 2);
  return [
    `\tBus: primary=00, secondary=${bus}, subordinate=${bus}`,
    `\tMemory behind bridge: ${window(nonPrefetchableBase, nonPrefetchableBytes, 8)}`,
    `\tPrefetchable memory behind bridge: ${window(prefetchableBase, prefetchableBytes, 16)}`,
  ];
}

function window(base: number, bytes: number, digits: number): string {
  if (bytes === 0) return '[none]';
  return `${hex(base, digits)}-${hex(base + bytes - 1, digits)} [size=${formatBytes(bytes)}]`;
}

function functionDetails(fn: PciFunction): string[] {
  return [
    `\tSubsystem: Device [${hex(fn.subsystemVendorId, 4)}:${hex(fn.subsystemId, 4)}]`,
    `\tMax payload ${fn.maxPayloadBytes} bytes, max read request ${fn.maxReadRequestBytes} bytes`,
    ...fn.bars.map(barLine),
    ...fn.capabilities.map((capability) => capabilityLine(fn, capability)),
  ];
}

function barLine(bar: PciBar): string {
  const width = bar.kind === 'mem64' ? '64-bit' : '32-bit';
  const prefetchable = bar.prefetchable ? 'prefetchable' : 'non-prefetchable';
  return (
    `\tRegion ${bar.index}: Memory at ${hex(bar.address, bar.kind === 'mem64' ? 16 : 8)} ` +
    `(${width}, ${prefetchable}) [size=${formatBytes(bar.sizeBytes)}]`
  );
}

function capabilityLine(fn: PciFunction, capability: PciCapability): string {
  const { id, offset, extended, version } = capability;
  const names = extended ? EXTENDED_NAMES : CAPABILITY_NAMES;
  const name = names[id] ?? `unknown ${hex(id, extended ? 4 : 2)}`;
  const place = extended ? `${hex(offset, 3)} v${version}` : hex(offset, 2);
  const { msi } = fn;
  const detail =
    msi !== undefined && !extended && msi.offset === offset
      ? `: enabled, ${msi.vectors} vector(s), address ${hex(msi.address, 8)} data ${hex(msi.data, 4)}`
      : '';
  return `\tCapabilities: [${place}] ${name}${detail}`;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
