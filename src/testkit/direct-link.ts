/**
 * A link without a network: what one proxy sends is handed to the other, within the call or when
 * `deliver` is called, in order, with a bounded number of completions on their way in each direction.
 */
import type { Nanos } from '#base/units';
import type { LinkPort, LinkUser, SlotState } from '#fabric/link-user';
import type { PeerIdentity } from '#fabric/transport';
import { FlowClass, flowClassOf, type Tlp } from '#pcie/tlp';
import { arrivedTlp } from './arrived-tlp.ts';
import { encoded } from './fake-link.ts';

interface Entry {
  readonly flow: FlowClass | undefined;
  readonly hand: (now: Nanos) => boolean;
}

class DirectEnd implements LinkPort {
  readonly peer: PeerIdentity;
  readonly queue: Entry[] = [];
  /** The user of the other end, and this user's view of it. */
  readonly user: LinkUser;
  other: DirectEnd | undefined;
  readonly #link: DirectLink;
  readonly attached = true;
  completions = 0;
  refused = false;
  kept = 0;

  constructor(link: DirectLink, peer: PeerIdentity, user: LinkUser) {
    this.#link = link;
    this.peer = peer;
    this.user = user;
  }

  canSend(flow: FlowClass): boolean {
    if (flow !== FlowClass.COMPLETION || this.completions < this.#link.completionRoom) return true;
    this.refused = true;
    return false;
  }

  sendTlp(now: Nanos, slot: number, generation: number, tlp: Tlp): void {
    const flow = flowClassOf(tlp.kind);
    const bytes = encoded(tlp);
    if (flow === FlowClass.COMPLETION) this.completions++;
    const { other } = this;
    if (other === undefined) throw new Error('not joined');
    const hand = (at: Nanos): boolean => {
      if (flow === FlowClass.COMPLETION) this.completions--;
      const done = other.user.linkTlp(at, other, arrivedTlp(slot, generation, bytes));
      if (!done) other.kept++;
      return done;
    };
    this.#put(now, { flow, hand });
  }

  /** Each by itself. */
  sendRun(): number {
    return 0;
  }

  sendSlotState(now: Nanos, slot: number, generation: number, state: SlotState): void {
    const { other } = this;
    if (other === undefined) throw new Error('not joined');
    const hand = (at: Nanos): boolean => {
      other.user.linkSlotState(at, other, slot, generation, state);
      return true;
    };
    this.#put(now, { flow: undefined, hand });
  }

  flush(): void {}

  release(): void {
    this.kept--;
    if (this.kept < 0) throw new Error('more credit was released than was kept');
  }

  #put(now: Nanos, entry: Entry): void {
    if (this.#link.immediate) entry.hand(now);
    else this.queue.push(entry);
  }
}

export class DirectLink {
  /** Completions on their way in one direction. */
  completionRoom = Infinity;
  readonly immediate: boolean;
  readonly host: DirectEnd;
  readonly box: DirectEnd;

  constructor(host: LinkUser, box: LinkUser, immediate: boolean) {
    this.immediate = immediate;
    this.host = new DirectEnd(this, { kind: 'box', id: 'b' }, host);
    this.box = new DirectEnd(this, { kind: 'host', id: 'h' }, box);
    this.host.other = this.box;
    this.box.other = this.host;
  }

  up(now: Nanos): void {
    this.host.user.linkUp(now, this.host);
    this.box.user.linkUp(now, this.box);
  }

  down(now: Nanos): void {
    this.host.queue.length = 0;
    this.box.queue.length = 0;
    this.host.user.linkDown(now, this.host, 'cut');
    this.box.user.linkDown(now, this.box, 'cut');
  }

  /** Hands over everything, and whatever that causes. */
  deliver(now: Nanos): void {
    for (;;) {
      for (const end of [this.host, this.box]) {
        for (let entry = end.queue.shift(); entry !== undefined; entry = end.queue.shift()) {
          entry.hand(now);
        }
        if (!end.refused) continue;
        end.refused = false;
        end.user.linkResume(now, end);
      }
      const idle = (end: DirectEnd): boolean => end.queue.length === 0 && !end.refused;
      if (idle(this.host) && idle(this.box)) return;
    }
  }
}
