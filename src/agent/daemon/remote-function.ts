/**
 * What a function is that another process serves over vfio-user, made of how its server describes it and of
 * its configuration space after a reset. Every claim is checked: what cannot be is a reason, not a function.
 */
import { BAR_COUNT, barRegister, type BarSpec } from '#pcie/bar';
import { CONFIG_SPACE_BYTES, INTERRUPT_LINE, VENDOR_ID } from '#pcie/config-space';
import { MSI_CAPABILITY_ID, MSI_MULTIPLE_MESSAGE_CAPABLE_SHIFT } from '#pcie/msi';
import { PCIE_CAPABILITY_ID } from '#pcie/pcie-capability';
import type { DeviceDescription } from '#vfio-user/client-options';
import { IRQ_INTX, IRQ_MSI } from '#vfio-user/irq-info';
import { REGION_CONFIG, type RegionInfo } from '#vfio-user/region-info';
import { CapabilityView } from './capability-view.ts';

/** Of conventional PCI: all that a function may have without extended capabilities. */
const SMALLEST_CONFIG_BYTES = 256;
const TYPE_REGISTER = 0x0c;
const HEADER_TYPE_SHIFT = 16;
const MULTI_FUNCTION = 0x80 << HEADER_TYPE_SHIFT;
const ROM_BAR = 0x30;
const SUBSYSTEM = 0x2c;
const CLASS_AND_REVISION = 0x08;
const BAR_IO = 1;
const LARGEST_32_BIT = 2 ** 31;
const LARGEST_64_BIT = 2 ** 40;

export interface RemoteBar extends BarSpec {
  readonly read: boolean;
  readonly write: boolean;
}

export interface RemoteMsi {
  readonly offset: number;
  /** Message Control, in bits 31:16. */
  readonly control: number;
  /** A power of two: as many as the function has interrupts for. */
  readonly vectors: number;
}

export interface RemoteFunction {
  /** `VVVV:DDDD`, hexadecimal. */
  readonly ids: string;
  readonly bars: readonly RemoteBar[];
  readonly configBytes: number;
  /** Its configuration space after a reset, padded with zeros to 4096 bytes. */
  readonly config: DataView;
  readonly view: CapabilityView;
  readonly msi: RemoteMsi | undefined;
  /** Of the PCI Express capability; 0 without. */
  readonly pcie: number;
  readonly hasPin: boolean;
  /** All that must be the same when it comes back. */
  readonly fingerprint: Readonly<Record<string, string>>;
}

/** How many bytes of configuration space to read, or what is wrong with it. */
export function configBytesOf(description: DeviceDescription): number | string {
  const region = description.regions[REGION_CONFIG];
  const sizeBytes = region?.sizeBytes ?? 0;
  if (sizeBytes < SMALLEST_CONFIG_BYTES) {
    return `its configuration space has ${sizeBytes} bytes; a PCI function has ${SMALLEST_CONFIG_BYTES} at least`;
  }
  if (region?.read !== true || !region.write) {
    return 'its configuration space cannot be read and written';
  }
  if (!description.resettable) {
    return 'it takes no DEVICE_RESET, so it could not be cleaned between two users';
  }
  // There is nothing between the two (7.2.1), and extended capabilities are hidden in a whole space alone.
  return sizeBytes < CONFIG_SPACE_BYTES ? SMALLEST_CONFIG_BYTES : CONFIG_SPACE_BYTES;
}

