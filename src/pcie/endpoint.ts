/**
 * What every device model needs of PCIe and none wants to write: configuration space, BAR decode
 * with completions, DMA with tags, MSI, error logging. A device builds one `Endpoint`, gives it what
 * is behind its BARs, and forwards to it what comes from its port and its clock (`EndpointDevice`).
 *
 * Who calls whom: `receive` answers config and memory requests at once, and hands completions to
 * the `DmaEngine`, which calls the device back (`DmaClient`). The device starts DMA through `dma` and
 * interrupts through `interrupt` (MSI) or `setInterruptLevel` (INTx). `Endpoint` keeps the engine's
 * limits equal to what the host has set in the configuration space.
 *
 * What comes and is not for this function is answered as 2.3.1 and 6.2 of PCIe 5.0 base say: UR for
 * unsupported requests, nothing for posted ones, both counted and logged in AER; poisoned requests
 * change nothing.
 */
import { assert, assertDefined } from '#base/assert';
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import { AdvancedErrorReporting } from './aer.ts';
import { Bars, type BarSpec } from './bar.ts';
import { ConfigSpace, type FunctionIdentity } from './config-space.ts';
import { completeWithData, completeWithoutData } from './completion.ts';
import type { DevicePort } from './device.ts';
import { addDeviceSerialNumber } from './dsn.ts';
import type { BarTarget } from './endpoint-bar.ts';
import { DmaEngine } from './endpoint-dma.ts';
import { type EndpointCounters, EndpointErrors, isAnswered } from './endpoint-errors.ts';
import { MemoryResponder } from './endpoint-memory.ts';
import type { DmaClient } from './endpoint-transfer.ts';
import { IntxWire, ROUTE_LOCAL } from './intx.ts';
import { Msi } from './msi.ts';
import { PcieCapability, PortType } from './pcie-capability.ts';
import { PowerManagement, PowerState } from './pm.ts';
import { CompletionStatus, FlowClass, hasSafeAddress, resetTlp, Tlp, TlpKind } from './tlp.ts';
import { addSecondaryPcie } from './secondary-pcie.ts';

export interface EndpointBar extends BarSpec {
  readonly target: BarTarget;
}

export interface EndpointOptions {
  readonly identity: FunctionIdentity;
  /** Device serial number, 64 bits. */
  readonly serial: bigint;
  readonly bars: readonly EndpointBar[];
  /** A power of two, 1 to 32, or 0 for a function without MSI. Default 1. */
  readonly msiVectors?: number;
  /** Whether it has INTA, the level-triggered interrupt for hosts that use no MSI. Default false. */
  readonly intx?: boolean;
  /** Independent DMA channels. Default 1. */
  readonly dmaChannels?: number;
  /** DMA reads outstanding, 1 to 768; the host's tag enables bound it further. Default 256. */
  readonly tags?: number;
  /** Max_Payload_Size supported, 128, 256 … 4096. Default 512. */
  readonly maxPayloadBytes?: number;
  /** Bounds Max_Read_Request_Size below what the host sets. Default 4096. */
  readonly maxReadRequestBytes?: number;
  /**
   * Default 4 s, beyond the 50 ms that 7.5.3.15 gives a timeout that is not programmable: an answer may
   * come over a network that takes seconds to mend. The host can switch it off (Device Control 2).
   */
  readonly completionTimeoutNs?: number;
  /**
   * PCIe generation (1 to 3) and lanes shown in the link registers, whatever carries the TLPs. Default 3
   * and 16: faster links must have capabilities for electrical matters that no model has.
   */
  readonly generation?: number;
  readonly lanes?: number;
}

/** A config register whose accesses do something (`Endpoint.handleConfig`). */
export interface ConfigHandler {
  /** Before the host's read is answered with what the register holds. */
  beforeRead(now: Nanos): void;
  /** After the host's write has changed the register, as far as it is writable. */
  afterWrite(now: Nanos): void;
}

const MESSAGE_PME_TURN_OFF = 0x19;
const MESSAGE_PME_TO_ACK = 0x1b;
/** Gathered and routed to the root complex (table 2-18). */
const ROUTE_GATHERED = 5;
/**
 * Message codes an endpoint takes without doing anything (2.2.8): Unlock, Set_Slot_Power_Limit,
 * Vendor_Defined Type 1, and those that were the hot-plug signals of older versions (2.2.8.7).
 */
