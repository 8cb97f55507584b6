/**
 * The reference accelerator of `docs/accelerator-datasheet.md`: a small PCIe function that stands in
 * for a GPU where none is at hand.
 *
 * `Accelerator` owns the registers and the device memory. An `Endpoint` does everything that is PCIe
 * rather than accelerator. Each `AccelChannel` runs one command ring and reports back through
 * `ChannelContext`.
 */
import type { Nanos } from '#base/units';
import type { BarSpec } from '#pcie/bar';
import type { DeviceIdentity } from '#pcie/device';
import { Endpoint, type EndpointBar } from '#pcie/endpoint';
import type { RegisterBar } from '#pcie/endpoint-bar';
import { EndpointDevice } from '#pcie/endpoint-device';
import { AccelChannel } from './accel-channel.ts';
import { CommandChecker } from './accel-check.ts';
import type { ChannelContext, CommandObserver, FetchObserver } from './accel-context.ts';
import { CommandHolds } from './accel-held.ts';
import { KernelMemory } from './accel-kernels.ts';
import * as reg from './accel-registers.ts';
import type { DeviceModel } from './device-model.ts';
import { type DmaOptions, type ModelOptions, OptionChecks } from './option-checks.ts';

/** `uuid` is also readable in the UUID registers; `model` is `dxpu-accel` by default. */
export interface AcceleratorOptions extends ModelOptions, DmaOptions {
  /** Device memory behind BAR2: a power of two from 1 MiB to 2 GiB. Default 64 MiB. */
  readonly memoryBytes?: number;
  /** Independent command rings, 1 to 16. Default 4. */
  readonly channels?: number;
  /** Ring entries fetched ahead per channel: a power of two from 1 to 64. Default 16. */
  readonly prefetchCommands?: number;
  /** Ring entries that one fetch brings at most, 1 to `prefetchCommands`, which is the default. */
  readonly fetchCommands?: number;
  /** Fetches of a channel that may be under way at once, 1 to 64. Default 1. */
  readonly fetchesInFlight?: number;
  /**
   * One engine for HtoD copies and one for DtoH copies, which the channels take in turn, as GPUs have
   * them. Default false: channels copy at the same time.
   */
  readonly sharedCopyEngines?: boolean;
  /** Time a kernel takes per floating-point operation. Default 0. */
  readonly nsPerFlop?: number;
  /** For those who watch: called for each command when it is done. Valid during the call alone. */
  readonly onCommand?: CommandObserver;
  /** The same for each fetch of commands when it has come. */
  readonly onFetch?: FetchObserver;
}

const MIB = 2 ** 20;
const checks = new OptionChecks('accelerator');

/** What an accelerator is beside a device model. */
export interface AcceleratorModel extends DeviceModel {
  /** Device memory itself, as BAR2 shows it: for looking at what copies have done. */
  readonly memory: Uint8Array;
}

/** The accelerator. Throws `DxpuError` `invalid_argument`, naming the option that does not hold. */
export function createAccelerator(options: AcceleratorOptions): AcceleratorModel {
  return new Accelerator(options);
}

class Accelerator extends EndpointDevice implements AcceleratorModel, RegisterBar, ChannelContext {
  readonly kind = 'registers';
  readonly identity: DeviceIdentity;
  readonly bars: readonly BarSpec[];
  readonly endpoint: Endpoint;
  readonly memory: Uint8Array;
  readonly kernels: KernelMemory;
  readonly checker: CommandChecker;
  readonly prefetchCommands: number;
  readonly fetchCommands: number;
  readonly fetchesInFlight: number;
  readonly nsPerFlop: number;
  readonly onCommand: CommandObserver | undefined;
  readonly onFetch: FetchObserver | undefined;
  readonly holds: CommandHolds;
  readonly #channels: AccelChannel[] = [];
  readonly #uuidWords: Uint32Array;
  readonly #log: (message: string) => void;
  #scratch = 0;
  #interruptStatus = 0;
  #unknownCount = 0;
  #unknownOffset = 0;
  #timeHi = 0;

