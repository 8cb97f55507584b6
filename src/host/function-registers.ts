/**
 * Registers of a function that several parts touch (PCIe 5.0 base, 7.5.1, 7.5.3 and 7.7.1), as host software
 * knows them.
 */
export const VENDOR_ID = 0x00;
export const COMMAND = 0x04;
/** Alone: neither memory nor bus mastering, and no INTx. */
export const COMMAND_INTX_DISABLE = 1 << 10;
export const BASE_ADDRESS_0 = 0x10;
export const BAR_COUNT = 6;

/** Byte enables. The upper half of Command and of Device Control are status bits that a write would clear. */
export const LOWER_HALF = 3;
export const UPPER_HALF = 12;

export const CAPABILITY_MSI = 0x05;
export const CAPABILITY_PCIE = 0x10;

/** Of the PCI Express capability. */
export const DEVICE_CAPABILITIES = 0x04;
export const DEVICE_CONTROL = 0x08;

const MSI_64_BIT = 1 << 23;

/** What the first register of an MSI capability says. */
export function msiShape(header: number): {
  /** That the function asks for. */
  readonly vectors: number;
  readonly is64Bit: boolean;
  /** Of the message data, from the capability on. */
  readonly dataOffset: number;
} {
  const is64Bit = (header & MSI_64_BIT) !== 0;
  // Values 6 and 7 of Multiple Message Capable are reserved.
  const vectors = 1 << Math.min(5, (header >>> 17) & 7);
  return { vectors, is64Bit, dataOffset: is64Bit ? 12 : 8 };
}
