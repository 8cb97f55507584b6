/**
 * A small driver for a virtio-gpu device, as a guest's kernel would have one: written from virtio 1.2
 * (3.1, 4.1, 2.7 and 5.7) alone, without the device's constants. One request at a time on each queue.
 */
import { configRead, memoryRead, memoryWrite } from '#host/host-operations';
import type { HostBuffer } from '#host/host-memory';
import type { PciFunction } from '#host/pci-function';
import type { SoftHost } from '#host/root-complex';
import { type Task, waitUntil } from '#host/task';

export interface VirtioGpuDriverOptions {
  /** Feature bits to accept of those offered. Default: all. */
  readonly features?: bigint;
  /** Entries to use of each queue. Default: as many as there are. */
  readonly queueSize?: number;
  /** Use indirect tables where they were negotiated. Default true. */
  readonly indirect?: boolean;
}

export const F_EDID = 1n << 1n;
export const F_INDIRECT_DESC = 1n << 28n;
export const F_EVENT_IDX = 1n << 29n;
export const F_VERSION_1 = 1n << 32n;

interface Structure {
  readonly address: number;
  readonly multiplier: number;
}

const NEXT = 1;
const WRITE = 2;
const INDIRECT = 4;

const TABLE_ENTRIES = 8;

class DriverQueue {
  readonly size: number;
  readonly descriptors: HostBuffer;
  readonly available: HostBuffer;
  readonly used: HostBuffer;
  readonly table: HostBuffer;
  readonly request: HostBuffer;
  readonly response: HostBuffer;
  notifyAddress = 0;
  offered = 0;
  seen = 0;

  constructor(host: SoftHost, size: number) {
    this.size = size;
    this.descriptors = host.memory.alloc(16 * size);
    this.available = host.memory.alloc(6 + 2 * size);
    this.used = host.memory.alloc(6 + 8 * size);
    this.table = host.memory.alloc(16 * TABLE_ENTRIES);
    this.request = host.memory.alloc(0x1_0000);
    this.response = host.memory.alloc(4096);
  }

  get usedIdx(): number {
    return viewOf(this.used).getUint16(2, true);
  }
}

const viewOf = ({ bytes }: HostBuffer): DataView =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** A piece of memory that backs a resource. */
export interface BackingPiece {
  readonly address: number;
  readonly bytes: number;
}

export class VirtioGpuDriver {
  readonly features: bigint;
  interrupts = 0;
  readonly #host: SoftHost;
  readonly #fn: PciFunction;
  readonly #common: Structure;
  readonly #deviceConfig: Structure;
  readonly #queues: DriverQueue[] = [];
  readonly #options: VirtioGpuDriverOptions;
  #fence = 1n;

  private constructor(
    host: SoftHost,
    fn: PciFunction,
    common: Structure,
    deviceConfig: Structure,
    features: bigint,
    options: VirtioGpuDriverOptions,
  ) {
    this.#host = host;
    this.#fn = fn;
    this.#common = common;
    this.#deviceConfig = deviceConfig;
    this.features = features;
    this.#options = options;
  }

  /** Initialises the device (3.1.1) with both queues. */
  static *open(
    host: SoftHost,
    fn: PciFunction,
    options: VirtioGpuDriverOptions = {},
  ): Task<VirtioGpuDriver> {
    const find = (type: number): Task<Structure> => findStructure(host, fn, type);
    const common = yield* find(1);
    const notify = yield* find(2);
    const deviceConfig = yield* find(4);
    const at = common.address;
    yield* store(host, at + 20, 1, 0);
    while ((yield* load(host, at + 20, 1)) !== 0);
    yield* store(host, at + 20, 1, 1);
    yield* store(host, at + 20, 1, 3);
    let offered = 0n;
    for (const half of [0, 1]) {
      yield* store(host, at, 4, half);
      offered |= BigInt(yield* load(host, at + 4, 4)) << BigInt(32 * half);
    }
    const features = offered & (options.features ?? offered);
    for (const half of [0, 1]) {
      yield* store(host, at + 8, 4, half);
      yield* store(host, at + 12, 4, Number((features >> BigInt(32 * half)) & 0xffff_ffffn));
    }
    yield* store(host, at + 20, 1, 11);
    if (((yield* load(host, at + 20, 1)) & 8) === 0) throw new Error('features were refused');
    const driver = new VirtioGpuDriver(host, fn, common, deviceConfig, features, options);
    const queues = yield* load(host, at + 18, 2);
    if (queues !== 2) throw new Error(`${queues} queues`);
    for (const index of [0, 1]) yield* driver.#setUpQueue(index, notify);
    host.msiSignal(fn.virtualSlot, 0).listen(() => driver.interrupts++);
    yield* store(host, at + 20, 1, 15);
    return driver;
  }

