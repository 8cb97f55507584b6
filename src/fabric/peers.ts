import type { Nanos } from '#base/units';
import type { LinkPort } from './link-user.ts';

/** The peers of a proxy, each with its one session. */
export class Peers<P extends { readonly link: LinkPort }> {
  readonly #byId = new Map<string, P>();
  /** The same, to go through at the end of each turn. */
  #list: readonly P[] = [];
  #last: P | undefined;

  /** Whose session `link` is: asked for each TLP, and mostly for the same. */
  of(link: LinkPort): P | undefined {
    if (this.#last?.link === link) return this.#last;
    const peer = this.#byId.get(link.peer.id);
    if (peer?.link !== link) return undefined;
    this.#last = peer;
    return peer;
  }

  named(id: string): P | undefined {
    return this.#byId.get(id);
  }

  add(peer: P): void {
    this.#byId.set(peer.link.peer.id, peer);
    this.#list = [...this.#byId.values()];
  }

  remove(peer: P): void {
    this.#byId.delete(peer.link.peer.id);
    this.#list = [...this.#byId.values()];
    this.#last = undefined;
  }

  [Symbol.iterator](): Iterator<P> {
    return this.#byId.values();
  }

  flush(now: Nanos): void {
    for (const { link } of this.#list) link.flush(now);
  }
}
