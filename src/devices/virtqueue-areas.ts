/** Where the three areas of a split virtqueue are (virtio 1.2, 2.7), and what is where in them. */
import { HOST_ADDRESS_END } from './device-model.ts';
import { DESC_BYTES } from './virtqueue-chain.ts';

export class VirtqueueAreas {
  // As the driver has set them.
  descLo = 0;
  descHi = 0;
  driverLo = 0;
  driverHi = 0;
  deviceLo = 0;
  deviceHi = 0;
  #size = 0;
  #desc = 0;
  #driver = 0;
  #device = 0;

  clear(): void {
    this.descLo = 0;
    this.descHi = 0;
    this.driverLo = 0;
    this.driverHi = 0;
    this.deviceLo = 0;
    this.deviceHi = 0;
  }

  /** Takes them for a queue of `size` entries. Returns what is wrong with where they are, or ''. */
  take(size: number): string {
    this.#size = size;
    this.#desc = this.descHi * 0x1_0000_0000 + this.descLo;
    this.#driver = this.driverHi * 0x1_0000_0000 + this.driverLo;
    this.#device = this.deviceHi * 0x1_0000_0000 + this.deviceLo;
    if (this.#desc % 16 !== 0 || this.#desc + DESC_BYTES * size >= HOST_ADDRESS_END) {
      return `descriptor area at 0x${this.#desc.toString(16)}`;
    }
    if (this.#driver % 2 !== 0 || this.#driver + 6 + 2 * size >= HOST_ADDRESS_END) {
      return `driver area at 0x${this.#driver.toString(16)}`;
    }
    if (this.#device % 4 !== 0 || this.#device + 6 + 8 * size >= HOST_ADDRESS_END) {
      return `device area at 0x${this.#device.toString(16)}`;
    }
    return '';
  }

  descriptor(index: number): number {
    return this.#desc + DESC_BYTES * index;
  }

  /** Of the available ring: flags and idx, then the entries, then used_event. */
  get availFlags(): number {
    return this.#driver;
  }

  availEntry(slot: number): number {
    return this.#driver + 4 + 2 * slot;
  }

  get usedEvent(): number {
    return this.availEntry(this.#size);
  }

  /** Of the used ring: flags and idx, then the entries, then avail_event. */
  get usedFlags(): number {
    return this.#device;
  }

  usedEntry(slot: number): number {
    return this.#device + 4 + 8 * slot;
  }

  get availEvent(): number {
    return this.usedEntry(this.#size);
  }
}
