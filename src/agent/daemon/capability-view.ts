/**
 * Configuration space as a host shall see it, where it is not what the device answers: bits that are replaced,
 * and capabilities that are taken out of their lists, because nothing here stands behind them.
 */
import {
  CAPABILITIES_POINTER,
  COMMAND,
  CONFIG_SPACE_BYTES,
  FIRST_CAPABILITY,
  FIRST_EXTENDED_CAPABILITY,
  STATUS_CAPABILITIES_LIST,
} from '#pcie/config-space';

/**
 * PCI Code and ID Assignment Specification. MSI-X: its table would have to be taken out of a BAR. Enhanced
 * Allocation and Resizable BAR: they change BARs without their registers. Advanced Features: a reset that
 * is not seen here.
 */
const HIDDEN = new Map([
  [0x11, 12],
  [0x13, 6],
  [0x14, 4],
]);
/** ATS, SR-IOV, MR-IOV, PRI, Resizable BAR, PASID, VF Resizable BAR: addresses and functions of other kinds. */
const HIDDEN_EXTENDED = new Set([0x0f, 0x10, 0x11, 0x13, 0x15, 0x1b, 0x24]);

interface Capability {
  readonly id: number;
  readonly at: number;
}

export class CapabilityView {
  readonly #masks = new Uint32Array(CONFIG_SPACE_BYTES / 4);
  readonly #values = new Uint32Array(CONFIG_SPACE_BYTES / 4);
  #listed: readonly Capability[] = [];

  private constructor() {}

  /**
   * Of a configuration space of `bytes` bytes. `hidden`: IDs of standard capabilities to hide beside those that
   * always are. A text says why its lists cannot be.
   */
  static of(
    read32: (register: number) => number,
    bytes: number,
    hidden: ReadonlySet<number>,
  ): CapabilityView | string {
    const view = new CapabilityView();
    const standard = standardList(read32);
    if (typeof standard === 'string') return standard;
    const isHidden = ({ id }: Capability): boolean => HIDDEN.has(id) || hidden.has(id);
    view.#listed = standard.filter((one) => !isHidden(one));
    let link = { register: CAPABILITIES_POINTER, shift: 0 };
    for (const capability of standard) {
      const { at, id } = capability;
      if (isHidden(capability)) {
        view.hide(at, HIDDEN.get(id) ?? 4);
        continue;
      }
      view.replace(link.register, 0xff << link.shift, at << link.shift);
      link = { register: at, shift: 8 };
    }
    view.replace(link.register, 0xff << link.shift, 0);
    if (bytes < CONFIG_SPACE_BYTES) return view;

    const extended = extendedList(read32);
    if (typeof extended === 'string') return extended;
    // The first is where it is: hidden, it becomes one that says nothing (ID 0).
    let last = FIRST_EXTENDED_CAPABILITY;
    for (const { at, id } of extended) {
      if (HIDDEN_EXTENDED.has(id)) {
        view.replace(at, 0xffff_ffff, 0);
        continue;
      }
      if (at !== last) view.replace(last, 0xfff0_0000, at << 20);
      last = at;
    }
    if (extended.length > 0) view.replace(last, 0xfff0_0000, 0);
    return view;
  }

  /** Of the first capability with this ID that is shown, or 0. */
  find(id: number): number {
    return this.#listed.find((one) => one.id === id)?.at ?? 0;
  }

  /** What a host sees of a register that holds `value`. */
  show(register: number, value: number): number {
    const mask = this.#masks[register >>> 2] as number;
    return ((value & ~mask) | (this.#values[register >>> 2] as number)) >>> 0;
  }

  /** Whether nothing of a register is the device's: it is neither asked for it nor told of it. */
  isHidden(register: number): boolean {
    return this.#masks[register >>> 2] === 0xffff_ffff;
  }

  /** Shows `value` in the bits of `mask`. */
  replace(register: number, mask: number, value: number): void {
    const index = register >>> 2;
    this.#masks[index] = (this.#masks[index] as number) | mask;
    this.#values[index] = ((this.#values[index] as number) & ~mask) | (value & mask);
  }

  /** Shows zeros from `register` on. */
  hide(register: number, bytes: number): void {
    for (let at = register; at < register + bytes; at += 4) this.replace(at, 0xffff_ffff, 0);
  }
}

function standardList(read32: (register: number) => number): Capability[] | string {
  if ((read32(COMMAND) & STATUS_CAPABILITIES_LIST) === 0) return [];
  const list: Capability[] = [];
  let at = read32(CAPABILITIES_POINTER) & 0xfc;
  while (at !== 0) {
    if (at < FIRST_CAPABILITY) return `a capability at ${at}, inside the header`;
    if (list.some((one) => one.at === at)) return 'its list of capabilities goes in a circle';
    const header = read32(at);
    list.push({ id: header & 0xff, at });
    at = (header >>> 8) & 0xfc;
  }
  return list;
}

function extendedList(read32: (register: number) => number): Capability[] | string {
  const list: Capability[] = [];
  for (let at = FIRST_EXTENDED_CAPABILITY; at !== 0; ) {
    if (at < FIRST_EXTENDED_CAPABILITY) return `an extended capability at ${at}`;
    if (list.some((one) => one.at === at)) return 'its extended capabilities go in a circle';
    const header = read32(at);
    if (header === 0 || header === 0xffff_ffff) return list;
    list.push({ id: header & 0xffff, at });
    at = (header >>> 20) & 0xffc;
  }
  return list;
}
