/** A PCI function as the guest's sysfs shows it, as a text to compare. */
import type { TestVm } from './test-vm.ts';

const DEVICES = '/sys/bus/pci/devices';

/** PCI Code and ID Assignment Specification: capability and extended capability IDs. */
const CAPABILITIES: Readonly<Record<number, string>> = {
  0x01: 'power management',
  0x05: 'MSI',
  0x09: 'vendor specific',
  0x10: 'PCI Express',
  0x11: 'MSI-X',
};
const EXTENDED: Readonly<Record<number, string>> = {
  0x0001: 'advanced error reporting',
  0x0003: 'device serial number',
  0x0019: 'secondary PCI Express',
};
/** linux/ioport.h. */
const MEMORY = 0x200;
const PREFETCHABLE = 0x2000;
const IS_64_BIT = 0x10_0000;
const BARS = 6;

/** IDs, class, BARs with their sizes, and the lists of capabilities. */
export async function functionText(vm: TestVm, bdf: string): Promise<string> {
  const names = ['vendor', 'device', 'subsystem_vendor', 'subsystem_device', 'class', 'revision'];
  const folder = `${DEVICES}/${bdf}`;
  const [ids = '', resources = '', config = ''] = (
    await vm.shell(
      `cd ${folder} && cat ${names.join(' ')} && echo -- && cat resource && echo -- && ` +
        `hexdump -v -e '1/1 "%02x"' config`,
    )
  ).split('--\n');
  const [vendor, device, subVendor, subDevice, classCode, revision] = ids
    .split('\n')
    .map((text) => text.replace('0x', ''));
  return [
    `function    ${vendor}:${device} revision ${revision}`,
    `subsystem   ${subVendor}:${subDevice}`,
    `class       ${classCode}`,
    ...barLines(resources.split('\n')),
    ...capabilityLines(Buffer.from(config.trim(), 'hex')),
    '',
  ].join('\n');
}

function barLines(resources: readonly string[]): string[] {
  return resources.slice(0, BARS).flatMap((line, index) => {
    const [begin = 0, end = 0, flags = 0] = line.split(' ').map(Number);
    if ((flags & MEMORY) === 0) return [];
    const width = (flags & IS_64_BIT) === 0 ? '32 bit' : '64 bit';
    const prefetchable = (flags & PREFETCHABLE) === 0 ? '' : ', prefetchable';
    // An address of 0 is one that was not assigned.
    const assigned = begin === 0 ? ', not assigned' : '';
    const kib = (end - begin + 1) / 1024;
    return [`BAR${index}        ${width}${prefetchable}, ${kib} KiB${assigned}`];
  });
}

function capabilityLines(config: Buffer): string[] {
  const lines: string[] = [];
  const seen = new Set<number>();
  for (
    let at = config.readUInt8(0x34);
    at >= 0x40 && !seen.has(at);
    at = config.readUInt8(at + 1)
  ) {
    seen.add(at);
    lines.push(`capability  ${named(CAPABILITIES, config.readUInt8(at))}`);
  }
  for (let at = 0x100; at >= 0x100 && at + 4 <= config.length && !seen.has(at); ) {
    seen.add(at);
    const header = config.readUInt32LE(at);
    if (header === 0) break;
    lines.push(`extended    ${named(EXTENDED, header & 0xffff)}`);
    at = header >>> 20;
  }
  return lines;
}

const named = (names: Readonly<Record<number, string>>, id: number): string =>
  names[id] ?? `id 0x${id.toString(16)}`;
