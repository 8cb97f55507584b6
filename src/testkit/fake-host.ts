/**
 * A host in the small, for tests of device models: plays configuration, MMIO and host memory on the
 * other side of a `DevicePort`. DMA reads are answered inside `send`, or when the test says so.
 */
import type { Nanos } from '#base/units';
import {
  completeWithData,
  completeWithoutData,
  firstByteAddress,
  requestByteCount,
} from '#pcie/completion';
import type { Device, DevicePort } from '#pcie/device';
import { completionChunk, setMemoryRead, setMemoryWrite } from '#pcie/split';
import {
  CompletionStatus,
  FlowClass,
  flowClassOf,
  resetTlp,
  Tlp,
  TlpKind,
  tlpAddress,
} from '#pcie/tlp';

const REQUESTER = 0x0010;

/** What a device sent, kept. */
export interface SentTlp {
  readonly atNs: number;
  readonly tlp: Tlp;
  readonly address: number;
}

export function cloneTlp(tlp: Tlp): Tlp {
  const copy = Object.assign(new Tlp(), tlp);
  copy.payload = tlp.payload.slice(tlp.payloadOffset, tlp.payloadOffset + tlp.payloadBytes);
  copy.payloadOffset = 0;
  return copy;
}

type Plugged = Pick<Device, 'plug' | 'receive' | 'resume'>;

export class FakeHost implements DevicePort {
  now = 0 as Nanos;
  readonly memory: Uint8Array;
  readonly memoryBase: number;
  /** Everything the device sent, oldest first; kept while `isRecording`. */
  readonly sent: SentTlp[] = [];
  isRecording = true;
  /** DMA reads not yet answered (`answerReads` false). */
  readonly waiting: Tlp[] = [];
  answerReads = true;
  /** How many more TLPs of each class are taken. */
  postedCredits = Infinity;
  nonPostedCredits = Infinity;
  mps = 128;
  rcb = 64;
  bdf = 0x0300;
  /** Called for every interrupt: a DWORD write to `msiAddress`. */
  msiAddress = -1;
  readonly interrupts: number[] = [];
  mostOutstanding = 0;
  #device: Plugged | undefined;
  #outstanding = 0;
  #tag = 0;

  constructor(memoryBase: number, memoryBytes: number) {
    this.memoryBase = memoryBase;
    this.memory = new Uint8Array(memoryBytes);
  }

  plug(device: Plugged): void {
    this.#device = device;
    device.plug(this);
  }

  canSend(flow: FlowClass, _payloadBytes: number): boolean {
    if (flow === FlowClass.POSTED) return this.postedCredits > 0;
    return flow === FlowClass.COMPLETION || this.nonPostedCredits > 0;
  }

