/**
 * The QEMU bochs-display PCI function, as `docs/display-devices.md` says which parts: a framebuffer
 * behind BAR0 that the host writes by itself, a mode set through the Bochs VBE ("DISPI") registers in
 * BAR2. It sends nothing: no DMA, no interrupt. Register names are those of QEMU's document
 * "Standard VGA" and of the Bochs VBE interface.
 */
import type { Nanos } from '#base/units';
import type { BarSpec } from '#pcie/bar';
import type { DeviceIdentity } from '#pcie/device';
import { Endpoint, type EndpointBar } from '#pcie/endpoint';
import type { RegisterBar } from '#pcie/endpoint-bar';
import { EndpointDevice } from '#pcie/endpoint-device';
import type { DisplayModel } from './device-model.ts';
import { EDID_BYTES, makeEdid } from './edid.ts';
import {
  LEAST_PIXELS,
  type ModelOptions,
  type ModeOptions,
  OptionChecks,
} from './option-checks.ts';
import {
  MAX_SHOWN_PIXELS,
  opaqueRgba,
  opaqueRgbaOf565,
  type PixelLayout,
  type Screenshot,
} from './screenshot.ts';

export const BOCHS_VENDOR_ID = 0x1234;
export const BOCHS_DEVICE_ID = 0x1111;
/** Display controller, other: without VGA compatibility. */
export const BOCHS_CLASS_CODE = 0x038000;
/** From 2 on drivers look for the extended registers. */
export const BOCHS_REVISION_ID = 2;
export const BOCHS_SUBSYSTEM_VENDOR_ID = 0x1af4;
export const BOCHS_SUBSYSTEM_ID = 0x1100;

// BAR2.
export const MMIO_BYTES = 0x1000;
export const EDID = 0x000;
export const VGA = 0x400;
export const VGA_END = 0x420;
export const DISPI = 0x500;
export const QEXT = 0x600;

// DISPI: 16-bit registers, register n at DISPI + 2n.
export const VBE_DISPI_INDEX_ID = 0x0;
export const VBE_DISPI_INDEX_XRES = 0x1;
export const VBE_DISPI_INDEX_YRES = 0x2;
export const VBE_DISPI_INDEX_BPP = 0x3;
export const VBE_DISPI_INDEX_ENABLE = 0x4;
export const VBE_DISPI_INDEX_BANK = 0x5;
export const VBE_DISPI_INDEX_VIRT_WIDTH = 0x6;
export const VBE_DISPI_INDEX_VIRT_HEIGHT = 0x7;
export const VBE_DISPI_INDEX_X_OFFSET = 0x8;
export const VBE_DISPI_INDEX_Y_OFFSET = 0x9;
export const VBE_DISPI_INDEX_VIDEO_MEMORY_64K = 0xa;
const DISPI_REGISTERS = 0xb;

/** What VBE_DISPI_INDEX_ID reads. */
export const VBE_DISPI_ID5 = 0xb0c5;
export const VBE_DISPI_ENABLED = 0x01;

// QEMU extended registers, 32 bits.
export const QEXT_SIZE = QEXT + 0x0;
export const QEXT_BYTEORDER = QEXT + 0x4;
const QEXT_BYTES = 8;
export const BYTEORDER_LITTLE_ENDIAN = 0x1e1e_1e1e;
export const BYTEORDER_BIG_ENDIAN = 0xbebe_bebe;

const MIB = 2 ** 20;
const checks = new OptionChecks('bochs-display');

/** Components of a 32-bit pixel x8r8g8b8, by byte order. */
const LITTLE_ENDIAN_LAYOUT: PixelLayout = { red: 2, green: 1, blue: 0 };
const BIG_ENDIAN_LAYOUT: PixelLayout = { red: 1, green: 2, blue: 3 };

export interface BochsDisplayOptions extends ModelOptions, ModeOptions {
  /** The framebuffer: a power of two from 4 MiB to 256 MiB. Default 16 MiB. */
  readonly memoryBytes?: number;
}

/** The display. Throws `DxpuError` `invalid_argument`, naming the option that does not hold. */
export function createBochsDisplay(options: BochsDisplayOptions): DisplayModel {
  return new BochsDisplay(options);
}

class BochsDisplay extends EndpointDevice implements DisplayModel, RegisterBar {
  readonly kind = 'registers';
  readonly identity: DeviceIdentity;
  readonly bars: readonly BarSpec[];
  readonly endpoint: Endpoint;
  readonly #framebuffer: Uint8Array;
  readonly #edid: DataView;
  readonly #dispi = new Uint16Array(DISPI_REGISTERS);
  readonly #log: (message: string) => void;
  readonly #warned = new Set<string>();
  #bigEndian = false;

