/**
 * What hostile functions and lying peers do: attacks from within a slot, and TLPs for slots and
 * generations that are not the sender's (invariants 2 and 3).
 */
import type { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import { MSI_ADDRESS } from '#host/msi-vectors';
import { FlowClass, flowClassOf, resetTlp, setTlpAddress, Tlp, TlpKind } from '#pcie/tlp';
import { encodeTlp } from '#pcie/tlp-codec';
import { buildFalseAnswer } from './attacks.ts';
import type { Binding } from './binding.ts';
import type { FaultBox } from './fault-box.ts';
import type { FaultHost } from './fault-host.ts';
import { LIAR_ID } from './forgery.ts';
import type { WatchedPort } from './watched-port.ts';
import type { Operator } from './operator.ts';

const PAYLOAD = new Uint8Array(64).fill(0xee);
/** Locked reads: well formed, and not supported. */
const MEMORY_READ_LOCKED = 0x01;

export class Mischief {
  readonly #prng: Prng;
  readonly #operator: Operator;
  readonly #tlp = new Tlp();
  readonly #bytes = new Uint8Array(128);
  #nextTag = 0;

  constructor(prng: Prng, operator: Operator) {
    this.#prng = prng;
    this.#operator = operator;
  }

  /** One of the hostile functions of a box tries something. */
  attack(now: Nanos, box: FaultBox, hostOf: (binding: Binding) => FaultHost | undefined): void {
    for (const binding of this.#operator.bindings) {
      if (binding.box !== box.name) continue;
      const device = box.hostileAt(binding.slot);
      const host = hostOf(binding);
      if (device === undefined || host === undefined) continue;
      device.attack(now, host.canaries.targets(binding.virtualSlot, this.#prng.chance(0.5)));
    }
    box.settle();
  }

  /** A box claims what is not its own. */
  forgeUp(now: Nanos, host: FaultHost): void {
    const port = this.#pick([...host.watch.ports]);
    if (port === undefined) return;
    const target = host.canaries.targets(0, false);
    const tlp = this.#tlp;
    resetTlp(tlp);
    tlp.requesterId = this.#prng.chance(0.5) ? LIAR_ID : 0x0100;
    switch (this.#prng.below(4)) {
      case 0:
        this.#write(tlp, target.canary, 4);
        break;
      case 1:
        this.#write(tlp, MSI_ADDRESS, 1);
        tlp.payload = Uint8Array.of(target.otherData & 255, target.otherData >> 8, 0, 0);
        break;
      case 2:
        this.#read(tlp, target.canary);
        break;
      default:
        buildFalseAnswer(tlp, this.#prng.below(64), 0x0100);
    }
    this.#forge(now, host, port, 'box');
  }

  /** A host claims what is not its own. */
  forgeDown(now: Nanos, box: FaultBox): void {
    const port = this.#pick([...box.watch.ports]);
    if (port === undefined) return;
    const tlp = this.#tlp;
    resetTlp(tlp);
    switch (this.#prng.below(4)) {
      case 0:
        this.#write(tlp, 0xe000_0004 + 0x10_0000 * this.#prng.below(4), 1);
        break;
      case 1:
        this.#read(tlp, 0xe000_0000 + 0x10_0000 * this.#prng.below(4));
        break;
      case 2:
        tlp.kind = TlpKind.CfgWr0;
        tlp.requesterId = LIAR_ID;
        tlp.completerId = 0x0100;
        tlp.register = 4;
        tlp.lengthDw = 1;
        tlp.firstBe = 15;
        tlp.payload = PAYLOAD;
        tlp.payloadBytes = 4;
        break;
      default:
        buildFalseAnswer(tlp, this.#prng.below(32), 0);
        tlp.requesterId = 0x0100 * this.#prng.between(1, 4);
    }
    this.#forge(now, box, port, 'host');
  }

  #forge(
    now: Nanos,
    receiver: FaultHost | FaultBox,
    port: WatchedPort,
    side: 'host' | 'box',
  ): void {
    const tlp = this.#tlp;
    const mine = this.#pick(this.#operator.bindings.filter((b) => b[side] === port.peer.id));
    if (mine !== undefined && this.#prng.chance(0.2)) {
      this.#forgeMalformed(now, receiver, port, mine);
      return;
    }
    const others = this.#operator.bindings.filter(
      (b) => b[side] !== port.peer.id && b[receiver.kind] === receiver.name,
    );
    const other = this.#pick(others);
    let slot = this.#prng.below(5);
    // Generations are never used again, and none below this one ever was.
    let generation = 1;
    if (other !== undefined && this.#prng.chance(0.7)) {
      // The very slot and generation of somebody else. On a host the slot number may be one of the
      // liar's own as well; its generation is not.
      ({ slot, generation } = other);
    } else if (mine !== undefined && this.#prng.chance(0.7)) {
      slot = mine.slot;
    }
    let tag: number | undefined;
    if (flowClassOf(tlp.kind) === FlowClass.NON_POSTED) {
      if (port.forged.size > 100) return;
      tlp.requesterId = LIAR_ID;
      while (port.forged.has(this.#nextTag)) this.#nextTag = (this.#nextTag + 1) % 1024;
      tag = this.#nextTag;
      tlp.tag = tag;
    }
    const length = encodeTlp(tlp, this.#bytes, 0);
    // A locked read carries what a read does.
    if (tlp.kind === TlpKind.MRd32 && this.#prng.chance(0.3)) this.#bytes[0] = MEMORY_READ_LOCKED;
    receiver.watch.forge(now, port, slot, generation, this.#bytes.slice(0, length), tag);
  }

  /** Under the sender's own slot and generation, but no TLP. */
  #forgeMalformed(
    now: Nanos,
    receiver: FaultHost | FaultBox,
    port: WatchedPort,
    mine: Binding,
  ): void {
    const tlp = this.#tlp;
    this.#write(tlp, 0x10_0000, 4);
    const length = encodeTlp(tlp, this.#bytes, 0);
    switch (this.#prng.below(3)) {
      case 0:
        // Says it is longer than it is.
        this.#bytes[3] = 200;
        break;
      case 1:
        // A length of 4 DW with no last byte enables.
        this.#bytes[7] = 0x0f;
        break;
      default:
        // A reserved kind, with data.
        this.#bytes[0] = 0x5f;
    }
    const { slot, generation } = mine;
    receiver.watch.forge(now, port, slot, generation, this.#bytes.slice(0, length));
  }

  #write(tlp: Tlp, address: number, lengthDw: number): void {
    setTlpAddress(tlp, address, TlpKind.MWr32, TlpKind.MWr64);
    tlp.lengthDw = lengthDw;
    tlp.firstBe = 15;
    tlp.lastBe = lengthDw > 1 ? 15 : 0;
    tlp.payload = PAYLOAD;
    tlp.payloadOffset = 0;
    tlp.payloadBytes = 4 * lengthDw;
  }

  #read(tlp: Tlp, address: number): void {
    setTlpAddress(tlp, address, TlpKind.MRd32, TlpKind.MRd64);
    tlp.lengthDw = 1;
    tlp.firstBe = 15;
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items.length === 0 ? undefined : this.#prng.pick(items);
  }
}
