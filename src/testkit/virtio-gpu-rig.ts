/**
 * A virtio-gpu device plugged into a `FakeHost`, set up by hand, for rings as no driver would make
 * them. Offsets are those of virtio 1.2, written here again.
 */
import type { DisplayModel } from '#devices/device-model';
import { createVirtioGpu, type VirtioGpuOptions } from '#devices/virtio-gpu';
import { FakeHost } from './fake-host.ts';

export const BAR0 = 0xe000_0000;
export const HOST_BASE = 0x1_0000_0000;
const HOST_BYTES = 1 << 20;
/** Rings of 8 entries: descriptors, driver area, device area of queue 0; queue 1 4 KiB on. */
export const ENTRIES = 8;
export const DESC = HOST_BASE + 0x400;
export const AVAIL = HOST_BASE + 0x800;
export const USED = HOST_BASE + 0xc00;
/** From here on host memory is the test's. */
export const DATA = HOST_BASE + 0x1_0000;
export const MSI_ADDRESS = 0xfee0_0000;

export const NEXT = 1;
export const WRITE = 2;
export const INDIRECT = 4;

// Bits of device_status.
export const READY = 15;
export const NEEDS_RESET = 64;

export class VirtioGpuRig {
  readonly host = new FakeHost(HOST_BASE, HOST_BYTES);
  readonly view = new DataView(this.host.memory.buffer);
  readonly device: DisplayModel;
  readonly log: string[] = [];

  constructor(options: Partial<VirtioGpuOptions> = {}) {
    this.device = createVirtioGpu({
      uuid: '00112233-4455-6677-8899-aabbccddeeff',
      memoryBytes: 1 << 20,
      width: 320,
      height: 200,
      log: (message) => this.log.push(message),
      ...options,
    });
    this.host.plug(this.device);
    this.host.configWrite(0x10, BAR0);
    this.host.configWrite(0x04, 6, 3);
  }

  /** MSI at `MSI_ADDRESS`, counted in `host.interrupts`; without it INTx. */
  enableMsi(): void {
    this.host.msiAddress = MSI_ADDRESS;
    this.host.configWrite(0x4c, MSI_ADDRESS);
    this.host.configWrite(0x54, 0x31, 3);
    this.host.configWrite(0x48, 1 << 16, 4);
  }

  read(offset: number, bytes: 1 | 2 | 4): number {
    const [completion] = this.host.memoryRead(BAR0 + offset, bytes);
    if (completion === undefined) throw new Error('no completion');
    let value = 0;
    for (let byte = bytes - 1; byte >= 0; byte--) {
      const at = completion.payloadOffset + ((offset + byte) & 3);
      value = value * 256 + (completion.payload[at] as number);
    }
    return value;
  }

  write(offset: number, bytes: 1 | 2 | 4, value: number): void {
    const data = Uint8Array.from({ length: bytes }, (_, byte) => (value >>> (8 * byte)) & 255);
    this.host.memoryWrite(BAR0 + offset, data);
  }

  get status(): number {
    return this.read(0x14, 1);
  }

  /** Both queues with rings of `ENTRIES`, and these features of the lower half; `status` at the end. */
  start(features = 1 << 28, status = READY): void {
    this.write(0x14, 1, 0);
    this.write(0x14, 1, 1);
    this.write(0x14, 1, 3);
    this.write(0x08, 4, 0);
    this.write(0x0c, 4, features);
    this.write(0x08, 4, 1);
    this.write(0x0c, 4, 1);
    this.write(0x14, 1, 11);
    for (const queue of [0, 1]) {
      this.write(0x16, 2, queue);
      this.write(0x18, 2, ENTRIES);
      for (const [part, base] of [DESC, AVAIL, USED].entries()) {
        const address = base + 0x1000 * queue;
        this.write(0x20 + 8 * part, 4, address % 2 ** 32);
        this.write(0x24 + 8 * part, 4, Math.floor(address / 2 ** 32));
      }
      this.write(0x1c, 2, 1);
    }
    this.write(0x14, 1, status);
  }

  /** Writes a descriptor, by default into the table of queue 0. */
  descriptor(
    index: number,
    address: number,
    bytes: number,
    flags = 0,
    next = 0,
    table = DESC,
  ): void {
    const at = table + 16 * index - HOST_BASE;
    this.view.setBigUint64(at, BigInt.asUintN(64, BigInt(address)), true);
    this.view.setUint32(at + 8, bytes, true);
    this.view.setUint16(at + 12, flags, true);
    this.view.setUint16(at + 14, next, true);
  }

  /** Puts heads into the available ring, from its start, and notifies the device. */
  offer(heads: readonly number[], idx = heads.length, queue = 0): void {
    const at = AVAIL + 0x1000 * queue - HOST_BASE;
    for (const [slot, head] of heads.entries()) this.view.setUint16(at + 4 + 2 * slot, head, true);
    this.view.setUint16(at + 2, idx, true);
    this.write(0x3000 + 4 * queue, 2, queue);
  }

  usedIdx(queue = 0): number {
    return this.view.getUint16(USED + 0x1000 * queue + 2 - HOST_BASE, true);
  }

  /** Words of a request, at `address`. */
  request(address: number, type: number, words: readonly number[] = []): number {
    const at = address - HOST_BASE;
    this.view.setUint32(at, type, true);
    for (let n = 1; n < 6; n++) this.view.setUint32(at + 4 * n, 0, true);
    for (const [n, word] of words.entries()) this.view.setUint32(at + 24 + 4 * n, word, true);
    return 24 + 4 * words.length;
  }

  word(address: number): number {
    return this.view.getUint32(address - HOST_BASE, true);
  }
}
