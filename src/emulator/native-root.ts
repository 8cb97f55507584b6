/**
 * A root complex's link straight to one device: no proxies, no network. It is what a host has where the
 * device is its own, for the native run of an emulation.
 *
 * Who calls whom: the soft host hands requests down (`DownstreamFabric`), the device's wire hands TLPs
 * up (`DevicePort`). Requests of the device are done at once, in registered memory; all time is the
 * wire's. What is refused here is answered Unsupported Request or dropped, as a root complex does.
 */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import { DmaService } from '#fabric/dma-service';
import { INTERRUPT_BASE, INTERRUPT_LIMIT } from '#fabric/host-table';
import { MemoryMap, type MemoryRegion } from '#fabric/memory-map';
import { ScratchTlps } from '#fabric/scratch-tlps';
import {
  completeWithData,
  completeWithoutData,
  firstByteAddress,
  isMemoryRead,
  requestByteCount,
} from '#pcie/completion';
import type { Device, DevicePort } from '#pcie/device';
import type { DownstreamFabric, RootSide } from '#pcie/root-port';
import { completionChunk } from '#pcie/split';
import {
  CompletionStatus,
  copyTlp,
  FlowClass,
  flowClassOf,
  type Tlp,
  TlpKind,
  tlpAddress,
} from '#pcie/tlp';

/** The root complex answers by this. */
const ROOT_BDF = 0;
const RCB_BYTES = 64;
const SLOT = 0;

export class NativeRoot implements DownstreamFabric, DevicePort {
  readonly #root: RootSide;
  readonly #device: Device;
  readonly #maxPayloadBytes: number;
  readonly #memory = new MemoryMap();
  readonly #scratch = new ScratchTlps();
  readonly #dma = new DmaService({
    scratch: this.#scratch,
    completerBdf: ROOT_BDF,
    rcbBytes: RCB_BYTES,
  });

  /** `device` is plugged in at once; `start` brings its link up. */
  constructor(root: RootSide, device: Device, maxPayloadBytes: number) {
    this.#root = root;
    this.#device = device;
    this.#maxPayloadBytes = maxPayloadBytes;
    device.plug(this);
  }

  start(now: Nanos): void {
    this.#root.linkActive(now, SLOT, true, false);
  }

  canRequest(): boolean {
    return true;
  }

  request(now: Nanos, tlp: Tlp): void {
    const isConfig = tlp.kind === TlpKind.CfgRd1 || tlp.kind === TlpKind.CfgWr1;
    const down = this.#scratch.borrow();
    copyTlp(down, tlp);
    if (isConfig) down.kind = tlp.kind === TlpKind.CfgWr1 ? TlpKind.CfgWr0 : TlpKind.CfgRd0;
    if (isConfig && ((tlp.completerId >>> 3) & 31) !== 0) {
      // Behind a port there is device 0 alone.
      completeWithoutData(down, tlp, ROOT_BDF, CompletionStatus.UR);
      this.#root.completion(now, down);
    } else {
      this.#device.receive(now, down);
    }
    this.#scratch.giveBack(down);
  }

  requestWrites(): number {
    return 0;
  }

  registerMemory(
    base: number,
    memory: Uint8Array,
    access: { read: boolean; write: boolean },
  ): void {
    this.#memory.register(base, memory, access);
  }

  unregisterMemory(base: number): void {
    this.#memory.unregister(base);
  }

  canSend(): boolean {
    return true;
  }

  send(now: Nanos, tlp: Tlp): void {
    switch (flowClassOf(tlp.kind)) {
      case FlowClass.COMPLETION:
        this.#root.completion(now, tlp);
        break;
      case FlowClass.POSTED:
        this.#write(now, tlp);
        break;
      default:
        this.#read(now, tlp);
    }
  }

  #write(now: Nanos, tlp: Tlp): void {
    const isMemory = tlp.kind === TlpKind.MWr32 || tlp.kind === TlpKind.MWr64;
    if (!isMemory) return;
    const address = tlpAddress(tlp);
    if (address >= INTERRUPT_BASE && address <= INTERRUPT_LIMIT) {
      const { payload, payloadOffset: at } = tlp;
      const data = new DataView(payload.buffer, payload.byteOffset).getUint32(at, true);
      this.#root.interrupt(now, SLOT, address, data);
      return;
    }
    const region = this.#regionOf(address, tlp.payloadBytes);
    if (region !== undefined) this.#dma.write(tlp, region);
  }

  #read(now: Nanos, tlp: Tlp): void {
    const region = isMemoryRead(tlp.kind)
      ? this.#regionOf(tlpAddress(tlp), 4 * tlp.lengthDw)
      : undefined;
    const out = this.#scratch.borrow();
    if (region === undefined) {
      completeWithoutData(out, tlp, ROOT_BDF, CompletionStatus.UR);
      this.#device.receive(now, out);
    } else {
      let address = firstByteAddress(tlp);
      let remaining = requestByteCount(tlp);
      assert(remaining > 0, 'a read asks for a byte at least');
      while (remaining > 0) {
        const bytes = completionChunk(address, remaining, this.#maxPayloadBytes, RCB_BYTES);
        const at = address - (address & 3) - region.base;
        completeWithData(out, tlp, ROOT_BDF, address, remaining, bytes, region.bytes, at);
        this.#device.receive(now, out);
        address += bytes;
        remaining -= bytes;
      }
    }
    this.#scratch.giveBack(out);
  }

  #regionOf(address: number, bytes: number): MemoryRegion | undefined {
    const region = this.#memory.floor(address);
    return region !== undefined && address + bytes - 1 <= region.limit ? region : undefined;
  }
}
