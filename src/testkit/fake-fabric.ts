/**
 * A fabric without proxies: TLPs pass between a root complex and devices, in order, after a fixed
 * delay each way. It checks nothing a host proxy would check. Tests can hold requests back, refuse
 * them and pull devices out.
 */
import { TimerDriver } from '#base/clock';
import type { Nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import {
  completeWithData,
  completeWithoutData,
  firstByteAddress,
  isLastCompletion,
  requestByteCount,
} from '#pcie/completion';
import type { Device, DevicePort } from '#pcie/device';
import type { DownstreamFabric, RootSide } from '#pcie/root-port';
import { completionChunk } from '#pcie/split';
import { CompletionStatus, FlowClass, flowClassOf, Tlp, TlpKind, tlpAddress } from '#pcie/tlp';
import { decodeTlp, encodeTlp, MAX_TLP_BYTES, TlpDecode } from '#pcie/tlp-codec';

/** What the fabric needs to know of a virtual port to route by. */
export interface FakeRoute {
  routesBus(bus: number): boolean;
  forwards(address: number, bytes: number): boolean;
}

/** A `Device`, or as much of one as answers requests. */
export type Pluggable = Pick<Device, 'plug' | 'receive'> & Partial<Device>;

interface Pending {
  readonly slot: number;
  readonly request: Tlp;
}

interface Slot {
  readonly device: Pluggable;
  readonly timer: TimerDriver | undefined;
}

const INTERRUPT_BASE = 0xfee0_0000;

export class FakeFabric implements DownstreamFabric {
  /** One way; 0 hands over from inside the call. */
  delayNs: number;
  /** Every downward request, in the order it was made. */
  readonly requests: Tlp[] = [];
  /** Says which downward requests are kept back until `releaseHeld`. */
  hold: (request: Tlp) => boolean = () => false;
  /** Says which downward requests `canRequest` lets pass. */
  accepts: (slot: number, flow: FlowClass) => boolean = () => true;
  readonly #memory = new Map<number, Uint8Array>();
  readonly #clock: VirtualClock;
  readonly #root: RootSide;
  readonly #routes: readonly FakeRoute[];
  readonly #slots = new Map<number, Slot>();
  readonly #held: Pending[] = [];
  /** Non-posted downward requests, by tag. */
  readonly #outstanding = new Map<number, Pending>();

  constructor(clock: VirtualClock, root: RootSide, routes: readonly FakeRoute[], delayNs = 1000) {
    this.#clock = clock;
    this.#root = root;
    this.#routes = routes;
    this.delayNs = delayNs;
  }

  /** Puts a device into a slot and brings its link up. */
  plug(index: number, device: Pluggable): void {
    const { nextDeadlineNs, tick } = device;
    const timer =
      nextDeadlineNs === undefined || tick === undefined
        ? undefined
        : new TimerDriver(this.#clock, {
            nextDeadlineNs: () => nextDeadlineNs.call(device),
            tick: (now) => tick.call(device, now),
          });
    const slot = { device, timer };
    this.#slots.set(index, slot);
    device.plug(this.#portOf(index, slot));
    this.#root.linkActive(this.#clock.now(), index, true, false);
  }

  /** Takes it out, as a host proxy does when a session ends: what is outstanding is answered UR. */
  unplug(index: number, surprise = true): void {
    this.#slots.get(index)?.timer?.stop();
    this.#slots.delete(index);
    const now = this.#clock.now();
    for (const pending of this.#outstanding.values()) {
      if (pending.slot === index) this.#refuse(now, pending);
    }
    this.#root.linkActive(now, index, false, surprise);
  }

  get heldCount(): number {
    return this.#held.length;
  }

  /** Lets what `hold` kept back go on. */
  releaseHeld(): void {
    for (const pending of this.#held.splice(0)) this.#down(this.#clock.now(), pending);
  }

  canRequest(virtualSlot: number, flow: FlowClass, _payloadBytes: number): boolean {
    return this.accepts(virtualSlot, flow);
  }

  /** Each by itself. */
  requestWrites(): number {
    return 0;
  }

  request(now: Nanos, tlp: Tlp): void {
    const request = copyOf(tlp);
    this.requests.push(request);
    const pending = { slot: this.#route(request), request };
    const isPosted = flowClassOf(request.kind) === FlowClass.POSTED;
    if (!isPosted) {
      if (this.#outstanding.has(request.tag)) throw new Error(`tag ${request.tag} is in use`);
      this.#outstanding.set(request.tag, pending);
    }
    if (!this.#slots.has(pending.slot)) {
      if (!isPosted) this.#refuse(now, pending);
    } else if (this.hold(request)) {
      this.#held.push(pending);
    } else {
      this.#after(now, (at) => this.#down(at, pending));
    }
  }

  registerMemory(base: number, memory: Uint8Array): void {
    this.#memory.set(base, memory);
  }

  unregisterMemory(base: number): void {
    this.#memory.delete(base);
  }

  #after(now: Nanos, fn: (now: Nanos) => void): void {
    if (this.delayNs === 0) fn(now);
    else this.#clock.at((now + this.delayNs) as Nanos, fn);
  }

  #down(now: Nanos, pending: Pending): void {
    const slot = this.#slots.get(pending.slot);
    if (slot === undefined) return;
    const request = copyOf(pending.request);
    if (request.kind === TlpKind.CfgRd1) request.kind = TlpKind.CfgRd0;
    if (request.kind === TlpKind.CfgWr1) request.kind = TlpKind.CfgWr0;
    slot.device.receive(now, request);
    slot.timer?.update();
  }

  #portOf(index: number, slot: Slot): DevicePort {
    return {
      canSend: () => true,
      send: (now, tlp) => {
        const kept = copyOf(tlp);
        this.#after(now, (at) => {
          if (this.#slots.get(index) === slot) this.#up(at, index, slot, kept);
        });
      },
    };
  }

  #up(now: Nanos, index: number, slot: Slot, tlp: Tlp): void {
    const flow = flowClassOf(tlp.kind);
    if (flow === FlowClass.COMPLETION) {
      const pending = this.#outstanding.get(tlp.tag);
      if (pending === undefined || pending.slot !== index) return;
      if (isLastCompletion(tlp)) this.#outstanding.delete(tlp.tag);
      this.#root.completion(now, tlp);
    } else if (flow === FlowClass.NON_POSTED) {
      const completions = this.#readMemory(tlp);
      this.#after(now, (at) => {
        for (const completion of completions) slot.device.receive(at, completion);
        slot.timer?.update();
      });
    } else if (tlpAddress(tlp) >= INTERRUPT_BASE && tlpAddress(tlp) < INTERRUPT_BASE + 0x10_0000) {
      const data = new DataView(tlp.payload.buffer, tlp.payload.byteOffset + tlp.payloadOffset);
      this.#root.interrupt(now, index, tlpAddress(tlp), data.getUint32(0, true));
    } else {
      this.#writeMemory(tlp);
    }
  }

  #readMemory(request: Tlp): Tlp[] {
    let address = firstByteAddress(request);
    let remaining = requestByteCount(request);
    const completions: Tlp[] = [];
    const [base, memory] = this.#regionOf(address, remaining);
    if (memory === undefined) {
      const out = new Tlp();
      completeWithoutData(out, request, 0, CompletionStatus.UR);
      return [out];
    }
    while (remaining > 0) {
      const bytes = completionChunk(address, remaining, 256, 64);
      const out = new Tlp();
      const start = address - (address % 4) - base;
      const payload = memory.slice(start, start + (((address % 4) + bytes + 3) & ~3));
      completeWithData(out, request, 0, address, remaining, bytes, payload, 0);
      completions.push(out);
      address += bytes;
      remaining -= bytes;
    }
    return completions;
  }

  #writeMemory(tlp: Tlp): void {
    const address = tlpAddress(tlp);
    const [base, memory] = this.#regionOf(address, tlp.payloadBytes);
    if (memory === undefined) return;
    for (let index = 0; index < tlp.payloadBytes; index++) {
      if (isByteEnabled(tlp, index)) {
        memory[address - base + index] = tlp.payload[tlp.payloadOffset + index] as number;
      }
    }
  }

  #regionOf(address: number, bytes: number): [number, Uint8Array | undefined] {
    for (const [base, memory] of this.#memory) {
      if (address >= base && address + bytes <= base + memory.length) return [base, memory];
    }
    return [0, undefined];
  }

  #refuse(now: Nanos, pending: Pending): void {
    if (this.#outstanding.get(pending.request.tag) !== pending) return;
    this.#outstanding.delete(pending.request.tag);
    const out = new Tlp();
    completeWithoutData(out, pending.request, 0, CompletionStatus.UR);
    this.#root.completion(now, out);
  }

  #route(request: Tlp): number {
    const isConfig = request.kind === TlpKind.CfgRd1 || request.kind === TlpKind.CfgWr1;
    return this.#routes.findIndex((route) =>
      isConfig
        ? route.routesBus(request.completerId >>> 8)
        : route.forwards(tlpAddress(request), request.lengthDw * 4),
    );
  }
}

/** Whether byte `index` of a memory write's payload is to be written. */
export function isByteEnabled(tlp: Tlp, index: number): boolean {
  const dw = index >>> 2;
  const enables = dw === 0 ? tlp.firstBe : dw === tlp.lengthDw - 1 ? tlp.lastBe : 15;
  return (enables & (1 << (index & 3))) !== 0;
}

/** Through the codec, which refuses what is not a TLP, so that nothing else can pass. */
function copyOf(tlp: Tlp): Tlp {
  const bytes = new Uint8Array(MAX_TLP_BYTES);
  const length = encodeTlp(tlp, bytes, 0);
  const copy = new Tlp();
  const result = decodeTlp(bytes, 0, length, copy);
  if (result !== TlpDecode.OK) throw new Error(`not a TLP: ${result}`);
  return copy;
}
