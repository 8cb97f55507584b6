/**
 * Hosts and boxes in one process and in virtual time: the real proxies, links and device models over
 * a virtual network. Everything that happens follows from the inputs and the seed.
 *
 * `VirtualPool` owns the clock and the network; each host and box is a process of its own that can be
 * killed and replaced. Tables are set by the caller, as an operator would by file.
 */
import { assert, assertDefined } from '#base/assert';
import { Prng } from '#base/prng';
import { VirtualClock } from '#base/virtual-clock';
import type { HostLink } from '#fabric/host-link';
import { VirtualNetwork, type VirtualPath, type VirtualPathOptions } from '#fabric/virtual-network';
import { VirtualBox, type VirtualBoxOptions } from './virtual-box.ts';
import { VirtualHost, type VirtualHostOptions } from './virtual-host.ts';

export class VirtualPool {
  readonly clock = new VirtualClock();
  readonly prng: Prng;
  readonly network: VirtualNetwork;
  readonly #hosts = new Map<string, VirtualHost>();
  readonly #boxes = new Map<string, VirtualBox>();
  #nextSessionId = 1;

  constructor(seed: number) {
    this.prng = new Prng(seed);
    this.network = new VirtualNetwork(this.clock, this.prng.fork());
  }

  /**
   * Starts a host process; one of the same id must have been killed before. One that `mayLag` has a clock of
   * its own, which its paths must know, and does not lag until `lagNs` of it is set.
   */
  startHost(options: Omit<VirtualHostOptions, 'newSessionId'>, mayLag = false): VirtualHost {
    assert(!this.#hosts.has(options.id), `host ${options.id} runs already`);
    const clock = mayLag ? new VirtualClock(this.clock) : this.clock;
    const host = new VirtualHost(clock, {
      ...options,
      newSessionId: () => this.#nextSessionId++,
    });
    this.#hosts.set(options.id, host);
    return host;
  }

  /** Starts a box process; one of the same id must have been killed before. */
  startBox(options: VirtualBoxOptions): VirtualBox {
    assert(!this.#boxes.has(options.id), `box ${options.id} runs already`);
    this.#catchUp();
    const box = new VirtualBox(this.clock, options);
    this.#boxes.set(options.id, box);
    return box;
  }

  /** `dialer`: a host that may lag, and alone dials over this path. */
  addPath(options: VirtualPathOptions, dialer?: VirtualHost): VirtualPath {
    return this.network.addPath(options, dialer?.clock);
  }

  /** Starts the link of a host to a box over the given paths. */
  link(hostId: string, boxId: string, paths: readonly VirtualPath[]): HostLink {
    return this.host(hostId).connect(boxId, () => this.#boxes.get(boxId)?.listener(), paths);
  }

  host(id: string): VirtualHost {
    return assertDefined(this.#hosts.get(id), `no host ${id} runs`);
  }

  box(id: string): VirtualBox {
    return assertDefined(this.#boxes.get(id), `no box ${id} runs`);
  }

  /** The process is gone at once, with all that was in its memory. */
  killHost(id: string): void {
    this.host(id).kill();
    this.#hosts.delete(id);
    this.network.kill({ kind: 'host', id });
  }

  killBox(id: string): void {
    this.#catchUp();
    this.box(id).kill();
    this.#boxes.delete(id);
    this.network.kill({ kind: 'box', id });
  }

  /** Hosts look for a box that they connect to. */
  #catchUp(): void {
    for (const host of this.#hosts.values()) host.clock.catchUp();
  }
}
