/**
 * Takes the MSI-X capability out of the list that a client sees. QEMU 11.1.3 aborts when a device with
 * MSI-X is unplugged, so a device that is to be removable must not show it.
 *
 * The pointer to the capability is read as a pointer past it, the capability itself as zeros, and
 * writes to it are dropped (PCI 3.0, 6.7; MSI-X has 12 bytes, 6.8.2).
 */
const STATUS_CAPABILITIES_LIST = 0x10;
const STATUS = 0x06;
const CAPABILITIES_POINTER = 0x34;
const MSIX_ID = 0x11;
const MSIX_BYTES = 12;
/** As many as fit between 0x40 and 0x100, four bytes each: a list longer than that goes in a circle. */
const MAX_CAPABILITIES = 48;

export class HiddenMsix {
  readonly #link: number;
  readonly #next: number;
  readonly #at: number;

  private constructor(link: number, next: number, at: number) {
    this.#link = link;
    this.#next = next;
    this.#at = at;
  }

  /** For a function whose first 256 bytes of configuration space are `config`; undefined without MSI-X. */
  static find(config: Uint8Array): HiddenMsix | undefined {
    if (((config[STATUS] ?? 0) & STATUS_CAPABILITIES_LIST) === 0) return undefined;
    let link = CAPABILITIES_POINTER;
    for (let seen = 0; seen < MAX_CAPABILITIES; seen++) {
      const at = (config[link] ?? 0) & 0xfc;
      if (at < 0x40) return undefined;
      if (config[at] === MSIX_ID) return new HiddenMsix(link, (config[at + 1] ?? 0) & 0xfc, at);
      link = at + 1;
    }
    return undefined;
  }

  /** Corrects `bytes` that were read at `offset` of the configuration space. */
  patch(offset: number, bytes: Uint8Array): void {
    const link = this.#link - offset;
    if (link >= 0 && link < bytes.length) bytes[link] = this.#next;
    const from = Math.max(0, this.#at - offset);
    const to = Math.min(bytes.length, this.#at + MSIX_BYTES - offset);
    if (from < to) bytes.fill(0, from, to);
  }

  /** Whether a write of `count` bytes at `offset` touches the capability. */
  covers(offset: number, count: number): boolean {
    return offset < this.#at + MSIX_BYTES && this.#at < offset + count;
  }
}
