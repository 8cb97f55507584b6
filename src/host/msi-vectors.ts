/** How this host hands out MSI addresses and data: one address, and a run of vectors for each slot. */

/** Where MSI writes go: the interrupt range of the soft host is one address. */
export const MSI_ADDRESS = 0xfee0_0000;
/** A function is granted at most this many; a multiple of it is a legal base for all of them. */
export const MSI_VECTORS_PER_SLOT = 32;
const MSI_DATA_BASE = 0x4000;

/** The data of an MSI of `vector`, 0 to 31. */
export function msiDataOf(virtualSlot: number, vector: number): number {
  return MSI_DATA_BASE + virtualSlot * MSI_VECTORS_PER_SLOT + vector;
}

/** The vector that `data` means for `virtualSlot`, or −1 when it belongs to another slot or nobody. */
export function msiVectorOf(virtualSlot: number, data: number): number {
  const vector = data - msiDataOf(virtualSlot, 0);
  return vector >= 0 && vector < MSI_VECTORS_PER_SLOT ? vector : -1;
}