const TAKEN_MESSAGES: ReadonlySet<number> = new Set([
  0x00, 0x40, 0x41, 0x43, 0x44, 0x45, 0x47, 0x48, 0x50, 0x7f,
]);

/** Fmt[1] in a TLP's first byte (table 2-2). */
const FMT_WITH_DATA = 0x40;

export class Endpoint implements Timed {
  readonly config: ConfigSpace;
  readonly pcie: PcieCapability;
  /** `undefined` for a function without. */
  readonly msi: Msi | undefined;
  readonly aer: AdvancedErrorReporting;
  readonly dma: DmaEngine;
  readonly #errors: EndpointErrors;
  readonly #power: PowerManagement;
  readonly #intx: IntxWire | undefined;
  readonly #configHandlers = new Map<number, ConfigHandler>();
  readonly #memory: MemoryResponder;
  readonly #maxReadRequestBytes: number;
  readonly #completion = new Tlp();
  readonly #configData = new Uint8Array(4);
  readonly #configView = new DataView(this.#configData.buffer);
  #port: DevicePort | undefined;
  /** PME_TO_Ack could not be sent yet. */
  #ackOwed = false;

  constructor(options: EndpointOptions) {
    this.config = new ConfigSpace(options.identity);
    const bars = new Bars(this.config, options.bars);
    // No soft reset: D3hot is left with everything as it was.
    this.#power = new PowerManagement(this.config, { noSoftReset: true });
    const { msiVectors = 1 } = options;
    if (msiVectors > 0) {
      this.msi = new Msi(this.config, { vectors: msiVectors, perVectorMasking: false });
    }
    if (options.intx === true) this.#intx = new IntxWire(this.config);
    const tags = options.tags ?? 256;
    const { generation = 3, lanes = 16 } = options;
    assert(generation <= 3, 'an endpoint has no capabilities for links beyond 8 GT/s');
    this.pcie = new PcieCapability(this.config, {
      portType: PortType.ENDPOINT,
      maxPayloadBytes: options.maxPayloadBytes ?? 512,
      extendedTag: true,
      tenBitTagCompleter: true,
      tenBitTagRequester: tags > 256,
      generation,
      lanes,
    });
    this.aer = new AdvancedErrorReporting(this.config, { ecrc: false });
    this.#errors = new EndpointErrors(this.config, this.pcie, this.aer);
    const serial = BigInt.asUintN(64, options.serial);
    addDeviceSerialNumber(this.config, Number(serial >> 32n), Number(serial & 0xffff_ffffn));
    if (generation >= 3) addSecondaryPcie(this.config, lanes, false);
    this.dma = new DmaEngine({
      channels: options.dmaChannels ?? 1,
      tags,
      completionTimeoutNs: options.completionTimeoutNs ?? 4e9,
      onError: (status) => this.#errors.dma(status),
    });
    this.#memory = new MemoryResponder(bars, options.bars);
    this.#maxReadRequestBytes = options.maxReadRequestBytes ?? 4096;
    this.#updateLimits();
  }

  get counters(): Readonly<EndpointCounters> {
    return this.#errors.counters;
  }

