/**
 * A virtual downstream port: the slot a GPU can appear behind. To host software it is a bridge on
 * bus 0 with a hot-plug slot, whose windows were set aside at boot.
 */
import { assert } from '#base/assert';

export interface VirtualPortOptions {
  /** Bus behind the port, 1 to 255, unique. */
  readonly secondaryBus: number;
  /** Below 4 GiB, base and size multiples of 1 MiB. */
  readonly nonPrefetchableBase: number;
  readonly nonPrefetchableBytes: number;
  /** 64 bit, base and size multiples of 1 MiB. */
  readonly prefetchableBase: number;
  readonly prefetchableBytes: number;
}

export class VirtualPort {
  readonly virtualSlot: number;
  readonly options: VirtualPortOptions;
  /** The port's own bus, device and function: device `virtualSlot + 1` of bus 0. */
  readonly bdf: number;
  linkActive = false;

  constructor(virtualSlot: number, options: VirtualPortOptions) {
    assert(virtualSlot >= 0 && virtualSlot < 31, 'a root complex has room for 31 ports');
    this.virtualSlot = virtualSlot;
    this.options = options;
    this.bdf = (virtualSlot + 1) << 3;
  }
}
