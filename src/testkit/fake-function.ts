/**
 * The least that can be behind a port: a config space, BARs with plain memory, and answers to the
 * requests that reach it. What it holds is what a test sets; it starts nothing of its own.
 */
import type { Nanos } from '#base/units';
import { type BarSpec, Bars } from '#pcie/bar';
import {
  completeWithData,
  completeWithoutData,
  firstByteAddress,
  requestByteCount,
} from '#pcie/completion';
import { ConfigSpace } from '#pcie/config-space';
import type { DevicePort } from '#pcie/device';
import { Msi } from '#pcie/msi';
import { PcieCapability, PortType } from '#pcie/pcie-capability';
import { completionChunk, setMemoryWrite } from '#pcie/split';
import { CompletionStatus, Tlp, TlpKind, tlpAddress } from '#pcie/tlp';
import { isByteEnabled } from './fake-fabric.ts';

export interface FakeFunctionOptions {
  readonly bars: readonly BarSpec[];
  readonly maxPayloadBytes?: number;
  readonly vectors?: number;
  /** Config requests are answered "retry" until then. */
  readonly readyAtNs?: number;
}

export const FAKE_VENDOR_ID = 0x1234;
export const FAKE_DEVICE_ID = 0x5678;

export class FakeFunction {
  readonly config: ConfigSpace;
  readonly bars: Bars;
  readonly pcie: PcieCapability;
  readonly msi: Msi;
  readonly memory = new Map<number, Uint8Array>();
  /** Every config write in order, as `register: value`. */
  readonly configWrites: { register: number; value: number; byteEnables: number }[] = [];
  readyAtNs: number;
  #port: DevicePort | undefined;

  constructor(options: FakeFunctionOptions) {
    this.config = new ConfigSpace({
      vendorId: FAKE_VENDOR_ID,
      deviceId: FAKE_DEVICE_ID,
      revisionId: 0x42,
      classCode: 0x030200,
      subsystemVendorId: 0x1111,
      subsystemId: 0x2222,
    });
    this.bars = new Bars(this.config, options.bars);
    this.msi = new Msi(this.config, { vectors: options.vectors ?? 1, perVectorMasking: true });
    this.pcie = new PcieCapability(this.config, {
      portType: PortType.ENDPOINT,
      maxPayloadBytes: options.maxPayloadBytes ?? 256,
      extendedTag: true,
      tenBitTagCompleter: true,
      tenBitTagRequester: true,
      generation: 3,
      lanes: 16,
    });
    for (const bar of options.bars) {
      // Large ones only exist in config space.
      if (bar.sizeBytes <= 2 ** 24) this.memory.set(bar.index, new Uint8Array(bar.sizeBytes));
    }
    this.readyAtNs = options.readyAtNs ?? 0;
  }

  plug(port: DevicePort): void {
    this.#port = port;
  }

  /** An interrupt of its own accord, to wherever software has pointed it. */
  sendMsi(now: Nanos, vector: number): void {
    if (!this.msi.raise(vector)) return;
    const tlp = new Tlp();
    setMemoryWrite(tlp, this.msi.addressLo, 4, this.config.bdf);
    tlp.payload = new Uint8Array(4);
    view(tlp.payload).setUint32(0, this.msi.messageData(vector), true);
    this.#port?.send(now, tlp);
  }

  /** Answers a request with as many completions as it takes; a posted one with none. */
  receive(now: Nanos, request: Tlp): void {
    const answer = (completion: Tlp): void => this.#port?.send(now, completion);
    switch (request.kind) {
      case TlpKind.CfgRd0:
      case TlpKind.CfgWr0:
        this.#config(now, request, answer);
        return;
      case TlpKind.MRd32:
      case TlpKind.MRd64:
        this.#read(request, answer);
        return;
      default:
        this.#write(request);
    }
  }

  #config(now: Nanos, request: Tlp, answer: (completion: Tlp) => void): void {
    const out = new Tlp();
    const id = request.completerId;
    if (now < this.readyAtNs) {
      completeWithoutData(out, request, id, CompletionStatus.CRS);
    } else if (((id >>> 3) & 31) !== 0) {
      completeWithoutData(out, request, id, CompletionStatus.UR);
    } else if (request.kind === TlpKind.CfgWr0) {
      const value = view(request.payload).getUint32(request.payloadOffset, true);
      this.configWrites.push({
        register: request.register,
        value,
        byteEnables: request.firstBe,
      });
      this.config.captureBdf(id);
      this.config.write(request.register, value, request.firstBe);
      completeWithoutData(out, request, id, CompletionStatus.SC);
    } else {
      const data = new Uint8Array(4);
      view(data).setUint32(0, this.config.read32(request.register), true);
      completeWithData(out, request, id, 0, 4, 4, data, 0);
    }
    answer(out);
  }

  #read(request: Tlp, answer: (completion: Tlp) => void): void {
    let address = firstByteAddress(request);
    let remaining = requestByteCount(request);
    const bar = this.bars.match(address, remaining);
    const memory = this.memory.get(bar);
    if (memory === undefined) {
      const out = new Tlp();
      completeWithoutData(out, request, this.config.bdf, CompletionStatus.UR);
      answer(out);
      return;
    }
    let offset = this.bars.matchedOffset;
    while (remaining > 0) {
      const bytes = completionChunk(address, remaining, this.pcie.maxPayloadBytes, 64);
      const payload = new Uint8Array(((address % 4) + bytes + 3) & ~3);
      payload.set(memory.subarray(offset, offset + bytes), address % 4);
      const out = new Tlp();
      completeWithData(out, request, this.config.bdf, address, remaining, bytes, payload, 0);
      answer(out);
      address += bytes;
      offset += bytes;
      remaining -= bytes;
    }
  }

  #write(request: Tlp): void {
    const address = tlpAddress(request);
    const bar = this.bars.match(address, request.payloadBytes);
    const memory = this.memory.get(bar);
    if (memory === undefined) return;
    const offset = this.bars.matchedOffset;
    for (let index = 0; index < request.payloadBytes; index++) {
      if (!isByteEnabled(request, index)) continue;
      memory[offset + index] = request.payload[request.payloadOffset + index] as number;
    }
  }
}

function view(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
