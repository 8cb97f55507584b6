/**
 * The vendor capabilities of a virtio function (virtio 1.2, 4.1.4): where its structures are, all in
 * BAR0, and the access to them through configuration space (4.1.4.9).
 */
import type { Nanos } from '#base/units';
import type { Endpoint } from '#pcie/endpoint';
import type { RegisterBar } from '#pcie/endpoint-bar';
import * as reg from './virtio-gpu-registers.ts';

export function addVirtioCapabilities(endpoint: Endpoint, registers: RegisterBar): void {
  const { config } = endpoint;
  const add = (type: number, offset: number, length: number, bytes = 16): number => {
    // cap_len in bits 23:16, cfg_type in 31:24; bar and id are 0.
    const at = config.addCapability(reg.VENDOR_CAPABILITY_ID, bytes, bytes | (type << 8));
    config.define(at + 8, offset, 0);
    config.define(at + 12, length, 0);
    return at;
  };
  add(reg.VIRTIO_PCI_CAP_COMMON_CFG, reg.COMMON_CFG, reg.COMMON_CFG_BYTES);
  const notifyBytes = reg.NOTIFY_OFF_MULTIPLIER * 2;
  const notify = add(reg.VIRTIO_PCI_CAP_NOTIFY_CFG, reg.NOTIFY_CFG, notifyBytes, 20);
  config.define(notify + 16, reg.NOTIFY_OFF_MULTIPLIER, 0);
  add(reg.VIRTIO_PCI_CAP_ISR_CFG, reg.ISR_CFG, 1);
  add(reg.VIRTIO_PCI_CAP_DEVICE_CFG, reg.DEVICE_CFG, reg.DEVICE_CFG_BYTES);
  const window = new ConfigWindow(endpoint, registers, add(reg.VIRTIO_PCI_CAP_PCI_CFG, 0, 0, 20));
  window.open();
}

/** A register access, as `RegisterBar` has them: whole double words with the bytes enabled. */
interface WindowAccess {
  readonly offset: number;
  readonly shift: number;
  readonly byteEnables: number;
  readonly mask: number;
}

/** VIRTIO_PCI_CAP_PCI_CFG: a driver says bar, offset and length, and finds the data behind them. */
class ConfigWindow {
  readonly #endpoint: Endpoint;
  readonly #registers: RegisterBar;
  /** Offset of the capability in config space. */
  readonly #at: number;

  constructor(endpoint: Endpoint, registers: RegisterBar, at: number) {
    this.#endpoint = endpoint;
    this.#registers = registers;
    this.#at = at;
  }

  open(): void {
    const { config } = this.#endpoint;
    const at = this.#at;
    config.define(at + 4, 0, 0xff);
    config.define(at + 8, 0, 0xffff_ffff);
    config.define(at + 12, 0, 0xffff_ffff);
    config.define(at + 16, 0, 0xffff_ffff);
    this.#endpoint.handleConfig(at + 16, {
      beforeRead: (now) => this.#read(now),
      afterWrite: (now) => this.#write(now),
    });
  }

  /** A read of pci_cfg_data is one of the structure the window is over. */
  #read(now: Nanos): void {
    const access = this.#access();
    if (access === undefined) return;
    const { offset, shift, byteEnables, mask } = access;
    const value = this.#registers.readRegister(now, offset, byteEnables) >>> shift;
    this.#endpoint.config.set32(this.#at + 16, value & mask);
  }

  #write(now: Nanos): void {
    const access = this.#access();
    if (access === undefined) return;
    const { offset, shift, byteEnables, mask } = access;
    const value = this.#endpoint.config.read32(this.#at + 16) & mask;
    this.#registers.writeRegister(now, offset, (value << shift) >>> 0, byteEnables);
  }

  /** What bar, offset and length ask for, if it is an access. */
  #access(): WindowAccess | undefined {
    const { config } = this.#endpoint;
    const bar = config.read32(this.#at + 4) & 0xff;
    const offset = config.read32(this.#at + 8);
    const length = config.read32(this.#at + 12);
    const isLength = length === 1 || length === 2 || length === 4;
    if (bar !== 0 || !isLength || offset % length !== 0 || offset >= reg.BAR0_BYTES) {
      return undefined;
    }
    const byte = offset & 3;
    return {
      offset: offset - byte,
      shift: 8 * byte,
      byteEnables: ((1 << length) - 1) << byte,
      mask: length === 4 ? 0xffff_ffff : (1 << (8 * length)) - 1,
    };
  }
}
