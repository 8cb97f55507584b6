/** The links of a host, one to each box it has a way to, in real time. */
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import type { LinkTap } from '#fabric/link-options';
import type { PathReport } from '#proto/agent-messages';
import type { HostPeer } from '../core/data-plane.ts';
import type { LinkReport } from './counter-report.ts';
import { parseEndpoint } from './endpoint.ts';
import type { PeerLinks } from './host-plane.ts';
import { LinkToBox, type LinkToBoxOptions, type PathToBox } from './link-to-box.ts';

/** What all the links have in common. */
export type HostLinksOptions = Omit<LinkToBoxOptions, 'box' | 'paths'>;

export class HostLinks implements PeerLinks {
  readonly #options: HostLinksOptions;
  readonly #links = new Map<string, LinkToBox>();
  #tapOf: (box: string) => LinkTap | undefined = () => undefined;

  constructor(options: HostLinksOptions) {
    this.#options = options;
  }

  of(box: string): LinkToBox | undefined {
    return this.#links.get(box);
  }

  /** What a manager says that cannot be an address is logged and left out: its fault, not ours. */
  set(now: Nanos, peers: readonly HostPeer[]): void {
    const { log } = this.#options;
    const paths = peers.flatMap(({ box, endpoints }) =>
      endpoints.flatMap(({ path, address }) => {
        try {
          return [{ name: path, box, ...parseEndpoint(address) }];
        } catch (error) {
          log.error({ peer: `box ${box}`, path }, DxpuError.from(error).message);
          return [];
        }
      }),
    );
    this.setPaths(now, paths);
  }

  /** Keeps links to exactly the boxes these lead to; see `HostNode.setPaths`. */
  setPaths(now: Nanos, paths: readonly PathToBox[]): void {
    const byBox = new Map<string, PathToBox[]>();
    for (const path of paths) byBox.set(path.box, [...(byBox.get(path.box) ?? []), path]);
    for (const [box, toBox] of this.#links) {
      if (byBox.has(box)) continue;
      this.#links.delete(box);
      toBox.link.stop(now, 'the host was told to keep no link to this box');
    }
    for (const [box, ways] of byBox) {
      const toBox = this.#links.get(box);
      if (toBox === undefined) this.#start(now, box, ways);
      else toBox.setPaths(ways);
    }
    this.#options.onChanged();
  }

  #start(now: Nanos, box: string, paths: readonly PathToBox[]): void {
    const toBox = new LinkToBox({ ...this.#options, box, paths });
    this.#links.set(box, toBox);
    toBox.link.tap = this.#tapOf(box);
    toBox.link.start(now);
  }

  /** The tap of each link, those to come included. */
  setTaps(tapOf: (box: string) => LinkTap | undefined): void {
    this.#tapOf = tapOf;
    for (const [box, { link }] of this.#links) link.tap = tapOf(box);
  }

  reports(): readonly PathReport[] {
    return [...this.#links.values()].flatMap((one) => one.pathReports());
  }

  linkReports(): LinkReport[] {
    return [...this.#links.values()].map((one) => one.report());
  }

  nextDeadlineNs(): number {
    let nextNs = Infinity;
    for (const { link } of this.#links.values()) nextNs = Math.min(nextNs, link.nextDeadlineNs());
    return nextNs;
  }

  tick(now: Nanos): void {
    for (const { link } of this.#links.values()) link.tick(now);
  }

  stop(now: Nanos, reason: string): void {
    for (const { link } of this.#links.values()) link.stop(now, reason);
  }
}
