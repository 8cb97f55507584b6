/**
 * Gives the requests of a capture to a fresh device model, and says where what it does differs from
 * what was captured. What the device reads from host memory is answered with what it was answered
 * then, and between the same two requests of the host. Tags, the order of what is independent, and
 * timing may differ.
 *
 * What the device does only now differs when something it does later was captured: else it is what
 * it did after the capture had ended.
 */
import type { Nanos } from '#base/units';
import { completeWithoutData, isLastCompletion } from '#pcie/completion';
import type { Device } from '#pcie/device';
import { CompletionStatus, resetTlp, Tlp, TlpKind } from '#pcie/tlp';
import { decodeTlp, encodedTlpBytes, encodeTlp, TlpDecode } from '#pcie/tlp-codec';
import { tlpToLine } from '#pcie/tlp-text';
import type { CapturedFunction } from './pcapng.ts';
import {
  type CapturedPacket,
  type CaptureFault,
  type CaptureIndex,
  COMPLETION_TIMEOUT_NS,
  type Exchange,
  indexCapture,
  isCompletion,
  isNonPosted,
  isPosted,
  requestKey,
  transactionOf,
  writeKey,
} from './replay-index.ts';

export interface ReplayDifference {
  /** Of the request, or of what the device did then; 0 for what it did only now. */
  readonly packet: number;
  readonly what: 'completion' | 'dma-read' | 'dma-write' | 'unanswered' | CaptureFault['what'];
  readonly request?: string;
  readonly captured: readonly string[];
  readonly replayed: readonly string[];
}

export interface ReplayReport {
  readonly requests: number;
  readonly completions: number;
  readonly dmaReads: number;
  readonly dmaWrites: number;
  readonly differences: readonly ReplayDifference[];
}

/** Work of the device that ends later than this after the last packet is not waited for. */
const SETTLE_NS = 10e9;

/**
 * `captured` is how the function was configured when the capture began, `configWrites` what changed
 * that before the first of `packets`.
 */
export function replayCapture(
  device: Device,
  packets: readonly CapturedPacket[],
  captured: CapturedFunction | undefined,
  configWrites: readonly CapturedPacket[] = [],
): ReplayReport {
  return new Replay(device, packets).run(captured, configWrites);
}

interface Asked {
  readonly requesterId: number;
  readonly tag: number;
}

class Replay {
  readonly #device: Device;
  readonly #packets: readonly CapturedPacket[];
  readonly #index: CaptureIndex;
  readonly #tlp = new Tlp();
  readonly #answer = new Tlp();
  /** What the device sent and nobody has looked at yet. */
  readonly #sent: Uint8Array[] = [];
  /** Requests the device has not answered in full, and what it answered so far. */
  readonly #open = new Map<number, { packet: CapturedPacket; completions: Uint8Array[] }>();
  readonly #answered = new Map<number, Uint8Array[]>();
  readonly #nextWrite = new Map<string, number>();
  readonly #differences: ReplayDifference[] = [];
  /** What the device did only now, and nothing that was captured after it: perhaps cut off. */
  #unconfirmed: { readonly timeNs: number; readonly difference: ReplayDifference }[] = [];
  /** Under which tag the device has made a captured request again. */
  readonly #asked = new Map<Exchange, Asked>();
  /** The packet of the capture that is being replayed. */
  #cursor = 0;
  #nowNs = 0;
  #requests = 0;
  #completions = 0;
  #dmaReads = 0;
  #dmaWrites = 0;

  constructor(device: Device, packets: readonly CapturedPacket[]) {
    this.#device = device;
    this.#packets = packets;
    this.#index = indexCapture(packets);
    device.plug({
      canSend: () => true,
      send: (_now, tlp) => {
        const bytes = new Uint8Array(encodedTlpBytes(tlp));
        encodeTlp(tlp, bytes, 0);
        this.#sent.push(bytes);
      },
    });
  }

