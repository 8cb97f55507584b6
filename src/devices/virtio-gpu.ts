/**
 * A virtio-gpu device (virtio 1.2, 4.1 and 5.7) in 2D mode, as `docs/display-devices.md` says which
 * parts: a display that the stock drivers of guests know. The host makes pictures in its own memory;
 * the device fetches them by DMA and shows them.
 *
 * Who owns what: `VirtioGpu` owns the configuration structures, the status, and the request under way
 * on the control queue; an `Endpoint` does what is PCIe; each `Virtqueue` runs one ring and hands over
 * one request at a time; `GpuResources` owns pixels, scanout and cursor.
 *
 * A request that is wrong in itself is answered with the error of 5.7.6.7. A driver that breaks the
 * rules of its rings, or whose rings cannot be reached, finds DEVICE_NEEDS_RESET set.
 */
import type { Nanos } from '#base/units';
import type { BarSpec } from '#pcie/bar';
import type { DeviceIdentity } from '#pcie/device';
import { Endpoint, type EndpointBar } from '#pcie/endpoint';
import type { RegisterBar } from '#pcie/endpoint-bar';
import { EndpointDevice } from '#pcie/endpoint-device';
import { type DmaClient, DmaStatus } from '#pcie/endpoint-transfer';
import type { DisplayModel } from './device-model.ts';
import { EDID_BYTES, makeEdid } from './edid.ts';
import {
  type DmaOptions,
  type ModelOptions,
  type ModeOptions,
  OptionChecks,
} from './option-checks.ts';
import type { Screenshot } from './screenshot.ts';
import * as reg from './virtio-gpu-registers.ts';
import { type GpuResource, GpuResources, MAX_BACKING_ENTRIES } from './virtio-gpu-resources.ts';
import type { Rect } from './virtio-gpu-resources.ts';
import { Virtqueue, type VirtqueueOwner } from './virtqueue.ts';

export interface VirtioGpuOptions extends ModelOptions, DmaOptions, ModeOptions {
  /**
   * Bounds the pixels of all resources together: a power of two from 1 MiB to 2 GiB. What is shown is
   * kept beside them. Default 64 MiB.
   */
  readonly memoryBytes?: number;
}

const MIB = 2 ** 20;
const checks = new OptionChecks('virtio-gpu');

const FEATURES_LO =
  (reg.VIRTIO_GPU_F_EDID | reg.VIRTIO_F_INDIRECT_DESC | reg.VIRTIO_F_EVENT_IDX) >>> 0;
/**
 * The device reaches memory as any PCIe function does: through an IOMMU where there is one
 * (ACCESS_PLATFORM), and in need of the barriers for that (ORDER_PLATFORM).
 */
const FEATURES_HI =
  reg.VIRTIO_F_VERSION_1 | reg.VIRTIO_F_ACCESS_PLATFORM | reg.VIRTIO_F_ORDER_PLATFORM;

/** Status bits a driver may set. */
const DRIVER_STATUS =
  reg.STATUS_ACKNOWLEDGE |
  reg.STATUS_DRIVER |
  reg.STATUS_DRIVER_OK |
  reg.STATUS_FEATURES_OK |
  reg.STATUS_FAILED;

const CONTROL_QUEUE_ENTRIES = 256;
const CURSOR_QUEUE_ENTRIES = 16;

/** Pieces of a transfer read at once. */
const MAX_PIECES = 64;

/** What waits for `gather` on the control queue. */
const Stage = { REQUEST: 0, ENTRIES: 1 } as const;
type Stage = (typeof Stage)[keyof typeof Stage];

/** A queue with the request it has handed over. */
class Slot {
  readonly request = new Uint8Array(reg.LONGEST_REQUEST_BYTES);
  readonly requestView = new DataView(this.request.buffer);
  readonly response: Uint8Array;
  readonly responseView: DataView;
  stage: Stage = Stage.REQUEST;

  constructor(responseBytes: number) {
    this.response = new Uint8Array(responseBytes);
    this.responseView = new DataView(this.response.buffer);
  }
}

