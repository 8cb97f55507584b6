/**
 * An observer between the root complex and the proxy of a host: each request of the CPU is answered
 * exactly once, by the function it went to or with an error, and interrupts are those of the
 * function's own vectors.
 */
import type { Nanos } from '#base/units';
import { MSI_ADDRESS, msiVectorOf } from '#host/msi-vectors';
import type { VirtualPortOptions } from '#host/virtual-port';
import type { DownstreamFabric, RootSide } from '#pcie/root-port';
import { CompletionStatus, FlowClass, flowClassOf, type Tlp, TlpKind, tlpAddress } from '#pcie/tlp';
import { type FaultOracle, Invariant } from './oracle.ts';
import { isLast, transactionOf } from './watched-device.ts';

export interface RootOwner {
  readonly name: string;
  /** Why nothing may come from the function behind a virtual slot now, or `undefined`. */
  refusal(virtualSlot: number): string | undefined;
  linkChanged(now: Nanos, virtualSlot: number, active: boolean, surprise: boolean): void;
}

interface Asked {
  readonly virtualSlot: number;
  readonly atNs: number;
}

export class RootWatch {
  readonly #owner: RootOwner;
  readonly #oracle: FaultOracle;
  readonly #ports: readonly VirtualPortOptions[];
  readonly #asked = new Map<number, Asked>();

  constructor(owner: RootOwner, oracle: FaultOracle, ports: readonly VirtualPortOptions[]) {
    this.#owner = owner;
    this.#oracle = oracle;
    this.#ports = ports;
  }

  /** When the oldest unanswered request was made; Infinity when all are answered. */
  get oldestNs(): number {
    for (const { atNs } of this.#asked.values()) return atNs;
    return Infinity;
  }

  unanswered(virtualSlot: number): number {
    let count = 0;
    for (const asked of this.#asked.values()) if (asked.virtualSlot === virtualSlot) count++;
    return count;
  }

  fabric(inner: DownstreamFabric): DownstreamFabric {
    return {
      canRequest: (virtualSlot, flow, bytes) => inner.canRequest(virtualSlot, flow, bytes),
      request: (now, tlp) => {
        if (flowClassOf(tlp.kind) === FlowClass.NON_POSTED) this.#ask(now, tlp);
        inner.request(now, tlp);
      },
      requestWrites: (now, first, count) => inner.requestWrites(now, first, count),
      registerMemory: (base, memory, access) => inner.registerMemory(base, memory, access),
      unregisterMemory: (base) => inner.unregisterMemory(base),
    };
  }

  rootSide(inner: RootSide): RootSide {
    return {
      completion: (now, tlp) => {
        this.#answer(tlp);
        inner.completion(now, tlp);
      },
      interrupt: (now, virtualSlot, address, data) => {
        this.#checkInterrupt(virtualSlot, address, data);
        inner.interrupt(now, virtualSlot, address, data);
      },
      interruptPin: (now, virtualSlot, asserted) => {
        this.#fail(Invariant.CONTAINED, `slot ${virtualSlot} interrupts by a pin it does not have`);
        inner.interruptPin(now, virtualSlot, asserted);
      },
      linkActive: (now, virtualSlot, active, surprise) => {
        this.#owner.linkChanged(now, virtualSlot, active, surprise);
        inner.linkActive(now, virtualSlot, active, surprise);
      },
      resume: (now) => inner.resume(now),
    };
  }

  #ask(now: Nanos, tlp: Tlp): void {
    const virtualSlot = this.#slotOf(tlp);
    this.#asked.set(transactionOf(tlp), { virtualSlot, atNs: now });
  }

  #answer(tlp: Tlp): void {
    const key = transactionOf(tlp);
    const asked = this.#asked.get(key);
    if (asked === undefined) {
      this.#fail(Invariant.CONTAINED, `the CPU got an answer to tag ${tlp.tag}, not outstanding`);
      return;
    }
    if (tlp.status === CompletionStatus.SC) {
      const reason = this.#owner.refusal(asked.virtualSlot);
      if (reason !== undefined) this.#fail(Invariant.FENCED, `the CPU got data ${reason}`);
    }
    if (isLast(tlp)) this.#asked.delete(key);
  }

  #checkInterrupt(virtualSlot: number, address: number, data: number): void {
    const reason = this.#owner.refusal(virtualSlot);
    if (reason !== undefined) this.#fail(Invariant.FENCED, `an interrupt ${reason}`);
    // The functions of this world ask for one vector.
    if (address !== MSI_ADDRESS || msiVectorOf(virtualSlot, data) !== 0) {
      const what = `0x${data.toString(16)} at 0x${address.toString(16)}`;
      this.#fail(
        Invariant.CONTAINED,
        `slot ${virtualSlot} raised an interrupt not its own: ${what}`,
      );
    }
  }

  #slotOf(tlp: Tlp): number {
    const config = tlp.kind === TlpKind.CfgRd1 || tlp.kind === TlpKind.CfgWr1;
    const address = config ? -1 : tlpAddress(tlp);
    const bus = config ? tlp.completerId >>> 8 : -1;
    return this.#ports.findIndex(
      (port) =>
        port.secondaryBus === bus ||
        isIn(address, port.nonPrefetchableBase, port.nonPrefetchableBytes) ||
        isIn(address, port.prefetchableBase, port.prefetchableBytes),
    );
  }

  #fail(invariant: Invariant, message: string): void {
    this.#oracle.fail(invariant, `${this.#owner.name}: ${message}`);
  }
}

function isIn(address: number, base: number, bytes: number): boolean {
  return address >= base && address < base + bytes;
}