  run(
    captured: CapturedFunction | undefined,
    configWrites: readonly CapturedPacket[],
  ): ReplayReport {
    this.#device.reset(this.#now());
    if (captured !== undefined) this.#configure(captured);
    for (const { tlp } of configWrites) {
      if (decodeTlp(tlp, 0, tlp.length, this.#tlp) === TlpDecode.OK) {
        this.#device.receive(this.#now(), this.#tlp);
      }
    }
    this.#sent.length = 0;
    const begin = this.#packets[0]?.timeNs ?? 0n;
    for (const packet of this.#packets) {
      this.#advance(Number(packet.timeNs - begin));
      this.#cursor = packet.number;
      if (packet.direction === 'down' && !this.#index.ignored.has(packet.number)) {
        this.#give(packet);
      }
    }
    const endNs = this.#nowNs;
    // What the device asks from here on is answered with whatever the capture has.
    this.#cursor = Infinity;
    this.#advance(this.#nowNs + SETTLE_NS);
    // What is not captured for so long was not cut off.
    if (this.#unconfirmed.some(({ timeNs }) => endNs - timeNs >= COMPLETION_TIMEOUT_NS)) {
      this.#confirm();
    }
    this.#compare();
    return {
      requests: this.#requests,
      completions: this.#completions,
      dmaReads: this.#dmaReads,
      dmaWrites: this.#dmaWrites,
      differences: this.#differences.sort((a, b) => a.packet - b.packet),
    };
  }

  #now(): Nanos {
    return this.#nowNs as Nanos;
  }

  /** Writes back the config space there was. Read-only registers do not take it, as they should. */
  #configure({ bdf, configSpace }: CapturedFunction): void {
    // The command register last: nothing is decoded before it is where it belongs.
    const registers = Array.from({ length: 64 }, (_, index) => index * 4).filter((at) => at !== 4);
    for (const register of [...registers, 4]) {
      resetTlp(this.#tlp);
      this.#tlp.kind = TlpKind.CfgWr0;
      this.#tlp.completerId = bdf;
      this.#tlp.register = register;
      this.#tlp.firstBe = register === 4 ? 3 : 15;
      this.#tlp.lengthDw = 1;
      this.#tlp.payload = configSpace;
      this.#tlp.payloadOffset = register;
      this.#tlp.payloadBytes = 4;
      this.#device.receive(this.#now(), this.#tlp);
    }
  }

