/** What every device model of this folder offers beside being a `Device`. */
import type { BarSpec } from '#pcie/bar';
import type { Device } from '#pcie/device';
import type { Screenshot } from './screenshot.ts';

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