/** A TRANSFER_TO_HOST_2D under way: pieces of host memory to pieces of rows. */
class TransferJob {
  resource: GpuResource | undefined;
  rect: Rect = { x: 0, y: 0, width: 0, height: 0 };
  /** Of the rectangle's first pixel in the backing. */
  offset = 0;
  row = 0;
  /** Bytes of `row` that were asked for. */
  done = 0;
  outstanding = 0;
  failed = false;
}

/** The device. Throws `DxpuError` `invalid_argument`, naming the option that does not hold. */
export function createVirtioGpu(options: VirtioGpuOptions): DisplayModel {
  return new VirtioGpu(options);
}

class VirtioGpu
  extends EndpointDevice
  implements DisplayModel, RegisterBar, VirtqueueOwner, DmaClient
{
  readonly kind = 'registers';
  readonly identity: DeviceIdentity;
  readonly bars: readonly BarSpec[];
  readonly endpoint: Endpoint;
  readonly #queues: readonly Virtqueue[];
  readonly #slots: readonly Slot[];
  readonly #resources: GpuResources;
  readonly #width: number;
  readonly #height: number;
  readonly #edid: Uint8Array;
  readonly #log: (message: string) => void;
  readonly #warned = new Set<string>();
  readonly #job = new TransferJob();
  /** Pieces of a transfer are being asked for. */
  #moving = false;
  /** Of RESOURCE_ATTACH_BACKING; made when first needed. */
  #entries = new Uint8Array(0);
  /** Offset in config space of VIRTIO_PCI_CAP_PCI_CFG. */
  readonly #window: number;
  #status = 0;
  #isr = 0;
  #deviceFeatureSelect = 0;
  #driverFeatureSelect = 0;
  #driverFeaturesLo = 0;
  #driverFeaturesHi = 0;
  #queueSelect = 0;

  constructor(options: VirtioGpuOptions) {
    super();
    const { model = 'virtio-gpu', memoryBytes = 64 * MIB } = options;
    checks.powerOfTwo('memoryBytes', memoryBytes, MIB, 2048 * MIB);
    const { width, height } = checks.mode(options, memoryBytes);
    this.#log = options.log ?? (() => {});
    this.#width = width;
    this.#height = height;
    this.#edid = makeEdid({ width, height, name: model });
    this.identity = { kind: 'virtio-gpu', model, memoryBytes, uuid: options.uuid };
    this.#resources = new GpuResources(memoryBytes);
    const bars: readonly EndpointBar[] = [
      { index: 0, is64Bit: false, prefetchable: false, sizeBytes: reg.BAR0_BYTES, target: this },
    ];
    this.bars = bars;
    this.endpoint = new Endpoint({
      identity: {
        vendorId: reg.VIRTIO_VENDOR_ID,
        deviceId: reg.VIRTIO_GPU_DEVICE_ID,
        revisionId: reg.VIRTIO_GPU_REVISION_ID,
        classCode: reg.VIRTIO_GPU_CLASS_CODE,
        subsystemVendorId: reg.VIRTIO_VENDOR_ID,
        subsystemId: reg.VIRTIO_GPU_SUBSYSTEM_ID,
      },
      ...checks.endpoint(options),
      ...checks.dma(options),
      bars,
      msiVectors: 1,
      intx: true,
      dmaChannels: 2,
    });
    this.#window = this.#addCapabilities();
    this.#queues = [
      new Virtqueue(this, reg.CONTROL_QUEUE, reg.CONTROL_QUEUE, CONTROL_QUEUE_ENTRIES),
      new Virtqueue(this, reg.CURSOR_QUEUE, reg.CURSOR_QUEUE, CURSOR_QUEUE_ENTRIES),
    ];
    this.#slots = [new Slot(reg.RESP_EDID_BYTES), new Slot(reg.HDR_BYTES)];
  }

  reset(_now: Nanos): void {
    this.endpoint.reset();
    this.#resetState();
    this.#warned.clear();
  }

  scrub(_now: Nanos): void {
    for (const queue of this.#queues) queue.scrub();
    for (const { request, response } of this.#slots) {
      request.fill(0);
      response.fill(0);
    }
    this.#entries.fill(0);
  }

  screenshot(): Screenshot | undefined {
    return this.#resources.screenshot();
  }

  // ---- Configuration structures (4.1.4)

  readRegister(now: Nanos, offset: number, byteEnables: number): number {
    const queue = this.#queues[this.#queueSelect];
    switch (offset) {
      case reg.DEVICE_FEATURE_SELECT:
        return this.#deviceFeatureSelect;
      case reg.DEVICE_FEATURE:
        if (this.#deviceFeatureSelect === 0) return FEATURES_LO;
        return this.#deviceFeatureSelect === 1 ? FEATURES_HI : 0;
      case reg.DRIVER_FEATURE_SELECT:
        return this.#driverFeatureSelect;
      case reg.DRIVER_FEATURE:
        if (this.#driverFeatureSelect === 0) return this.#driverFeaturesLo;
        return this.#driverFeatureSelect === 1 ? this.#driverFeaturesHi : 0;
      case reg.NUM_QUEUES:
        return this.#queues.length * 0x1_0000 + reg.VIRTIO_MSI_NO_VECTOR;
      case reg.DEVICE_STATUS:
        // The configuration never changes: config_generation stays 0.
        return this.#queueSelect * 0x1_0000 + this.#status;
      case reg.QUEUE_SIZE:
        return queue === undefined ? 0 : reg.VIRTIO_MSI_NO_VECTOR * 0x1_0000 + queue.size;
      case reg.QUEUE_ENABLE:
        return queue === undefined ? 0 : queue.index * 0x1_0000 + (queue.enabled ? 1 : 0);
      case reg.QUEUE_DESC_LO:
        return queue?.descLo ?? 0;
      case reg.QUEUE_DESC_HI:
        return queue?.descHi ?? 0;
      case reg.QUEUE_DRIVER_LO:
        return queue?.driverLo ?? 0;
      case reg.QUEUE_DRIVER_HI:
        return queue?.driverHi ?? 0;
      case reg.QUEUE_DEVICE_LO:
        return queue?.deviceLo ?? 0;
      case reg.QUEUE_DEVICE_HI:
        return queue?.deviceHi ?? 0;
      case reg.QUEUE_NOTIFY_DATA:
      case reg.EVENTS_READ:
      case reg.EVENTS_CLEAR:
      case reg.NUM_CAPSETS:
        return 0;
      case reg.ISR_CFG:
        return (byteEnables & 1) === 0 ? 0 : this.#takeIsr(now);
      case reg.NUM_SCANOUTS:
        return 1;
      default:
        if (this.#notifiedQueue(offset) === undefined) this.#unknown('read', offset);
        return 0;
    }
  }

  writeRegister(now: Nanos, offset: number, value: number, byteEnables: number): void {
    const queue = this.#queues[this.#queueSelect];
    // Once a queue is in use, where it is stays.
    const open = queue === undefined || queue.enabled ? undefined : queue;
    const merged = (old: number): number => merge(old, value, byteEnables);
    switch (offset) {
      case reg.DEVICE_FEATURE_SELECT:
        this.#deviceFeatureSelect = merged(this.#deviceFeatureSelect);
        break;
      case reg.DRIVER_FEATURE_SELECT:
        this.#driverFeatureSelect = merged(this.#driverFeatureSelect);
        break;
      case reg.DRIVER_FEATURE:
        if ((this.#status & reg.STATUS_FEATURES_OK) !== 0) break;
        if (this.#driverFeatureSelect === 0) {
          this.#driverFeaturesLo = merged(this.#driverFeaturesLo);
        } else if (this.#driverFeatureSelect === 1) {
          this.#driverFeaturesHi = merged(this.#driverFeaturesHi);
        }
        break;
      case reg.DEVICE_STATUS:
        if ((byteEnables & 0b1100) !== 0) {
          this.#queueSelect = merged(this.#queueSelect * 0x1_0000) >>> 16;
        }
        if ((byteEnables & 1) !== 0) this.#writeStatus(now, value & 0xff);
        break;
      case reg.QUEUE_SIZE:
        if ((byteEnables & 0b0011) !== 0 && open !== undefined) {
          this.#writeQueueSize(open, merged(open.size) & 0xffff);
        }
        break;
      case reg.QUEUE_ENABLE:
        if ((byteEnables & 1) !== 0 && (value & 0xff) === 1 && open !== undefined) {
          const wrong = open.enable();
          if (wrong !== '') this.queueBroken(now, open, wrong);
        }
        break;
      case reg.QUEUE_DESC_LO:
        if (open !== undefined) open.descLo = merged(open.descLo);
        break;
      case reg.QUEUE_DESC_HI:
        if (open !== undefined) open.descHi = merged(open.descHi);
        break;
      case reg.QUEUE_DRIVER_LO:
        if (open !== undefined) open.driverLo = merged(open.driverLo);
        break;
      case reg.QUEUE_DRIVER_HI:
        if (open !== undefined) open.driverHi = merged(open.driverHi);
        break;
      case reg.QUEUE_DEVICE_LO:
        if (open !== undefined) open.deviceLo = merged(open.deviceLo);
        break;
      case reg.QUEUE_DEVICE_HI:
        if (open !== undefined) open.deviceHi = merged(open.deviceHi);
        break;
      case reg.NUM_QUEUES: // config_msix_vector: there is no MSI-X to map to.
      case reg.QUEUE_NOTIFY_DATA:
      case reg.EVENTS_CLEAR:
        break;
      default: {
        const notified = this.#notifiedQueue(offset);
        if (notified === undefined) this.#unknown('write', offset);
        else if (this.#isRunning) notified.notify(now);
      }
    }
  }

  // ---- VirtqueueOwner

  get indirectDescriptors(): boolean {
    return (this.#driverFeaturesLo & reg.VIRTIO_F_INDIRECT_DESC) !== 0;
  }

  get eventIndex(): boolean {
    return (this.#driverFeaturesLo & reg.VIRTIO_F_EVENT_IDX) !== 0;
  }

  requestReady(now: Nanos, queue: Virtqueue): void {
    const slot = this.#slotOf(queue);
    slot.stage = Stage.REQUEST;
    slot.request.fill(0);
    const bytes = Math.min(queue.readableBytes, slot.request.length);
    queue.gather(now, 0, slot.request, 0, bytes);
  }

  requestGathered(now: Nanos, queue: Virtqueue): void {
    const slot = this.#slotOf(queue);
    if (slot.stage === Stage.ENTRIES) {
      const id = slot.requestView.getUint32(reg.BACKING_RESOURCE, true);
      const entries = slot.requestView.getUint32(reg.ATTACH_NR_ENTRIES, true);
      const view = new DataView(this.#entries.buffer);
      this.#answer(now, queue, this.#resources.attach(id, entries, view));
      return;
    }
    const type = slot.requestView.getUint32(reg.HDR_TYPE, true);
    const needed = reg.REQUEST_BYTES.get(type);
    if (needed === undefined) this.#answer(now, queue, reg.Response.ERR_UNSPEC);
    else if (queue.readableBytes < needed) {
      this.#answer(now, queue, reg.Response.ERR_INVALID_PARAMETER);
    } else if (queue.index === reg.CURSOR_QUEUE) this.#cursor(now, queue, slot, type);
    else this.#control(now, queue, slot, type);
  }

  notifyUsed(now: Nanos, queue: Virtqueue): void {
    this.#interrupt(now, queue.channel, reg.ISR_QUEUE);
  }

  queueBroken(now: Nanos, queue: Virtqueue, reason: string): void {
    this.#log(`queue ${queue.index}: ${reason}`);
    for (const one of this.#queues) one.stop();
    this.#job.resource = undefined;
    this.#status |= reg.STATUS_DEVICE_NEEDS_RESET;
    if ((this.#status & reg.STATUS_DRIVER_OK) !== 0) {
      this.#interrupt(now, reg.CONTROL_QUEUE, reg.ISR_CONFIG);
    }
  }

  // ---- Requests (5.7.6)

  #control(now: Nanos, queue: Virtqueue, slot: Slot, type: number): void {
    const { requestView: view } = slot;
    const resources = this.#resources;
    const u32 = (at: number): number => view.getUint32(at, true);
    switch (type) {
      case reg.Command.GET_DISPLAY_INFO:
        this.#answerDisplayInfo(now, queue, slot);
        break;
      case reg.Command.GET_EDID:
        this.#answerEdid(now, queue, slot);
        break;
      case reg.Command.RESOURCE_CREATE_2D:
        this.#answer(
          now,
          queue,
          resources.create(
            u32(reg.CREATE_2D_RESOURCE),
            u32(reg.CREATE_2D_FORMAT),
            u32(reg.CREATE_2D_WIDTH),
            u32(reg.CREATE_2D_HEIGHT),
          ),
        );
        break;
      case reg.Command.RESOURCE_UNREF:
        this.#answer(now, queue, resources.destroy(u32(reg.UNREF_RESOURCE)));
        break;
      case reg.Command.SET_SCANOUT: {
        const rect = rectAt(view, reg.SET_SCANOUT_RECT);
        const isThere = u32(reg.SET_SCANOUT_SCANOUT) === 0;
        const answer = isThere
          ? resources.setScanout(u32(reg.SET_SCANOUT_RESOURCE), rect)
          : reg.Response.ERR_INVALID_SCANOUT_ID;
        this.#answer(now, queue, answer);
        break;
      }
      case reg.Command.RESOURCE_FLUSH: {
        const rect = rectAt(view, reg.FLUSH_RECT);
        this.#answer(now, queue, resources.flush(u32(reg.FLUSH_RESOURCE), rect));
        break;
      }
      case reg.Command.TRANSFER_TO_HOST_2D:
        this.#startTransfer(now, queue, view);
        break;
      case reg.Command.RESOURCE_ATTACH_BACKING:
        this.#startAttach(now, queue, slot);
        break;
      case reg.Command.RESOURCE_DETACH_BACKING:
        this.#answer(now, queue, resources.detach(u32(reg.BACKING_RESOURCE)));
        break;
      case reg.Command.GET_CAPSET_INFO:
      case reg.Command.GET_CAPSET:
        // There are num_capsets of them: none.
        this.#answer(now, queue, reg.Response.ERR_INVALID_PARAMETER);
        break;
      default:
        this.#answer(now, queue, reg.Response.ERR_UNSPEC);
    }
  }

  #cursor(now: Nanos, queue: Virtqueue, slot: Slot, type: number): void {
    const { requestView: view } = slot;
    const u32 = (at: number): number => view.getUint32(at, true);
    if (type !== reg.Command.UPDATE_CURSOR && type !== reg.Command.MOVE_CURSOR) {
      this.#answer(now, queue, reg.Response.ERR_UNSPEC);
      return;
    }
    if (u32(reg.CURSOR_SCANOUT) !== 0) {
      this.#answer(now, queue, reg.Response.ERR_INVALID_SCANOUT_ID);
      return;
    }
    let answer: reg.Response = reg.Response.OK_NODATA;
    if (type === reg.Command.UPDATE_CURSOR) {
      const id = u32(reg.CURSOR_RESOURCE);
      answer = this.#resources.setCursor(id, u32(reg.CURSOR_HOT_X), u32(reg.CURSOR_HOT_Y));
    }
    if (answer === reg.Response.OK_NODATA) {
      // Left of or above the display is negative.
      this.#resources.moveCursor(
        view.getInt32(reg.CURSOR_X, true),
        view.getInt32(reg.CURSOR_Y, true),
      );
    }
    this.#answer(now, queue, answer);
  }

  #answerDisplayInfo(now: Nanos, queue: Virtqueue, slot: Slot): void {
    const { response, responseView: view } = slot;
    response.fill(0, 0, reg.DISPLAY_INFO_BYTES);
    view.setUint32(reg.DISPLAY_INFO_MODES + 8, this.#width, true);
    view.setUint32(reg.DISPLAY_INFO_MODES + 12, this.#height, true);
    view.setUint32(reg.DISPLAY_INFO_MODES + reg.DISPLAY_ONE_ENABLED, 1, true);
    this.#answer(now, queue, reg.Response.OK_DISPLAY_INFO, reg.DISPLAY_INFO_BYTES);
  }

  #answerEdid(now: Nanos, queue: Virtqueue, slot: Slot): void {
    const { requestView, response, responseView: view } = slot;
    if ((this.#driverFeaturesLo & reg.VIRTIO_GPU_F_EDID) === 0) {
      this.#answer(now, queue, reg.Response.ERR_UNSPEC);
    } else if (requestView.getUint32(reg.GET_EDID_SCANOUT, true) !== 0) {
      this.#answer(now, queue, reg.Response.ERR_INVALID_SCANOUT_ID);
    } else {
      response.fill(0, 0, reg.RESP_EDID_BYTES);
      view.setUint32(reg.EDID_SIZE, EDID_BYTES, true);
      response.set(this.#edid, reg.EDID_DATA);
      this.#answer(now, queue, reg.Response.OK_EDID, reg.RESP_EDID_BYTES);
    }
  }

  #startAttach(now: Nanos, queue: Virtqueue, slot: Slot): void {
    const id = slot.requestView.getUint32(reg.BACKING_RESOURCE, true);
    const entries = slot.requestView.getUint32(reg.ATTACH_NR_ENTRIES, true);
    const bytes = reg.MEM_ENTRY_BYTES * entries;
    let answer = this.#resources.mayAttach(id, entries);
    if (answer === reg.Response.OK_NODATA && queue.readableBytes < reg.ATTACH_ENTRIES + bytes) {
      answer = reg.Response.ERR_INVALID_PARAMETER;
    }
    if (answer !== reg.Response.OK_NODATA) {
      this.#answer(now, queue, answer);
      return;
    }
    if (this.#entries.length === 0) {
      this.#entries = new Uint8Array(MAX_BACKING_ENTRIES * reg.MEM_ENTRY_BYTES);
    }
    slot.stage = Stage.ENTRIES;
    queue.gather(now, reg.ATTACH_ENTRIES, this.#entries, 0, bytes);
  }

  #startTransfer(now: Nanos, queue: Virtqueue, view: DataView): void {
    const resource = this.#resources.get(view.getUint32(reg.TRANSFER_RESOURCE, true));
    const rect = rectAt(view, reg.TRANSFER_RECT);
    const high = view.getUint32(reg.TRANSFER_OFFSET + 4, true);
    const offset = high * 0x1_0000_0000 + view.getUint32(reg.TRANSFER_OFFSET, true);
    if (resource === undefined) {
      this.#answer(now, queue, reg.Response.ERR_INVALID_RESOURCE_ID);
      return;
    }
    // Rows lie in the backing as far apart as in the resource.
    const lastByte = offset + resource.strideBytes * (rect.height - 1) + 4 * rect.width;
    if (!resource.covers(rect)) {
      this.#answer(now, queue, reg.Response.ERR_INVALID_PARAMETER);
    } else if (resource.backing === undefined || lastByte > resource.backing.bytes) {
      this.#answer(now, queue, reg.Response.ERR_UNSPEC);
    } else {
      const job = this.#job;
      // Whole rows are one piece, wherever the backing is.
      const isWhole = rect.width === resource.width;
      job.rect = isWhole ? { ...rect, width: rect.width * rect.height, height: 1 } : rect;
      job.resource = resource;
      job.offset = offset;
      job.row = 0;
      job.done = 0;
      job.outstanding = 0;
      job.failed = false;
      this.#move(now);
    }
  }

  /** Asks for pieces of the transfer, a bounded number at a time; answers when all have come. */
  #move(now: Nanos): void {
    const job = this.#job;
    const { resource } = job;
    // A read may end within its call: the loop that is already running goes on.
    if (this.#moving || resource === undefined) return;
    this.#moving = true;
    while (job.resource === resource && !job.failed && job.outstanding < MAX_PIECES) {
      if (job.row === job.rect.height) break;
      this.#readPiece(now, job, resource);
    }
    this.#moving = false;
    if (job.resource !== resource || job.outstanding > 0) return;
    job.resource = undefined;
    const answer = job.failed ? reg.Response.ERR_UNSPEC : reg.Response.OK_NODATA;
    this.#answer(now, this.#queues[reg.CONTROL_QUEUE] as Virtqueue, answer);
  }

  #readPiece(now: Nanos, job: TransferJob, resource: GpuResource): void {
    const { rect } = job;
    const { backing } = resource;
    if (backing === undefined) {
      job.failed = true;
      return;
    }
    const rowBytes = 4 * rect.width;
    const from = job.offset + resource.strideBytes * job.row + job.done;
    const to = resource.strideBytes * (rect.y + job.row) + 4 * rect.x + job.done;
    const piece = backing.find(from);
    const inPiece = from - (backing.start[piece] as number);
    const left = (backing.start[piece + 1] as number) - from;
    const bytes = Math.min(left, rowBytes - job.done);
    job.done += bytes;
    if (job.done === rowBytes) {
      job.row++;
      job.done = 0;
    }
    job.outstanding++;
    const address = (backing.address[piece] as number) + inPiece;
    this.endpoint.dma.read(now, reg.CONTROL_QUEUE, address, resource.pixels, to, bytes, this, 0);
  }

  /** A piece of the transfer has come, or could not be read. */
  dmaDone(now: Nanos, _cookie: number, status: DmaStatus): void {
    this.#job.outstanding--;
    if (status !== DmaStatus.OK) this.#job.failed = true;
    this.#move(now);
  }

  /** Puts the header before what is in the response, and gives the request back. */
  #answer(now: Nanos, queue: Virtqueue, type: reg.Response, bytes: number = reg.HDR_BYTES): void {
    const { requestView, response, responseView: view } = this.#slotOf(queue);
    response.fill(0, 0, reg.HDR_BYTES);
    view.setUint32(reg.HDR_TYPE, type, true);
    const flags = requestView.getUint32(reg.HDR_FLAGS, true);
    if ((flags & reg.VIRTIO_GPU_FLAG_FENCE) !== 0) {
      view.setUint32(reg.HDR_FLAGS, reg.VIRTIO_GPU_FLAG_FENCE, true);
      for (let at = reg.HDR_FENCE_ID; at <= reg.HDR_RING_IDX; at += 4) {
        view.setUint32(at, requestView.getUint32(at, true), true);
      }
    }
    queue.answer(now, response, bytes);
  }

  // ---- Status, interrupts, capabilities

  /** The driver has said that it is ready, and the device has nothing against it. */
  get #isRunning(): boolean {
    const bits = reg.STATUS_DRIVER_OK | reg.STATUS_FEATURES_OK | reg.STATUS_DEVICE_NEEDS_RESET;
    return (this.#status & bits) === (reg.STATUS_DRIVER_OK | reg.STATUS_FEATURES_OK);
  }

  /** 3.1.1: bits are set one after the other; only a reset clears them. */
  #writeStatus(now: Nanos, value: number): void {
    if (value === 0) {
      this.#resetState();
      this.endpoint.setInterruptLevel(now, false);
      return;
    }
    let added = value & DRIVER_STATUS & ~this.#status;
    if ((added & reg.STATUS_FEATURES_OK) !== 0 && !this.#acceptsFeatures()) {
      this.#log('the driver wants features the device does not have, or no VIRTIO_F_VERSION_1');
      added &= ~reg.STATUS_FEATURES_OK;
    }
    this.#status |= added;
  }

  #acceptsFeatures(): boolean {
    const unknown =
      (this.#driverFeaturesLo & ~FEATURES_LO) | (this.#driverFeaturesHi & ~FEATURES_HI);
    return unknown === 0 && (this.#driverFeaturesHi & reg.VIRTIO_F_VERSION_1) !== 0;
  }

  #writeQueueSize(queue: Virtqueue, size: number): void {
    if (size > 0 && size <= queue.maxSize && (size & (size - 1)) === 0) queue.size = size;
    else this.#log(`queue ${queue.index}: a size of ${size} is not allowed`);
  }

  /** All that a driver has set and made; of what is under way nothing is finished. */
  #resetState(): void {
    for (const queue of this.#queues) queue.reset();
    this.#job.resource = undefined;
    this.#resources.clear();
    this.#status = 0;
    this.#isr = 0;
    this.#deviceFeatureSelect = 0;
    this.#driverFeatureSelect = 0;
    this.#driverFeaturesLo = 0;
    this.#driverFeaturesHi = 0;
    this.#queueSelect = 0;
  }

  /** By MSI where the host has enabled it; else by INTx until the driver reads the ISR status. */
  #interrupt(now: Nanos, channel: number, cause: number): void {
    this.#isr |= cause;
    this.endpoint.interrupt(now, channel, 0, undefined, 0);
    this.endpoint.setInterruptLevel(now, true);
  }

  #takeIsr(now: Nanos): number {
    const isr = this.#isr;
    this.#isr = 0;
    this.endpoint.setInterruptLevel(now, false);
    return isr;
  }

  #slotOf(queue: Virtqueue): Slot {
    return this.#slots[queue.index] as Slot;
  }

  #notifiedQueue(offset: number): Virtqueue | undefined {
    return this.#queues[(offset - reg.NOTIFY_CFG) / reg.NOTIFY_OFF_MULTIPLIER];
  }

  #unknown(what: string, offset: number): void {
    const message = `${what} of unknown register 0x${offset.toString(16).padStart(4, '0')}`;
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#log(message);
  }

  /** 4.1.4: where the structures are. Returns the offset of the last one, the configuration access. */
  #addCapabilities(): number {
    const { config } = this.endpoint;
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
    const window = add(reg.VIRTIO_PCI_CAP_PCI_CFG, 0, 0, 20);
    config.define(window + 4, 0, 0xff);
    config.define(window + 8, 0, 0xffff_ffff);
    config.define(window + 12, 0, 0xffff_ffff);
    config.define(window + 16, 0, 0xffff_ffff);
    this.endpoint.handleConfig(window + 16, {
      beforeRead: (now) => this.#readWindow(now),
      afterWrite: (now) => this.#writeWindow(now),
    });
    return window;
  }

  /** 4.1.4.9: a read of pci_cfg_data is one of the structure the window is over. */
  #readWindow(now: Nanos): void {
    const { config } = this.endpoint;
    const access = this.#windowAccess();
    if (access === undefined) return;
    const { offset, shift, byteEnables, mask } = access;
    const value = this.readRegister(now, offset, byteEnables) >>> shift;
    config.set32(this.#window + 16, value & mask);
  }

  #writeWindow(now: Nanos): void {
    const access = this.#windowAccess();
    if (access === undefined) return;
    const { offset, shift, byteEnables, mask } = access;
    const value = this.endpoint.config.read32(this.#window + 16) & mask;
    this.writeRegister(now, offset, (value << shift) >>> 0, byteEnables);
  }

  /** The access that bar, offset and length of the window ask for, if it is one. */
  #windowAccess():
    | { offset: number; shift: number; byteEnables: number; mask: number }
    | undefined {
    const { config } = this.endpoint;
    const bar = config.read32(this.#window + 4) & 0xff;
    const offset = config.read32(this.#window + 8);
    const length = config.read32(this.#window + 12);
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

/** The enabled bytes of `value` put into `old`. */
function merge(old: number, value: number, byteEnables: number): number {
  let mask = 0;
  for (let byte = 0; byte < 4; byte++) {
    if ((byteEnables & (1 << byte)) !== 0) mask |= 0xff << (8 * byte);
  }
  return ((old & ~mask) | (value & mask)) >>> 0;
}

function rectAt(view: DataView, at: number): Rect {
  return {
    x: view.getUint32(at, true),
    y: view.getUint32(at + 4, true),
    width: view.getUint32(at + 8, true),
    height: view.getUint32(at + 12, true),
  };
}