  #advance(toNs: number): void {
    this.#drain();
    for (;;) {
      const nextNs = this.#device.nextDeadlineNs();
      if (nextNs > toNs) break;
      this.#nowNs = Math.max(this.#nowNs, nextNs);
      this.#device.tick(this.#now());
      this.#drain();
    }
    this.#nowNs = Math.max(this.#nowNs, toNs);
  }

  #give(packet: CapturedPacket): void {
    if (decodeTlp(packet.tlp, 0, packet.tlp.length, this.#tlp) !== TlpDecode.OK) return;
    if (isCompletion(this.#tlp)) {
      const exchange = this.#index.exchangeOf.get(packet.number);
      const asked = exchange === undefined ? undefined : this.#asked.get(exchange);
      // Where the device has not asked yet, it gets the answer once it does.
      if (asked !== undefined) this.#deliver(packet, asked);
      this.#drain();
      return;
    }
    this.#requests++;
    if (isNonPosted(this.#tlp)) {
      this.#open.set(transactionOf(this.#tlp), { packet, completions: [] });
    }
    this.#device.receive(this.#now(), this.#tlp);
    this.#drain();
  }

  /** Looks at everything the device sent, and at what it sends because of the answers. */
  #drain(): void {
    for (let bytes = this.#sent.shift(); bytes !== undefined; bytes = this.#sent.shift()) {
      decodeTlp(bytes, 0, bytes.length, this.#tlp);
      if (isCompletion(this.#tlp)) this.#completion(bytes);
      else if (isNonPosted(this.#tlp)) this.#deviceRequest();
      else if (isPosted(this.#tlp)) this.#deviceWrite(bytes);
    }
  }

  #completion(bytes: Uint8Array): void {
    this.#completions++;
    const transaction = transactionOf(this.#tlp);
    const open = this.#open.get(transaction);
    if (open === undefined) {
      this.#differ(0, 'completion', [], [bytes]);
      return;
    }
    open.completions.push(bytes);
    if (this.#index.hostRequests.get(open.packet.number)?.complete === true) this.#confirm();
    if (!isLastCompletion(this.#tlp)) return;
    this.#open.delete(transaction);
    this.#answered.set(open.packet.number, open.completions);
  }

  #deviceRequest(): void {
    this.#dmaReads++;
    const { requesterId, tag } = this.#tlp;
    const known = this.#index.deviceRequests.get(requestKey(this.#tlp));
    const exchange = known?.find((one) => !one.used);
    if (exchange === undefined) {
      this.#onlyNow('dma-read', tlpToLine(this.#tlp));
      completeWithoutData(this.#answer, this.#tlp, 0, CompletionStatus.UR);
      this.#device.receive(this.#now(), this.#answer);
      return;
    }
    exchange.used = true;
    this.#confirm();
    const asked = { requesterId, tag };
    this.#asked.set(exchange, asked);
    for (const packet of exchange.completions) {
      if (packet.number <= this.#cursor) this.#deliver(packet, asked);
    }
  }

  /** Gives the device a captured completion under the tag it has used this time. */
  #deliver(packet: CapturedPacket, asked: Asked): void {
    decodeTlp(packet.tlp, 0, packet.tlp.length, this.#answer);
    this.#answer.requesterId = asked.requesterId;
    this.#answer.tag = asked.tag;
    this.#device.receive(this.#now(), this.#answer);
  }

  #deviceWrite(bytes: Uint8Array): void {
    this.#dmaWrites++;
    const key = writeKey(this.#tlp);
    const index = this.#nextWrite.get(key) ?? 0;
    this.#nextWrite.set(key, index + 1);
    const expected = this.#index.deviceWrites.get(key)?.[index];
    if (expected === undefined) {
      this.#onlyNow('dma-write', tlpToLine(this.#tlp));
      return;
    }
    this.#confirm();
    if (Buffer.compare(expected.tlp, bytes) !== 0) {
      this.#differ(expected.number, 'dma-write', [expected.tlp], [bytes]);
    }
  }

  #onlyNow(what: ReplayDifference['what'], line: string): void {
    const difference = { packet: 0, what, captured: [], replayed: [line] };
    this.#unconfirmed.push({ timeNs: this.#nowNs, difference });
  }

  /** The device does something that was captured: what it did before that should have been, too. */
  #confirm(): void {
    if (this.#unconfirmed.length === 0) return;
    for (const { difference } of this.#unconfirmed) this.#differences.push(difference);
    this.#unconfirmed = [];
  }

  #compare(): void {
    for (const { packet, what } of this.#index.faults) {
      this.#differ(packet.number, what, what === 'undecodable' ? [] : [packet.tlp], []);
    }
    for (const [number, exchange] of this.#index.hostRequests) {
      // Where the capture ends before the answer, there is nothing to compare with.
      if (!exchange.cutOff) this.#compareExchange(number, exchange);
    }
    for (const exchanges of this.#index.deviceRequests.values()) {
      for (const { packet, used, complete, cutOff } of exchanges) {
        if (!used) this.#differ(packet.number, 'dma-read', [packet.tlp], []);
        else if (!complete && !cutOff) this.#differ(packet.number, 'unanswered', [packet.tlp], []);
      }
    }
    for (const [key, writes] of this.#index.deviceWrites) {
      for (const packet of writes.slice(this.#nextWrite.get(key) ?? 0)) {
        this.#differ(packet.number, 'dma-write', [packet.tlp], []);
      }
    }
  }

  #compareExchange(number: number, exchange: Exchange): void {
    const replayed = this.#answered.get(number) ?? [];
    const same =
      exchange.complete &&
      replayed.length === exchange.completions.length &&
      replayed.every((bytes, index) => {
        const then = exchange.completions[index];
        return then !== undefined && Buffer.compare(bytes, then.tlp) === 0;
      });
    if (same) return;
    const [request] = this.#lines([exchange.packet.tlp]);
    this.#differences.push({
      packet: number,
      what: exchange.complete ? 'completion' : 'unanswered',
      ...(request === undefined ? {} : { request }),
      captured: this.#lines(exchange.completions.map((one) => one.tlp)),
      replayed: this.#lines(replayed),
    });
  }

  #differ(
    packet: number,
    what: ReplayDifference['what'],
    captured: readonly Uint8Array[],
    replayed: readonly Uint8Array[],
  ): void {
    this.#differences.push({
      packet,
      what,
      captured: this.#lines(captured),
      replayed: this.#lines(replayed),
    });
  }

  #lines(tlps: readonly Uint8Array[]): string[] {
    const tlp = new Tlp();
    return tlps.map((bytes) => {
      decodeTlp(bytes, 0, bytes.length, tlp);
      return tlpToLine(tlp);
    });
  }
}