  send(now: Nanos, tlp: Tlp): void {
    this.now = now;
    const kept = cloneTlp(tlp);
    const address = tlpAddress(kept);
    if (this.isRecording) this.sent.push({ atNs: now, tlp: kept, address });
    switch (flowClassOf(kept.kind)) {
      case FlowClass.POSTED:
        this.postedCredits--;
        if (address === this.msiAddress) this.interrupts.push(wordAt(kept));
        else this.#write(kept);
        break;
      case FlowClass.NON_POSTED:
        this.nonPostedCredits--;
        this.#outstanding++;
        this.mostOutstanding = Math.max(this.mostOutstanding, this.#outstanding);
        if (this.answerReads) this.answer(kept);
        else this.waiting.push(kept);
        break;
      default:
        break;
    }
  }

  /** Answers a DMA read from memory, or UR outside it. */
  answer(request: Tlp): void {
    let address = firstByteAddress(request);
    let remaining = requestByteCount(request);
    const start = address - this.memoryBase;
    if (start < 0 || start + remaining > this.memory.length) {
      this.answerWith(request, CompletionStatus.UR);
      return;
    }
    this.#outstanding--;
    const completion = new Tlp();
    while (remaining > 0) {
      const bytes = completionChunk(address, remaining, this.mps, this.rcb);
      const at = address - (address % 4) - this.memoryBase;
      completeWithData(completion, request, REQUESTER, address, remaining, bytes, this.memory, at);
      this.toDevice(completion);
      address += bytes;
      remaining -= bytes;
    }
  }

  answerWith(request: Tlp, status: CompletionStatus): void {
    this.#outstanding--;
    const completion = new Tlp();
    completeWithoutData(completion, request, REQUESTER, status);
    this.toDevice(completion);
  }

  /** Answers what waits, in the order of `order` (default: as sent). */
  answerAll(order: (requests: Tlp[]) => Tlp[] = (requests) => requests): void {
    for (const request of order(this.waiting.splice(0))) this.answer(request);
  }

  toDevice(tlp: Tlp): void {
    this.#plugged().receive(this.now, tlp);
  }

  resume(): void {
    this.#plugged().resume(this.now);
  }

  /** Sends a request and returns the completions that came of it at once. */
  request(tlp: Tlp): Tlp[] {
    const before = this.sent.length;
    this.toDevice(tlp);
    return this.sent
      .slice(before)
      .map((entry) => entry.tlp)
      .filter((sent) => flowClassOf(sent.kind) === FlowClass.COMPLETION);
  }

  configWrite(register: number, value: number, byteEnables = 15): Tlp[] {
    const tlp = this.#configRequest(TlpKind.CfgWr0, register, byteEnables);
    tlp.payload = littleEndian(value);
    tlp.payloadBytes = 4;
    return this.request(tlp);
  }

  configRead(register: number): number {
    const [completion] = this.request(this.#configRequest(TlpKind.CfgRd0, register, 15));
    if (completion === undefined) throw new Error('no completion');
    return completion.status === CompletionStatus.SC ? wordAt(completion) : 0xffff_ffff;
  }

  memoryWrite(address: number, data: Uint8Array): void {
    const tlp = new Tlp();
    setMemoryWrite(tlp, address, data.length, REQUESTER);
    tlp.payload = new Uint8Array(tlp.payloadBytes);
    tlp.payload.set(data, address % 4);
    this.toDevice(tlp);
  }

  memoryRead(address: number, bytes: number): Tlp[] {
    const tlp = new Tlp();
    setMemoryRead(tlp, address, bytes, REQUESTER, this.#tag++ & 31);
    return this.request(tlp);
  }

  write32(address: number, value: number): void {
    this.memoryWrite(address, littleEndian(value));
  }

  /** All ones when the answer is not a success. */
  read32(address: number): number {
    const [completion] = this.memoryRead(address, 4);
    if (completion === undefined) throw new Error('no completion');
    return completion.status === CompletionStatus.SC ? wordAt(completion) : 0xffff_ffff;
  }

  #configRequest(kind: TlpKind, register: number, byteEnables: number): Tlp {
    const tlp = new Tlp();
    resetTlp(tlp);
    tlp.kind = kind;
    tlp.lengthDw = 1;
    tlp.requesterId = REQUESTER;
    tlp.tag = this.#tag++ & 31;
    tlp.firstBe = byteEnables;
    tlp.completerId = this.bdf;
    tlp.register = register;
    return tlp;
  }

  #write(tlp: Tlp): void {
    for (let i = 0; i < tlp.payloadBytes; i++) {
      const dw = i >> 2;
      const enables = dw === 0 ? tlp.firstBe : dw === tlp.lengthDw - 1 ? tlp.lastBe : 15;
      if ((enables & (1 << (i & 3))) === 0) continue;
      const at = tlpAddress(tlp) + i - this.memoryBase;
      if (at >= 0 && at < this.memory.length) this.memory[at] = tlp.payload[i] as number;
    }
  }

  #plugged(): Plugged {
    if (this.#device === undefined) throw new Error('no device');
    return this.#device;
  }
}

export function littleEndian(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

export function wordAt(tlp: Tlp): number {
  return new DataView(tlp.payload.buffer, tlp.payload.byteOffset).getUint32(
    tlp.payloadOffset,
    true,
  );
}