  constructor(options: BochsDisplayOptions) {
    super();
    const { model = 'bochs-display', memoryBytes = 16 * MIB } = options;
    checks.powerOfTwo('memoryBytes', memoryBytes, 4 * MIB, 256 * MIB);
    const { width, height } = checks.mode(options, memoryBytes);
    this.#log = options.log ?? (() => {});
    this.identity = { kind: 'bochs-display', model, memoryBytes, uuid: options.uuid };
    this.#framebuffer = new Uint8Array(memoryBytes);
    this.#edid = new DataView(makeEdid({ width, height, name: model }).buffer);
    const bars: readonly EndpointBar[] = [
      {
        index: 0,
        is64Bit: true,
        prefetchable: true,
        sizeBytes: memoryBytes,
        target: { kind: 'memory', memory: this.#framebuffer },
      },
      { index: 2, is64Bit: false, prefetchable: false, sizeBytes: MMIO_BYTES, target: this },
    ];
    this.bars = bars;
    this.endpoint = new Endpoint({
      identity: {
        vendorId: BOCHS_VENDOR_ID,
        deviceId: BOCHS_DEVICE_ID,
        revisionId: BOCHS_REVISION_ID,
        classCode: BOCHS_CLASS_CODE,
        subsystemVendorId: BOCHS_SUBSYSTEM_VENDOR_ID,
        subsystemId: BOCHS_SUBSYSTEM_ID,
      },
      ...checks.endpoint(options),
      bars,
      msiVectors: 0,
    });
  }

  reset(_now: Nanos): void {
    this.endpoint.reset();
    this.#dispi.fill(0);
    this.#bigEndian = false;
    this.#warned.clear();
  }

  scrub(_now: Nanos): void {
    this.#framebuffer.fill(0);
  }

  readRegister(_now: Nanos, offset: number, _byteEnables: number): number {
    if (offset < VGA) return offset < EDID_BYTES ? this.#edid.getUint32(offset, true) : 0;
    if (offset < VGA_END) return 0;
    if (offset >= DISPI && offset < DISPI + 2 * DISPI_REGISTERS) {
      const index = (offset - DISPI) / 2;
      return (this.#readDispi(index) | (this.#readDispi(index + 1) << 16)) >>> 0;
    }
    switch (offset) {
      case QEXT_SIZE:
        return QEXT_BYTES;
      case QEXT_BYTEORDER:
        return this.#bigEndian ? BYTEORDER_BIG_ENDIAN : BYTEORDER_LITTLE_ENDIAN;
      default:
        this.#unknown('read', offset);
        return 0;
    }
  }

  writeRegister(_now: Nanos, offset: number, value: number, byteEnables: number): void {
    // A driver for VGA blanks the screen there; what has no VGA registers has nothing to blank.
    if (offset >= VGA && offset < VGA_END) return;
    if (offset >= DISPI && offset < DISPI + 2 * DISPI_REGISTERS) {
      const index = (offset - DISPI) / 2;
      this.#writeDispi(index, value & 0xffff, byteEnables & 3);
      this.#writeDispi(index + 1, value >>> 16, byteEnables >> 2);
      return;
    }
    if (offset === QEXT_BYTEORDER) {
      if (value === BYTEORDER_BIG_ENDIAN) this.#bigEndian = true;
      if (value === BYTEORDER_LITTLE_ENDIAN) this.#bigEndian = false;
      return;
    }
    this.#unknown('write', offset);
  }

  screenshot(): Screenshot | undefined {
    const dispi = this.#dispi;
    if (((dispi[VBE_DISPI_INDEX_ENABLE] as number) & VBE_DISPI_ENABLED) === 0) return undefined;
    const width = dispi[VBE_DISPI_INDEX_XRES] as number;
    const height = dispi[VBE_DISPI_INDEX_YRES] as number;
    const bits = dispi[VBE_DISPI_INDEX_BPP] as number;
    if (width < LEAST_PIXELS || height < LEAST_PIXELS || (bits !== 16 && bits !== 32)) {
      return undefined;
    }
    if (width * height > MAX_SHOWN_PIXELS) return undefined;
    const pixelBytes = bits / 8;
    const stride = Math.max(width, dispi[VBE_DISPI_INDEX_VIRT_WIDTH] as number) * pixelBytes;
    const offset =
      (dispi[VBE_DISPI_INDEX_X_OFFSET] as number) * pixelBytes +
      (dispi[VBE_DISPI_INDEX_Y_OFFSET] as number) * stride;
    if (offset + stride * height > this.#framebuffer.length) return undefined;
    const layout = this.#bigEndian ? BIG_ENDIAN_LAYOUT : LITTLE_ENDIAN_LAYOUT;
    const rgba =
      bits === 16
        ? opaqueRgbaOf565(this.#framebuffer, offset, stride, width, height)
        : opaqueRgba(this.#framebuffer, offset, stride, width, height, layout);
    return { width, height, rgba };
  }

  #readDispi(index: number): number {
    switch (index) {
      case VBE_DISPI_INDEX_ID:
        return VBE_DISPI_ID5;
      case VBE_DISPI_INDEX_VIDEO_MEMORY_64K:
        return this.#framebuffer.length / 0x1_0000;
      default:
        return this.#dispi[index] ?? 0;
    }
  }

  /** Half a register has no meaning: both bytes or none. */
  #writeDispi(index: number, value: number, byteEnables: number): void {
    if (byteEnables === 0 || index >= DISPI_REGISTERS) return;
    if (byteEnables === 3) this.#dispi[index] = value;
    else this.#unknown('partial write', DISPI + 2 * index);
  }

  #unknown(what: string, offset: number): void {
    const message = `${what} of unknown register 0x${offset.toString(16).padStart(3, '0')}`;
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#log(message);
  }
}