  constructor(options: AcceleratorOptions) {
    super();
    const memoryBytes = options.memoryBytes ?? 64 * MIB;
    const channels = options.channels ?? 4;
    checks.powerOfTwo('memoryBytes', memoryBytes, MIB, 2048 * MIB);
    checks.integer('channels', channels, 1, reg.MAX_CHANNELS);
    this.prefetchCommands = options.prefetchCommands ?? 16;
    checks.powerOfTwo('prefetchCommands', this.prefetchCommands, 1, 64);
    this.fetchCommands = options.fetchCommands ?? this.prefetchCommands;
    checks.integer('fetchCommands', this.fetchCommands, 1, this.prefetchCommands);
    this.fetchesInFlight = options.fetchesInFlight ?? 1;
    checks.integer('fetchesInFlight', this.fetchesInFlight, 1, 64);
    this.onCommand = options.onCommand;
    this.onFetch = options.onFetch;
    this.holds = new CommandHolds(options.sharedCopyEngines ?? false);
    this.nsPerFlop = options.nsPerFlop ?? 0;
    if (!(this.nsPerFlop >= 0 && this.nsPerFlop < Infinity)) {
      throw checks.invalid(`nsPerFlop must be a number of at least 0: ${this.nsPerFlop}`);
    }
    this.#uuidWords = wordsOf(checks.uuid(options.uuid));
    this.#log = options.log ?? (() => {});
    this.identity = {
      kind: 'accel',
      model: options.model ?? 'dxpu-accel',
      memoryBytes,
      uuid: options.uuid,
    };
    this.memory = new Uint8Array(memoryBytes);
    this.kernels = new KernelMemory(this.memory);
    this.checker = new CommandChecker(memoryBytes);
    const bars: readonly EndpointBar[] = [
      { index: 0, is64Bit: false, prefetchable: false, sizeBytes: reg.BAR0_BYTES, target: this },
      {
        index: 2,
        is64Bit: true,
        prefetchable: true,
        sizeBytes: memoryBytes,
        target: { kind: 'memory', memory: this.memory },
      },
    ];
    this.bars = bars;
    this.endpoint = new Endpoint({
      identity: {
        vendorId: reg.ACCEL_VENDOR_ID,
        deviceId: reg.ACCEL_DEVICE_ID,
        revisionId: 1,
        classCode: reg.ACCEL_CLASS_CODE,
      },
      ...checks.endpoint(options),
      ...checks.dma(options),
      bars,
      msiVectors: 1,
      dmaChannels: 2 * channels,
    });
    for (let index = 0; index < channels; index++) {
      this.#channels.push(new AccelChannel(index, this));
    }
  }

  reset(now: Nanos): void {
    this.endpoint.reset();
    this.#resetRegisters(now);
  }

