/**
 * Secondary PCI Express extended capability (PCIe 5.0 base, 7.7.3), which every port whose link can do
 * 8 GT/s must have. There is no electrical link here: it shows one that has been equalized and has had
 * no lane errors.
 */
import type { ConfigSpace } from './config-space.ts';

export const SECONDARY_PCIE_CAPABILITY_ID = 0x0019;
export const LINK_CONTROL_3 = 0x04;
export const LANE_ERROR_STATUS = 0x08;
/** 16 bits a lane. */
export const LANE_EQUALIZATION_CONTROL = 0x0c;

/** Transmitter preset P4: no de-emphasis, no preshoot (table 8-1). */
const PRESET = 4;

/**
 * Adds the capability for a link of `lanes`; returns its offset. An upstream port (of an endpoint too)
 * shows the preset it was given, a downstream one also the preset it uses itself.
 */
export function addSecondaryPcie(config: ConfigSpace, lanes: number, downstream: boolean): number {
  const words = Math.ceil(lanes / 2);
  const bytes = LANE_EQUALIZATION_CONTROL + 4 * words;
  const offset = config.addExtendedCapability(SECONDARY_PCIE_CAPABILITY_ID, 1, bytes);
  config.define(offset + LINK_CONTROL_3, 0, 0);
  config.define(offset + LANE_ERROR_STATUS, 0, 0, 2 ** lanes - 1);
  const lane = (PRESET << 8) | (downstream ? PRESET : 0);
  for (let word = 0; word < words; word++) {
    const second = 2 * word + 1 < lanes ? lane << 16 : 0;
    config.define(offset + LANE_EQUALIZATION_CONTROL + 4 * word, lane | second, 0);
  }
  return offset;
}