  plug(port: DevicePort): void {
    assert(this.#port === undefined, 'the device is already plugged in');
    this.#port = port;
    this.dma.plug(port);
  }

  receive(now: Nanos, tlp: Tlp): void {
    // What a TLP carries counts only where it has data; reads leave the field alone.
    if (tlp.payloadBytes > this.dma.limits.maxPayloadBytes && (tlp.kind & FMT_WITH_DATA) !== 0) {
      this.#errors.malformed(tlp);
      return;
    }
    switch (tlp.kind) {
      case TlpKind.CplD:
      case TlpKind.Cpl:
        if (tlp.requesterId !== this.config.bdf || !this.dma.completion(now, tlp)) {
          this.#errors.unexpectedCompletion(tlp);
        }
        break;
      case TlpKind.MRd32:
      case TlpKind.MRd64:
        this.#memoryRead(now, tlp);
        break;
      case TlpKind.MWr32:
      case TlpKind.MWr64:
        if (this.#isPoisoned(now, tlp)) break;
        if (!this.#acceptsMemory(tlp) || !this.#memory.write(now, tlp)) this.#unsupported(now, tlp);
        break;
      case TlpKind.CfgRd0:
      case TlpKind.CfgWr0:
        this.#configRequest(now, tlp);
        break;
      case TlpKind.Msg:
      case TlpKind.MsgD:
        this.#message(now, tlp);
        break;
      default:
        if (!this.#isPoisoned(now, tlp)) this.#unsupported(now, tlp);
    }
  }

  /**
   * A run (`Device.receiveRun`). Memory writes are taken when the first is fit to be written and all lie
   * in one BAR with memory behind it: writing there changes nothing that is asked of the others.
   * Completions are taken as parts of one request that waits for them.
   */
  receiveRun(_now: Nanos, first: Tlp, stride: number, count: number): boolean {
    if (first.payloadBytes > this.dma.limits.maxPayloadBytes || first.poisoned) return false;
    if (first.kind === TlpKind.CplD) {
      return first.requesterId === this.config.bdf && this.dma.completionRun(first, stride, count);
    }
    return this.#acceptsMemory(first) && this.#memory.writeRun(first, stride, count);
  }

  resume(now: Nanos): void {
    if (this.#ackOwed) this.#acknowledgeTurnOff(now);
    this.#showInterrupt(now);
    this.dma.pump(now);
  }

  nextDeadlineNs(): number {
    return this.dma.nextDeadlineNs();
  }

  tick(now: Nanos): void {
    this.dma.tick(now);
  }

  /** Fundamental reset. Nothing of before is finished, and no DMA client is told. */
  reset(): void {
    this.#ackOwed = false;
    this.dma.reset();
    this.config.reset();
    this.#intx?.reset();
    this.#updateLimits();
  }

  /**
   * Sends the MSI of `vector` as a posted write of DMA channel `channel`, so behind the channel's
   * writes before it. Returns false when the host has not enabled MSI, or has at an address no write
   * can reach: nothing is sent then, and `client` is not called.
   */
  interrupt(
    now: Nanos,
    channel: number,
    vector: number,
    client: DmaClient | undefined,
    cookie: number,
  ): boolean {
    const { msi } = this;
    if (msi === undefined || msi.addressHi >= 0x20_0000 || !msi.raise(vector)) return false;
    const address = msi.addressHi * 0x1_0000_0000 + msi.addressLo;
    const data = msi.messageData(vector);
    this.dma.writeSmall(now, channel, address, data, 0, 4, client, cookie);
    return true;
  }

  /**
   * Says whether the function has an interrupt pending. The message that tells the host leaves behind
   * what was sent before, at once or as soon as it is taken; none does while the host has disabled INTx
   * or enabled MSI. Nothing happens without `intx`.
   */
  setInterruptLevel(now: Nanos, pending: boolean): void {
    this.#intx?.setLevel(pending);
    this.#showInterrupt(now);
  }

  /** Has `handler` called for accesses to a config register, one each. Nothing else changes for it. */
  handleConfig(register: number, handler: ConfigHandler): void {
    this.#configHandlers.set(register, handler);
  }

  #memoryRead(now: Nanos, tlp: Tlp): void {
    if (!this.#acceptsMemory(tlp)) {
      this.#unsupported(now, tlp);
      return;
    }
    const status = this.#memory.read(
      now,
      tlp,
      this.#connected(),
      this.config.bdf,
      this.pcie.maxPayloadBytes,
    );
    if (status === CompletionStatus.UR) this.#unsupported(now, tlp);
    else if (status === CompletionStatus.CA) this.#abort(now, tlp);
  }

  /** Untranslated, at an address a number holds, to a function that is awake. */
  #acceptsMemory(tlp: Tlp): boolean {
    return tlp.addressType === 0 && hasSafeAddress(tlp) && this.#power.powerState === PowerState.D0;
  }

  #configRequest(now: Nanos, tlp: Tlp): void {
    const { config } = this;
    // Function numbers other than 0 are not there (2.3.1).
    if ((tlp.completerId & 7) !== 0) {
      this.#unsupported(now, tlp);
      return;
    }
    if (tlp.kind === TlpKind.CfgRd0) {
      this.pcie.setTransactionsPending(this.dma.pending);
      this.#configHandlers.get(tlp.register)?.beforeRead(now);
      this.#configView.setUint32(0, config.read32(tlp.register), true);
      this.#respond(now, tlp, CompletionStatus.SC, this.#configData);
      return;
    }
    if (this.#isPoisoned(now, tlp)) return;
    const { register } = tlp;
    config.captureBdf(tlp.completerId);
    for (let i = 0; i < 4; i++) this.#configData[i] = tlp.payload[tlp.payloadOffset + i] as number;
    config.write(register, this.#configView.getUint32(0, true), tlp.firstBe);
    this.#updateLimits();
    this.#respond(now, tlp, CompletionStatus.SC, undefined);
    this.#configHandlers.get(register)?.afterWrite(now);
    this.#showInterrupt(now);
    this.dma.pump(now);
  }

  #message(now: Nanos, tlp: Tlp): void {
    if (tlp.messageCode === MESSAGE_PME_TURN_OFF) this.#acknowledgeTurnOff(now);
    else if (!TAKEN_MESSAGES.has(tlp.messageCode)) this.#unsupported(now, tlp);
  }

  /** Whatever the power state: power may be taken away once all functions have said so (5.3.3.2.1). */
  #acknowledgeTurnOff(now: Nanos): void {
    this.#ackOwed = !this.#connected().canSend(FlowClass.POSTED, 0);
    if (!this.#ackOwed) this.#sendMessage(now, MESSAGE_PME_TO_ACK, ROUTE_GATHERED);
  }

  /** INTx is no memory request: bus mastering may be off (7.5.1.1.3). */
  #showInterrupt(now: Nanos): void {
    const wire = this.#intx;
    if (wire === undefined) return;
    const masked = this.config.interruptDisable || this.msi?.enabled === true;
    const code = wire.owed(!masked && this.#power.powerState === PowerState.D0);
    if (code === 0 || !this.#connected().canSend(FlowClass.POSTED, 0)) return;
    wire.sent();
    this.#sendMessage(now, code, ROUTE_LOCAL);
  }

  #sendMessage(now: Nanos, code: number, routing: number): void {
    const message = this.#completion;
    resetTlp(message);
    message.kind = TlpKind.Msg;
    message.messageCode = code;
    message.messageRouting = routing;
    message.requesterId = this.config.bdf;
    this.#connected().send(now, message);
  }

  /** A poisoned request must change nothing (2.7.2.2); with a completion to give, it is UR. */
  #isPoisoned(now: Nanos, tlp: Tlp): boolean {
    if (!tlp.poisoned) return false;
    this.#errors.poisonedRequest(tlp);
    if (isAnswered(tlp)) this.#respond(now, tlp, CompletionStatus.UR, undefined);
    return true;
  }

  #unsupported(now: Nanos, tlp: Tlp): void {
    this.#errors.unsupportedRequest(tlp);
    if (isAnswered(tlp)) this.#respond(now, tlp, CompletionStatus.UR, undefined);
  }

  #abort(now: Nanos, tlp: Tlp): void {
    this.#errors.completerAbort(tlp);
    this.#respond(now, tlp, CompletionStatus.CA, undefined);
  }

  #respond(now: Nanos, request: Tlp, status: CompletionStatus, data: Uint8Array | undefined): void {
    const completion = this.#completion;
    if (data === undefined) {
      completeWithoutData(completion, request, this.config.bdf, status);
    } else {
      completeWithData(completion, request, this.config.bdf, 0, 4, 4, data, 0);
    }
    this.#connected().send(now, completion);
  }

  #updateLimits(): void {
    const { limits } = this.dma;
    limits.busMaster = this.config.busMaster && this.#power.powerState === PowerState.D0;
    limits.requesterId = this.config.bdf;
    limits.maxPayloadBytes = this.pcie.maxPayloadBytes;
    limits.maxReadRequestBytes = Math.min(this.pcie.maxReadRequestBytes, this.#maxReadRequestBytes);
    limits.tagBits = this.pcie.tagBits;
    limits.timeoutEnabled = !this.pcie.completionTimeoutDisabled;
  }

  #connected(): DevicePort {
    return assertDefined(this.#port, 'a TLP before the device was plugged in');
  }
}
