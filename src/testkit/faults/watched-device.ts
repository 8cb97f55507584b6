/**
 * An observer around a device in a box slot. Whatever reaches the device must be of the binding in
 * force (invariant 2), and each non-posted request it sends must be answered exactly once, at the
 * latest when it is reset (invariants 3 and 6c).
 */
import type { Nanos } from '#base/units';
import type { Device, DeviceIdentity, DevicePort } from '#pcie/device';
import { CompletionStatus, FlowClass, flowClassOf, type Tlp, TlpKind } from '#pcie/tlp';
import { type FaultOracle, Invariant } from './oracle.ts';

export interface DeviceOwner {
  readonly name: string;
  /** Why a request must not reach the device of `slot` now, or `undefined`. */
  refusal(slot: number): string | undefined;
}

export class WatchedDevice implements Device {
  readonly slot: number;
  readonly inner: Device;
  readonly #owner: DeviceOwner;
  readonly #oracle: FaultOracle;
  /** When each request that waits for completions was sent, by requester and tag. */
  readonly #outstanding = new Map<number, number>();

  constructor(inner: Device, slot: number, owner: DeviceOwner, oracle: FaultOracle) {
    this.inner = inner;
    this.slot = slot;
    this.#owner = owner;
    this.#oracle = oracle;
  }

  get identity(): DeviceIdentity {
    return this.inner.identity;
  }

  /** When the oldest unanswered request was sent; Infinity when all are answered. */
  get oldestNs(): number {
    for (const atNs of this.#outstanding.values()) return atNs;
    return Infinity;
  }

  plug(port: DevicePort): void {
    this.inner.plug({
      canSend: (flow, payloadBytes) => port.canSend(flow, payloadBytes),
      send: (now, tlp) => {
        this.#sent(now, tlp);
        port.send(now, tlp);
      },
      sendWrites: (now, first, count) => {
        const sent = port.sendWrites?.(now, first, count) ?? 0;
        this.#oracle.counts.posted += sent;
        return sent;
      },
    });
  }

  receive(now: Nanos, tlp: Tlp): void {
    if (flowClassOf(tlp.kind) === FlowClass.COMPLETION) {
      if (!this.#answered(tlp)) return;
    } else if (!this.#mayReach()) {
      return;
    }
    this.inner.receive(now, tlp);
  }

  receiveRun(now: Nanos, first: Tlp, stride: number, count: number): boolean {
    // None of them ends its request.
    const isDue =
      flowClassOf(first.kind) === FlowClass.COMPLETION ? this.#answered(first) : this.#mayReach();
    return isDue && this.inner.receiveRun?.(now, first, stride, count) === true;
  }

  resume(now: Nanos): void {
    this.inner.resume(now);
  }

  reset(now: Nanos): void {
    // What it sent in the very instant of its end is forgotten with it.
    if (this.oldestNs < now) {
      const count = this.#outstanding.size;
      this.#oracle.fail(Invariant.LOUD, `${this.#name()}: reset with ${count} requests unanswered`);
    }
    this.#outstanding.clear();
    this.inner.reset(now);
  }

  scrub(now: Nanos): void {
    this.inner.scrub(now);
  }

  nextDeadlineNs(): number {
    return this.inner.nextDeadlineNs();
  }

  tick(now: Nanos): void {
    this.inner.tick(now);
  }

  #name(): string {
    return `${this.#owner.name} slot ${this.slot}`;
  }

  #mayReach(): boolean {
    const reason = this.#owner.refusal(this.slot);
    if (reason === undefined) return true;
    this.#oracle.fail(Invariant.FENCED, `${this.#name()}: reached by a request ${reason}`);
    return false;
  }

  #sent(now: Nanos, tlp: Tlp): void {
    const { counts } = this.#oracle;
    const flow = flowClassOf(tlp.kind);
    if (flow === FlowClass.POSTED) counts.posted++;
    if (flow !== FlowClass.NON_POSTED) return;
    counts.dmaReads++;
    const key = transactionOf(tlp);
    if (this.#outstanding.has(key)) {
      this.#oracle.fail(Invariant.BUG, `${this.#name()}: the device reused a tag in flight`);
    }
    this.#outstanding.set(key, now);
  }

  /** Whether the completion answers something. */
  #answered(tlp: Tlp): boolean {
    const key = transactionOf(tlp);
    if (!this.#outstanding.has(key)) {
      this.#oracle.fail(
        Invariant.CONTAINED,
        `${this.#name()}: a completion of tag ${tlp.tag} for which nothing is outstanding`,
      );
      return false;
    }
    if (isLast(tlp)) this.#outstanding.delete(key);
    return true;
  }
}

/** Requester and tag together name a transaction (2.2.6.2). */
export function transactionOf(tlp: Tlp): number {
  return (tlp.requesterId << 10) | tlp.tag;
}

/** Whether a completion is the last of its request: it has an error, or all bytes that were left. */
export function isLast(tlp: Tlp): boolean {
  if (tlp.status !== CompletionStatus.SC || tlp.kind === TlpKind.Cpl) return true;
  return 4 * tlp.lengthDw - (tlp.lowerAddress & 3) >= tlp.byteCount;
}