  scrub(_now: Nanos): void {
    this.memory.fill(0);
    for (const channel of this.#channels) channel.scrub();
  }

  override nextDeadlineNs(): number {
    let deadlineNs = super.nextDeadlineNs();
    for (const channel of this.#channels) {
      if (channel.wakeAtNs < deadlineNs) deadlineNs = channel.wakeAtNs;
    }
    return deadlineNs;
  }

  override tick(now: Nanos): void {
    super.tick(now);
    for (const channel of this.#channels) channel.tick(now);
  }

  readRegister(now: Nanos, offset: number, _byteEnables: number): number {
    const channel = this.#channelAt(offset);
    if (channel !== undefined) return this.#readChannel(channel, offset);
    const dma = this.endpoint.dma;
    switch (offset) {
      case reg.ID:
        return reg.ID_VALUE;
      case reg.VERSION:
        return reg.VERSION_VALUE;
      case reg.CHANNELS:
        return this.#channels.length;
      case reg.STATUS:
        return this.#status();
      case reg.MEMORY_BYTES_LO:
        return this.memory.length % 0x1_0000_0000;
      case reg.MEMORY_BYTES_HI:
        return Math.floor(this.memory.length / 0x1_0000_0000);
      case reg.SCRATCH:
        return this.#scratch;
      case reg.INTERRUPT_STATUS:
        return this.#interruptStatus;
      case reg.UNKNOWN_COUNT:
        return this.#unknownCount;
      case reg.UNKNOWN_OFFSET:
        return this.#unknownOffset;
      case reg.EVENTS:
        return reg.EVENT_COUNT;
      case reg.UUID_0:
      case reg.UUID_1:
      case reg.UUID_2:
      case reg.UUID_3:
        return this.#uuidWords[(offset - reg.UUID_0) / 4] as number;
      case reg.TIME_NS_LO: {
        // The other half is latched, so that the two make one time.
        const wholeNs = Math.floor(now);
        this.#timeHi = Math.floor(wholeNs / 0x1_0000_0000);
        return wholeNs % 0x1_0000_0000;
      }
      case reg.TIME_NS_HI:
        return this.#timeHi;
      case reg.DMA_READ_REQUESTS:
        return dma.readRequests % 0x1_0000_0000;
      case reg.DMA_WRITE_REQUESTS:
        return dma.writeRequests % 0x1_0000_0000;
      case reg.DMA_FAILED_REQUESTS:
        return dma.failedRequests % 0x1_0000_0000;
      case reg.DMA_UNEXPECTED_COMPLETIONS:
        return this.endpoint.counters.unexpectedCompletions % 0x1_0000_0000;
      default:
        return this.#unknown('read', offset);
    }
  }

  writeRegister(now: Nanos, offset: number, value: number, byteEnables: number): void {
    // Half a register has no meaning in this device.
    if (byteEnables !== 15) {
      this.#unknown('partial write', offset);
      return;
    }
    const channel = this.#channelAt(offset);
    if (channel !== undefined) {
      this.#writeChannel(now, channel, offset, value);
      return;
    }
    const rung = this.#channels[(offset - reg.DOORBELL_BASE) / reg.DOORBELL_STRIDE];
    if (rung !== undefined) {
      rung.doorbell(now, value);
      return;
    }
    switch (offset) {
      case reg.RESET:
        if (value === reg.RESET_KEY) this.#resetRegisters(now);
        break;
      case reg.SCRATCH:
        this.#scratch = value;
        break;
      case reg.INTERRUPT_STATUS:
        this.#interruptStatus = (this.#interruptStatus & ~value) >>> 0;
        break;
      default:
        this.#unknown('write', offset);
    }
  }

  fenceSignalled(channel: number): void {
    this.#interruptStatus =
      (this.#interruptStatus | (1 << (reg.INTERRUPT_FENCE_SHIFT + channel))) >>> 0;
  }

  channelHalted(channel: number, error: reg.AccelError, index: number, address: number): void {
    this.#interruptStatus =
      (this.#interruptStatus | (1 << (reg.INTERRUPT_ERROR_SHIFT + channel))) >>> 0;
    this.#log(
      `channel ${channel} halted at ring index ${index}: error ${error}, address 0x${address.toString(16)}`,
    );
  }

  /** The channel whose block `offset` is in, if this device has it. */
  #channelAt(offset: number): AccelChannel | undefined {
    if (offset < reg.CHANNEL_BASE) return undefined;
    return this.#channels[Math.floor((offset - reg.CHANNEL_BASE) / reg.CHANNEL_STRIDE)];
  }

  #readChannel(channel: AccelChannel, offset: number): number {
    switch (offset % reg.CHANNEL_STRIDE) {
      case reg.CHANNEL_CONTROL:
        return channel.control;
      case reg.CHANNEL_STATUS:
        return channel.status;
      case reg.RING_BASE_LO:
        return channel.ringBaseLo;
      case reg.RING_BASE_HI:
        return channel.ringBaseHi;
      case reg.RING_ENTRIES:
        return channel.ringEntries;
      case reg.RING_HEAD:
        return channel.head;
      case reg.RING_TAIL:
        return channel.tail;
      case reg.COMMANDS_DONE:
        return channel.commandsDone;
      case reg.ERROR_CODE:
        return channel.errorCode;
      case reg.ERROR_INDEX:
        return channel.errorIndex;
      case reg.ERROR_ADDRESS_LO:
        return channel.errorAddress % 0x1_0000_0000;
      case reg.ERROR_ADDRESS_HI:
        return Math.floor(channel.errorAddress / 0x1_0000_0000) % 0x1_0000_0000;
      case reg.FENCE_VALUE_LO:
        return channel.signal.fenceValueLo;
      case reg.FENCE_VALUE_HI:
        return channel.signal.fenceValueHi;
      default:
        return this.#unknown('read', offset);
    }
  }

  #writeChannel(now: Nanos, channel: AccelChannel, offset: number, value: number): void {
    switch (offset % reg.CHANNEL_STRIDE) {
      case reg.CHANNEL_CONTROL:
        channel.writeControl(now, value);
        break;
      case reg.RING_BASE_LO:
        if (channel.isOff) channel.ringBaseLo = value;
        break;
      case reg.RING_BASE_HI:
        if (channel.isOff) channel.ringBaseHi = value;
        break;
      case reg.RING_ENTRIES:
        if (channel.isOff) channel.ringEntries = value;
        break;
      default:
        this.#unknown('write', offset);
    }
  }

  #status(): number {
    let status = reg.STATUS_READY;
    for (const channel of this.#channels) {
      if ((channel.status & reg.CHANNEL_BUSY) !== 0) status |= reg.STATUS_BUSY;
      if ((channel.status & reg.CHANNEL_HALTED) !== 0) status |= reg.STATUS_ERROR;
    }
    return status;
  }

  #resetRegisters(now: Nanos): void {
    this.holds.reset();
    for (const channel of this.#channels) channel.reset(now);
    this.#scratch = 0;
    this.#interruptStatus = 0;
    this.#unknownCount = 0;
    this.#unknownOffset = 0;
    this.#timeHi = 0;
  }

  #unknown(what: string, offset: number): number {
    this.#unknownCount = (this.#unknownCount + 1) >>> 0;
    this.#unknownOffset = offset;
    this.#log(`${what} of unknown register 0x${offset.toString(16).padStart(4, '0')}`);
    return reg.UNKNOWN_VALUE;
  }
}

function wordsOf(bytes: Uint8Array): Uint32Array {
  const view = new DataView(bytes.buffer);
  return Uint32Array.from({ length: bytes.length / 4 }, (_, word) =>
    view.getUint32(4 * word, true),
  );
}
