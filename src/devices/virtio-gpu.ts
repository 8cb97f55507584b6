/**
 * A virtio-gpu device (virtio 1.2, 4.1 and 5.7) in 2D mode, as `docs/display-devices.md` says which
 * parts: a display that the stock drivers of guests know. The host makes pictures in its own memory;
 * the device fetches them by DMA and shows them.
 *
 * Who owns what: `VirtioGpu` owns the configuration structures and the status; an `Endpoint` does what
 * is PCIe; each `Virtqueue` runs one ring and hands over one request at a time, which `GpuRequests`
 * answers; `GpuResources` owns pixels, scanout and cursor.
 *
 * A driver that breaks the rules of its rings, or whose rings cannot be reached, finds
 * DEVICE_NEEDS_RESET set.
 */
import type { Nanos } from '#base/units';
import type { BarSpec } from '#pcie/bar';
import type { DeviceIdentity } from '#pcie/device';
import { Endpoint, type EndpointBar } from '#pcie/endpoint';
import type { RegisterBar } from '#pcie/endpoint-bar';
import { EndpointDevice } from '#pcie/endpoint-device';
import type { DisplayModel } from './device-model.ts';
import { makeEdid } from './edid.ts';
import {
  type DmaOptions,
  type ModelOptions,
  type ModeOptions,
  OptionChecks,
} from './option-checks.ts';
import type { Screenshot } from './screenshot.ts';
import { addVirtioCapabilities } from './virtio-capabilities.ts';
import * as reg from './virtio-gpu-registers.ts';
import { GpuRequests } from './virtio-gpu-requests.ts';
import { GpuResources } from './virtio-gpu-resources.ts';
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

/** The device. Throws `DxpuError` `invalid_argument`, naming the option that does not hold. */
export function createVirtioGpu(options: VirtioGpuOptions): DisplayModel {
  return new VirtioGpu(options);
}

class VirtioGpu extends EndpointDevice implements DisplayModel, RegisterBar, VirtqueueOwner {
  readonly kind = 'registers';
  readonly identity: DeviceIdentity;
  readonly bars: readonly BarSpec[];
  readonly endpoint: Endpoint;
  readonly #queues: readonly Virtqueue[];
  readonly #requests: GpuRequests;
  readonly #resources: GpuResources;
  readonly #log: (message: string) => void;
  readonly #warned = new Set<string>();
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
    addVirtioCapabilities(this.endpoint, this);
    const { CONTROL_QUEUE, CURSOR_QUEUE } = reg;
    const control = new Virtqueue(this, CONTROL_QUEUE, CONTROL_QUEUE, CONTROL_QUEUE_ENTRIES);
    const cursor = new Virtqueue(this, CURSOR_QUEUE, CURSOR_QUEUE, CURSOR_QUEUE_ENTRIES);
    this.#queues = [control, cursor];
    const display = { width, height, edid: makeEdid({ width, height, name: model }) };
    this.#requests = new GpuRequests(this.endpoint.dma, control, display, this.#resources);
  }

  reset(_now: Nanos): void {
    this.endpoint.reset();
    this.#resetState();
    this.#warned.clear();
  }

  scrub(_now: Nanos): void {
    for (const queue of this.#queues) queue.scrub();
    this.#requests.scrub();
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
        return queue?.areas.descLo ?? 0;
      case reg.QUEUE_DESC_HI:
        return queue?.areas.descHi ?? 0;
      case reg.QUEUE_DRIVER_LO:
        return queue?.areas.driverLo ?? 0;
      case reg.QUEUE_DRIVER_HI:
        return queue?.areas.driverHi ?? 0;
      case reg.QUEUE_DEVICE_LO:
        return queue?.areas.deviceLo ?? 0;
      case reg.QUEUE_DEVICE_HI:
        return queue?.areas.deviceHi ?? 0;
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
    const areas = open?.areas;
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
        if (areas !== undefined) areas.descLo = merged(areas.descLo);
        break;
      case reg.QUEUE_DESC_HI:
        if (areas !== undefined) areas.descHi = merged(areas.descHi);
        break;
      case reg.QUEUE_DRIVER_LO:
        if (areas !== undefined) areas.driverLo = merged(areas.driverLo);
        break;
      case reg.QUEUE_DRIVER_HI:
        if (areas !== undefined) areas.driverHi = merged(areas.driverHi);
        break;
      case reg.QUEUE_DEVICE_LO:
        if (areas !== undefined) areas.deviceLo = merged(areas.deviceLo);
        break;
      case reg.QUEUE_DEVICE_HI:
        if (areas !== undefined) areas.deviceHi = merged(areas.deviceHi);
        break;
      case reg.NUM_QUEUES: // config_msix_vector: there is no MSI-X to map to.
      case reg.QUEUE_NOTIFY_DATA:
      case reg.EVENTS_CLEAR:
        break;
      default: {
        const notified = this.#notifiedQueue(offset);
        if (notified === undefined) this.#unknown('write', offset);
        else if (this.#isRunning()) notified.notify(now);
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
    this.#requests.ready(now, queue);
  }

  requestGathered(now: Nanos, queue: Virtqueue): void {
    const hasEdid = (this.#driverFeaturesLo & reg.VIRTIO_GPU_F_EDID) !== 0;
    this.#requests.gathered(now, queue, hasEdid);
  }

  notifyUsed(now: Nanos, queue: Virtqueue): void {
    this.#interrupt(now, queue.channel, reg.ISR_QUEUE);
  }

  queueBroken(now: Nanos, queue: Virtqueue, reason: string): void {
    this.#log(`queue ${queue.index}: ${reason}`);
    for (const one of this.#queues) one.stop();
    this.#requests.forget();
    this.#status |= reg.STATUS_DEVICE_NEEDS_RESET;
    if ((this.#status & reg.STATUS_DRIVER_OK) !== 0) {
      this.#interrupt(now, reg.CONTROL_QUEUE, reg.ISR_CONFIG);
    }
  }

  // ---- Status, interrupts

  /** The driver has said that it is ready, and the device has nothing against it. */
  #isRunning(): boolean {
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
    this.#requests.forget();
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

  #notifiedQueue(offset: number): Virtqueue | undefined {
    return this.#queues[(offset - reg.NOTIFY_CFG) / reg.NOTIFY_OFF_MULTIPLIER];
  }

  #unknown(what: string, offset: number): void {
    const message = `${what} of unknown register 0x${offset.toString(16).padStart(4, '0')}`;
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#log(message);
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
