/**
 * What was sent in each session and has not been delivered: the independent account by which
 * invariants 6b and 7 are judged. Filled in by the `LinkWatch`es at both ends of every link.
 */
import { RingBuffer } from '#base/ring-buffer';
import { orderingClassOf, passesPosted } from '#pcie/ordering';
import { CompletionStatus, FlowClass, flowClassOf, type Tlp, TlpKind } from '#pcie/tlp';
import { type FaultOracle, Invariant } from './oracle.ts';

/** Column of slot states, beside the three flow classes. */
const STATE = 3;

interface Sent {
  readonly hash: number;
  readonly generation: number;
  readonly order: number;
  readonly atNs: number;
  readonly sourceId: number;
}

/** One direction of one session. Per slot: within a flow class, first in, first out. */
export class Channel {
  /** The receiving end has heard that the session is over. */
  closed = false;
  readonly name: string;
  readonly #oracle: FaultOracle;
  readonly #queues = new Map<number, RingBuffer<Sent>>();
  #order = 0;
  #waiting = 0;

  constructor(name: string, oracle: FaultOracle) {
    this.name = name;
    this.#oracle = oracle;
  }

  get waiting(): number {
    return this.#waiting;
  }

  sent(slot: number, generation: number, tlp: Tlp, hash: number): void {
    const flow = flowClassOf(tlp.kind);
    const sourceId = flow === FlowClass.COMPLETION ? tlp.completerId : tlp.requesterId;
    this.#push(slot, flow, generation, hash, sourceId);
  }

  sentState(slot: number, generation: number, state: number): void {
    this.#push(slot, STATE, generation, state, 0);
  }

  /** `tlp` is what `hash` is of. */
  delivered(slot: number, generation: number, tlp: Tlp, hash: number): void {
    const flow = flowClassOf(tlp.kind);
    const sent = this.#take(slot, flow, generation, hash);
    if (sent === undefined || flow === FlowClass.POSTED) return;
    const posted = this.#head(slot, FlowClass.POSTED);
    if (posted === undefined || posted.order > sent.order) return;
    const sourceId = flow === FlowClass.COMPLETION ? tlp.completerId : tlp.requesterId;
    const completesWrite = tlp.kind === TlpKind.Cpl && tlp.status === CompletionStatus.SC;
    const ordering = orderingClassOf(tlp.kind);
    if (passesPosted(ordering, tlp.attributes, completesWrite, sourceId, posted.sourceId)) return;
    this.#oracle.fail(
      Invariant.PROGRESS,
      `${this.name}: kind 0x${tlp.kind.toString(16)} of slot ${slot} passed an earlier posted request`,
    );
  }

  deliveredState(slot: number, generation: number, state: number): void {
    const sent = this.#take(slot, STATE, generation, state);
    if (sent === undefined) return;
    for (let flow = 0; flow < STATE; flow++) {
      const head = this.#head(slot, flow);
      if (head !== undefined && head.order < sent.order) {
        this.#oracle.fail(
          Invariant.EXACT,
          `${this.name}: state ${state} of slot ${slot} passed an earlier TLP of class ${flow}`,
        );
      }
    }
  }

  /** When the oldest of those that nothing may hold up was sent; Infinity when there is none. */
  oldestNs(withNonPosted: boolean): number {
    let oldestNs = Infinity;
    for (const [key, queue] of this.#queues) {
      const column = key % 4;
      // A slot state waits for all that was sent before it, non-posted requests as well.
      if (!withNonPosted && (column === FlowClass.NON_POSTED || column === STATE)) continue;
      oldestNs = Math.min(oldestNs, queue.peek()?.atNs ?? Infinity);
    }
    return oldestNs;
  }

  close(): void {
    this.closed = true;
    this.#queues.clear();
    this.#waiting = 0;
  }

  #push(slot: number, column: number, generation: number, hash: number, sourceId: number): void {
    // The receiver has gone: what is sent to it now is lost with the session.
    if (this.closed) return;
    const order = this.#order++;
    const sent: Sent = { hash, generation, order, atNs: this.#oracle.nowNs, sourceId };
    const key = slot * 4 + column;
    let queue = this.#queues.get(key);
    if (queue === undefined) {
      queue = new RingBuffer<Sent>();
      this.#queues.set(key, queue);
    }
    queue.push(sent);
    this.#waiting++;
  }

  #head(slot: number, column: number): Sent | undefined {
    return this.#queues.get(slot * 4 + column)?.peek();
  }

  #take(slot: number, column: number, generation: number, hash: number): Sent | undefined {
    if (this.closed) {
      this.#oracle.fail(Invariant.LOUD, `${this.name}: something came after the session's end`);
      return undefined;
    }
    const sent = this.#queues.get(slot * 4 + column)?.shift();
    if (sent === undefined) {
      this.#oracle.fail(
        Invariant.EXACT,
        `${this.name}: class ${column} of slot ${slot} came more often than it was sent`,
      );
      return undefined;
    }
    this.#waiting--;
    if (sent.hash !== hash || sent.generation !== generation) {
      this.#oracle.fail(
        Invariant.EXACT,
        `${this.name}: class ${column} of slot ${slot} came as number ${sent.order} but is another`,
      );
    }
    return sent;
  }
}

/** All sessions of a world. */
export class SessionBook {
  readonly #oracle: FaultOracle;
  readonly #channels = new Map<string, Channel>();

  constructor(oracle: FaultOracle) {
    this.#oracle = oracle;
  }

  /**
   * What the end called `from` sends to the end called `to`. `begin` is set for the end that is up
   * first, the box: a session offered anew to a box that died meanwhile may have the same number.
   */
  channel(session: number, from: string, to: string, begin: boolean): Channel {
    const key = `session ${session}, ${from} to ${to}`;
    let channel = begin ? undefined : this.#channels.get(key);
    if (channel === undefined) {
      channel = new Channel(key, this.#oracle);
      this.#channels.set(key, channel);
    }
    return channel;
  }
}