/** `config` has the bytes that `configBytesOf` asked for. */
export function remoteFunction(
  description: DeviceDescription,
  config: Uint8Array,
): RemoteFunction | string {
  const bytes = new Uint8Array(CONFIG_SPACE_BYTES);
  bytes.set(config);
  const view = new DataView(bytes.buffer);
  const read32 = (register: number): number => view.getUint32(register, true);
  const vendor = read32(VENDOR_ID) & 0xffff;
  if (vendor === 0 || vendor === 0xffff) return `there is no function: vendor ID ${hex(vendor)}`;
  const type = (read32(TYPE_REGISTER) >>> HEADER_TYPE_SHIFT) & 0x7f;
  if (type !== 0) return `its header is of type ${type}: a box takes devices, of type 0, alone`;
  const bars = barsOf(description.regions, read32);
  if (typeof bars === 'string') return bars;

  const irqs = (index: number): number => description.irqs[index] ?? 0;
  const hidden = new Set(irqs(IRQ_MSI) === 0 ? [MSI_CAPABILITY_ID] : []);
  const capabilities = CapabilityView.of(read32, config.length, hidden);
  if (typeof capabilities === 'string') return capabilities;
  const pin = (read32(INTERRUPT_LINE) >>> 8) & 0xff;
  const hasPin = irqs(IRQ_INTX) > 0 && pin >= 1 && pin <= 4;
  // One function, which uses INTA, and has no ROM to boot from.
  capabilities.replace(INTERRUPT_LINE, 0xff00, hasPin ? 0x0100 : 0);
  capabilities.replace(TYPE_REGISTER, MULTI_FUNCTION, 0);
  capabilities.hide(ROM_BAR, 4);
  const msi = msiOf(capabilities, read32, irqs(IRQ_MSI));
  const pcie = capabilities.find(PCIE_CAPABILITY_ID);
  return {
    ids: `${hex(vendor)}:${hex(read32(VENDOR_ID) >>> 16)}`,
    bars,
    configBytes: config.length,
    config: view,
    view: capabilities,
    msi,
    pcie,
    hasPin,
    fingerprint: {
      'its ID': `${hex(vendor)}:${hex(read32(VENDOR_ID) >>> 16)}`,
      'its class and revision': read32(CLASS_AND_REVISION).toString(16),
      'its subsystem': read32(SUBSYSTEM).toString(16),
      'the size of its configuration space': `${config.length}`,
      'what it has of BARs': bars.map(barText).join(', ') || 'none',
      'the place of its PCI Express capability': `${pcie}`,
      'what it has of MSI': msi === undefined ? 'none' : `${msi.vectors} at ${hex(msi.offset)}`,
      'what it has of INTx': `${hasPin}`,
    },
  };
}

/** What is not as it was: a device that changes is another one, and the pool has planned with the first. */
export function changeOf(before: RemoteFunction, after: RemoteFunction): string | undefined {
  for (const [what, was] of Object.entries(before.fingerprint)) {
    const is = after.fingerprint[what];
    if (is !== was) return `${what} was ${was} and is ${is} now; restart the box to take it so`;
  }
  return undefined;
}

function barsOf(
  regions: readonly RegionInfo[],
  read32: (register: number) => number,
): RemoteBar[] | string {
  const bars: RemoteBar[] = [];
  for (let index = 0; index < BAR_COUNT; index++) {
    const region = regions[index];
    if (region === undefined || region.sizeBytes === 0) continue;
    const { sizeBytes } = region;
    const low = read32(barRegister(index));
    // Ports are not for PCI Express: such a function works without (7.5.1.2.1), and shows none here.
    if ((low & BAR_IO) !== 0) continue;
    const type = (low >>> 1) & 3;
    if (type !== 0 && type !== 2) return `BAR ${index} is of type ${type}, which there is not`;
    const is64Bit = type === 2;
    const largest = is64Bit ? LARGEST_64_BIT : LARGEST_32_BIT;
    if (sizeBytes < 16 || sizeBytes > largest || !Number.isInteger(Math.log2(sizeBytes))) {
      return `BAR ${index} has ${sizeBytes} bytes, which is no power of two from 16 to ${largest}`;
    }
    const upper = regions[index + 1]?.sizeBytes ?? 0;
    if (is64Bit && (index === BAR_COUNT - 1 || upper !== 0)) {
      return `BAR ${index} is of 64 bits, and its upper half is not there`;
    }
    bars.push({
      index,
      sizeBytes,
      is64Bit,
      prefetchable: (low & 8) !== 0,
      read: region.read,
      write: region.write,
    });
  }
  return bars;
}

function msiOf(
  view: CapabilityView,
  read32: (register: number) => number,
  interrupts: number,
): RemoteMsi | undefined {
  const offset = view.find(MSI_CAPABILITY_ID);
  if (offset === 0) return undefined;
  const capable = (read32(offset) >>> MSI_MULTIPLE_MESSAGE_CAPABLE_SHIFT) & 7;
  const exponent = Math.min(capable, 5, Math.floor(Math.log2(interrupts)));
  const field = 7 << MSI_MULTIPLE_MESSAGE_CAPABLE_SHIFT;
  view.replace(offset, field, exponent << MSI_MULTIPLE_MESSAGE_CAPABLE_SHIFT);
  return { offset, control: view.show(offset, read32(offset)), vectors: 2 ** exponent };
}

function barText({ index, sizeBytes, is64Bit, prefetchable, read, write }: RemoteBar): string {
  const kind = `${is64Bit ? 64 : 32} bit${prefetchable ? ', prefetchable' : ''}`;
  const access = read && write ? '' : ` (${read ? 'read' : 'write'} only)`;
  return `BAR ${index} of ${sizeBytes} bytes, ${kind}${access}`;
}

function hex(value: number): string {
  return value.toString(16).padStart(4, '0');
}