  /** Status bits of the device. */
  *status(): Task<number> {
    return yield* load(this.#host, this.#common.address + 20, 1);
  }

  /** events_read, num_scanouts, num_capsets. */
  *deviceConfig(): Task<readonly number[]> {
    const words: number[] = [];
    for (const offset of [0, 8, 12]) {
      words.push(yield* load(this.#host, this.#deviceConfig.address + offset, 4));
    }
    return words;
  }

  /** Resets the device and gives all memory back. */
  *close(): Task<void> {
    yield* store(this.#host, this.#common.address + 20, 1, 0);
    while ((yield* this.status()) !== 0);
    for (const queue of this.#queues) {
      const { descriptors, available, used, table, request, response } = queue;
      for (const buffer of [descriptors, available, used, table, request, response]) {
        this.#host.memory.free(buffer);
      }
    }
  }

  /**
   * Sends a request of 32-bit words behind the header, and returns the response, as long as the device
   * says it is. A fence is asked for, and checked.
   */
  *command(
    type: number,
    words: readonly number[],
    options: { readonly queue?: number; readonly responseBytes?: number } = {},
  ): Task<DataView> {
    const queue = this.#queues[options.queue ?? 0]!;
    const responseBytes = options.responseBytes ?? 24;
    const request = viewOf(queue.request);
    const fence = this.#fence++;
    request.setUint32(0, type, true);
    request.setUint32(4, 1, true);
    request.setBigUint64(8, fence, true);
    request.setUint32(16, 0, true);
    request.setUint32(20, 0, true);
    for (const [index, word] of words.entries()) request.setUint32(24 + 4 * index, word, true);
    queue.response.bytes.fill(0xee);
    const written = yield* this.#exchange(queue, 24 + 4 * words.length, responseBytes);
    const response = new DataView(queue.response.bytes.slice(0, written).buffer);
    if (written >= 24) {
      if (response.getUint32(4, true) !== 1 || response.getBigUint64(8, true) !== fence) {
        throw new Error('the response carries another fence');
      }
    }
    return response;
  }

  /** A command that answers without data; throws unless the answer is as expected. */
  *expect(type: number, words: readonly number[], answer = 0x1100, queue = 0): Task<void> {
    const response = yield* this.command(type, words, { queue });
    const got = response.getUint32(0, true);
    if (got !== answer) {
      throw new Error(`command 0x${type.toString(16)} was answered 0x${got.toString(16)}`);
    }
  }

  /** Width and height of the first display. */
  *displaySize(): Task<readonly [number, number, number]> {
    const response = yield* this.command(0x100, [], { responseBytes: 24 + 16 * 24 });
    if (response.getUint32(0, true) !== 0x1101) throw new Error('no display info');
    return [
      response.getUint32(32, true),
      response.getUint32(36, true),
      response.getUint32(40, true),
    ];
  }

  *edid(): Task<Uint8Array> {
    const response = yield* this.command(0x10a, [0, 0], { responseBytes: 1056 });
    if (response.getUint32(0, true) !== 0x1104) throw new Error('no EDID');
    const size = response.getUint32(24, true);
    return new Uint8Array(response.buffer, 32, size);
  }

  *createResource(id: number, format: number, width: number, height: number): Task<void> {
    yield* this.expect(0x101, [id, format, width, height]);
  }

  *attachBacking(id: number, pieces: readonly BackingPiece[]): Task<void> {
    const words = pieces.flatMap(({ address, bytes }) => [
      address % 2 ** 32,
      Math.floor(address / 2 ** 32),
      bytes,
      0,
    ]);
    yield* this.expect(0x106, [id, pieces.length, ...words]);
  }

  *transfer(id: number, rect: readonly number[], offset: number): Task<void> {
    yield* this.expect(0x105, [...rect, offset, 0, id, 0]);
  }

  *setScanout(id: number, rect: readonly number[]): Task<void> {
    yield* this.expect(0x103, [...rect, 0, id]);
  }

  *flush(id: number, rect: readonly number[]): Task<void> {
    yield* this.expect(0x104, [...rect, id, 0]);
  }

  *updateCursor(id: number, x: number, y: number, hotX: number, hotY: number): Task<void> {
    yield* this.expect(0x300, [0, x, y, 0, id, hotX, hotY, 0], 0x1100, 1);
  }

  *moveCursor(x: number, y: number): Task<void> {
    yield* this.expect(0x301, [0, x, y, 0, 0, 0, 0, 0], 0x1100, 1);
  }

  *#setUpQueue(index: number, notify: Structure): Task<void> {
    const host = this.#host;
    const at = this.#common.address;
    yield* store(host, at + 22, 2, index);
    const largest = yield* load(host, at + 24, 2);
    const size = Math.min(largest, this.#options.queueSize ?? largest);
    const queue = new DriverQueue(host, size);
    this.#queues.push(queue);
    yield* store(host, at + 24, 2, size);
    const parts = [queue.descriptors, queue.available, queue.used];
    for (const [part, { address }] of parts.entries()) {
      yield* store(host, at + 32 + 8 * part, 4, address % 2 ** 32);
      yield* store(host, at + 36 + 8 * part, 4, Math.floor(address / 2 ** 32));
    }
    const notifyOff = yield* load(host, at + 30, 2);
    queue.notifyAddress = notify.address + notifyOff * notify.multiplier;
    yield* store(host, at + 28, 2, 1);
  }

  /** Offers one buffer, waits until it is used, and returns how much was written to it. */
  *#exchange(queue: DriverQueue, requestBytes: number, responseBytes: number): Task<number> {
    const isIndirect = (this.features & F_INDIRECT_DESC) !== 0n && this.#options.indirect !== false;
    const chain = viewOf(isIndirect ? queue.table : queue.descriptors);
    const entries = isIndirect ? TABLE_ENTRIES : queue.size;
    const head = isIndirect ? 0 : (2 * queue.offered) % queue.size;
    // The request in two pieces, so that the device has to put it together.
    const cut = Math.min(20, requestBytes);
    const pieces = [
      [queue.request.address, cut, 0],
      [queue.request.address + cut, requestBytes - cut, 0],
      [queue.response.address, responseBytes, WRITE],
    ] as const;
    for (const [index, [address, bytes, flags]] of pieces.entries()) {
      const at = 16 * ((head + index) % entries);
      const last = index === pieces.length - 1;
      writeDescriptor(
        chain,
        at,
        address,
        bytes,
        flags | (last ? 0 : NEXT),
        (head + index + 1) % entries,
      );
    }
    if (isIndirect) {
      const { address } = queue.table;
      writeDescriptor(viewOf(queue.descriptors), 0, address, 16 * pieces.length, INDIRECT, 0);
    }
    const available = viewOf(queue.available);
    const usesEvents = (this.features & F_EVENT_IDX) !== 0n;
    if (usesEvents) available.setUint16(4 + 2 * queue.size, queue.seen, true);
    available.setUint16(4 + 2 * (queue.offered % queue.size), head, true);
    const slot = queue.offered;
    queue.offered = (queue.offered + 1) & 0xffff;
    available.setUint16(2, queue.offered, true);
    const used = viewOf(queue.used);
    const isWanted = usesEvents
      ? used.getUint16(4 + 8 * queue.size, true) === slot
      : (used.getUint16(0, true) & 1) === 0;
    if (isWanted) yield* store(this.#host, queue.notifyAddress, 2, this.#queues.indexOf(queue));
    const isUsed = yield* waitUntil(() => queue.usedIdx !== queue.seen, {
      signal: this.#host.msiSignal(this.#fn.virtualSlot, 0),
      withinNs: 20e9,
    });
    if (!isUsed) throw new Error(`the request was not used; status ${yield* this.status()}`);
    const entry = 4 + 8 * (queue.seen % queue.size);
    queue.seen = (queue.seen + 1) & 0xffff;
    if (used.getUint32(entry, true) !== head) throw new Error('another buffer was used');
    return used.getUint32(entry + 4, true);
  }
}

function writeDescriptor(
  view: DataView,
  at: number,
  address: number,
  bytes: number,
  flags: number,
  next: number,
): void {
  view.setUint32(at, address % 2 ** 32, true);
  view.setUint32(at + 4, Math.floor(address / 2 ** 32), true);
  view.setUint32(at + 8, bytes, true);
  view.setUint16(at + 12, flags, true);
  view.setUint16(at + 14, next, true);
}

/** Where a structure is, from its vendor-specific capability (4.1.4). */
function* findStructure(host: SoftHost, fn: PciFunction, type: number): Task<Structure> {
  for (const { id, offset, extended } of fn.capabilities) {
    if (id !== 0x09 || extended) continue;
    const head = yield* configRead(host, fn.bdf, offset);
    if (head >>> 24 !== type) continue;
    const bar = (yield* configRead(host, fn.bdf, offset + 4)) & 0xff;
    const within = yield* configRead(host, fn.bdf, offset + 8);
    const multiplier = type === 2 ? yield* configRead(host, fn.bdf, offset + 16) : 0;
    const base = fn.bars.find(({ index }) => index === bar)?.address;
    if (base === undefined) throw new Error(`no BAR ${bar}`);
    return { address: base + within, multiplier };
  }
  throw new Error(`no structure ${type}`);
}

function* load(host: SoftHost, address: number, bytes: 1 | 2 | 4): Task<number> {
  const into = new Uint8Array(4);
  const status = yield* memoryRead(host, address, into.subarray(0, bytes));
  if (status !== 0) throw new Error(`a load ended with ${status}`);
  return new DataView(into.buffer).getUint32(0, true);
}

function* store(host: SoftHost, address: number, bytes: 1 | 2 | 4, value: number): Task<void> {
  const from = new Uint8Array(4);
  new DataView(from.buffer).setUint32(0, value, true);
  yield* memoryWrite(host, address, from.subarray(0, bytes));
}
