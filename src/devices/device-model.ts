/** What every device model of this folder offers beside being a `Device`. */
import type { BarSpec } from '#pcie/bar';
import type { Device } from '#pcie/device';
import type { Screenshot } from './screenshot.ts';

/** Host addresses end here: those of the models are exact integers of a double. */
export const HOST_ADDRESS_END = 2 ** 53;

export interface DeviceModel extends Device {
  /** Bus, device and function as captured from the last config write. */
  readonly bdf: number;
  readonly bars: readonly BarSpec[];
  /** A config register as the host would read it, without a TLP and without effects. */
  readConfig(register: number): number;
  /** What a display shows now, or `undefined` while it shows nothing. Displays alone have it. */
  screenshot?(): Screenshot | undefined;
}

export interface DisplayModel extends DeviceModel {
  screenshot(): Screenshot | undefined;
}
