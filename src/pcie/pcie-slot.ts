/**
 * The slot behind a hot-plug port: Slot Capabilities, Control and Status in the port's PCI Express
 * capability, and Data Link Layer Link Active in its Link Status (PCIe 5.0 base, 7.5.3.9 to 7.5.3.11,
 * 6.7.3). There is no power controller and no button: software is told of presence and link changes
 * and its commands take effect at once (No Command Completed Support).
 */
import { assert } from '#base/assert';
import type { ConfigSpace } from './config-space.ts';
import {
  LINK_CONTROL,
  LNKSTA_DATA_LINK_LAYER_ACTIVE,
  LNKSTA_NEGOTIATED_LINK_WIDTH_SHIFT,
  type PcieCapability,
} from './pcie-capability.ts';

export const SLOT_CAPABILITIES = 0x14;
export const SLTCAP_HOT_PLUG_SURPRISE = 1 << 5;
export const SLTCAP_HOT_PLUG_CAPABLE = 1 << 6;
export const SLTCAP_NO_COMMAND_COMPLETED = 1 << 18;
export const SLTCAP_PHYSICAL_SLOT_NUMBER_SHIFT = 19;

/** Slot Control in bits 15:0, Slot Status in 31:16. */
export const SLOT_CONTROL = 0x18;
export const SLTCTL_PRESENCE_DETECT_CHANGED_ENABLE = 1 << 3;
export const SLTCTL_HOT_PLUG_INTERRUPT_ENABLE = 1 << 5;
export const SLTCTL_DATA_LINK_LAYER_STATE_CHANGED_ENABLE = 1 << 12;
export const SLTSTA_PRESENCE_DETECT_CHANGED = 1 << 19;
export const SLTSTA_PRESENCE_DETECT_STATE = 1 << 22;
export const SLTSTA_DATA_LINK_LAYER_STATE_CHANGED = 1 << 24;

export interface HotPlugSlotOptions {
  /** 1 to 8191, unique in the chassis. */
  readonly physicalSlotNumber: number;
  /** Whether an adapter may leave without notice. */
  readonly surprise: boolean;
}

export class HotPlugSlot {
  readonly #config: ConfigSpace;
  readonly #control: number;
  readonly #link: number;
  readonly #lanes: number;

  /** Defines the slot registers in `capability`, which has `slotImplemented`. The slot is empty. */
  constructor(config: ConfigSpace, capability: PcieCapability, options: HotPlugSlotOptions) {
    const { physicalSlotNumber, surprise } = options;
    assert(capability.options.slotImplemented === true, 'the port has no slot');
    assert(
      Number.isInteger(physicalSlotNumber) && physicalSlotNumber >= 1 && physicalSlotNumber <= 8191,
      `not a physical slot number: ${physicalSlotNumber}`,
    );
    this.#config = config;
    this.#control = capability.offset + SLOT_CONTROL;
    this.#link = capability.offset + LINK_CONTROL;
    this.#lanes = capability.options.lanes;
    config.define(
      capability.offset + SLOT_CAPABILITIES,
      (surprise ? SLTCAP_HOT_PLUG_SURPRISE : 0) |
        SLTCAP_HOT_PLUG_CAPABLE |
        SLTCAP_NO_COMMAND_COMPLETED |
        (physicalSlotNumber << SLTCAP_PHYSICAL_SLOT_NUMBER_SHIFT),
      0,
    );
    config.define(
      this.#control,
      0,
      SLTCTL_PRESENCE_DETECT_CHANGED_ENABLE |
        SLTCTL_HOT_PLUG_INTERRUPT_ENABLE |
        SLTCTL_DATA_LINK_LAYER_STATE_CHANGED_ENABLE,
      SLTSTA_PRESENCE_DETECT_CHANGED | SLTSTA_DATA_LINK_LAYER_STATE_CHANGED,
    );
  }

  get present(): boolean {
    return (this.#config.read32(this.#control) & SLTSTA_PRESENCE_DETECT_STATE) !== 0;
  }

  get linkActive(): boolean {
    return (this.#config.read32(this.#link) & LNKSTA_DATA_LINK_LAYER_ACTIVE) !== 0;
  }

  /** An adapter came or went. A change sets Presence Detect Changed. */
  setPresent(present: boolean): void {
    if (present === this.present) return;
    if (present) this.#config.setBits(this.#control, SLTSTA_PRESENCE_DETECT_STATE);
    else this.#config.clearBits(this.#control, SLTSTA_PRESENCE_DETECT_STATE);
    this.#config.setBits(this.#control, SLTSTA_PRESENCE_DETECT_CHANGED);
  }

  /** The link came up or went down. A change sets Data Link Layer State Changed. */
  setLinkActive(active: boolean): void {
    if (active === this.linkActive) return;
    const width = this.#lanes << LNKSTA_NEGOTIATED_LINK_WIDTH_SHIFT;
    if (active) this.#config.setBits(this.#link, LNKSTA_DATA_LINK_LAYER_ACTIVE | width);
    else this.#config.clearBits(this.#link, LNKSTA_DATA_LINK_LAYER_ACTIVE | width);
    this.#config.setBits(this.#control, SLTSTA_DATA_LINK_LAYER_STATE_CHANGED);
  }

  /** Whether the port is to interrupt: an enabled change software has not cleared yet (6.7.3.4). */
  get interruptPending(): boolean {
    const word = this.#config.read32(this.#control);
    if ((word & SLTCTL_HOT_PLUG_INTERRUPT_ENABLE) === 0) return false;
    const presence =
      (word & SLTCTL_PRESENCE_DETECT_CHANGED_ENABLE) !== 0 &&
      (word & SLTSTA_PRESENCE_DETECT_CHANGED) !== 0;
    const link =
      (word & SLTCTL_DATA_LINK_LAYER_STATE_CHANGED_ENABLE) !== 0 &&
      (word & SLTSTA_DATA_LINK_LAYER_STATE_CHANGED) !== 0;
    return presence || link;
  }
}
