/**
 * The baseline: everything a demand asks of a GPU node, asked of all of them one after the other, in
 * bare columns. It takes the first that do, ranks nothing, and knows no windows, groups or boxes.
 */
import type { Demand } from '#placement/demand';
import type { HostFacts } from '#placement/facts';
import { type BenchPool, BOX_NODES, MODELS } from './placement-pool.ts';

export class NodeScan {
  readonly #free: Uint8Array;
  readonly #model: Uint8Array;
  readonly #memory: Float64Array;
  readonly #kind: Uint8Array;
  /** By box: round trip of the host asked for last; −1 where there is no path. */
  readonly #rtt: Float64Array;
  readonly #boxNumbers = new Map<string, number>();
  readonly #paths = new Map<string, readonly { readonly box: number; readonly rttNs: number }[]>();

  constructor({ boxes, nodes, hosts }: BenchPool) {
    for (const [number, box] of boxes.entries()) this.#boxNumbers.set(box.id, number);
    this.#free = Uint8Array.from(nodes, (node) => (this.#reachable(boxes, node.box) ? 1 : 0));
    this.#model = Uint8Array.from(nodes, (node) => MODELS.findIndex((one) => one === node.model));
    this.#memory = Float64Array.from(nodes, (node) => node.memoryBytes);
    this.#kind = Uint8Array.from(boxes, (box) => (box.kind === 'pcie' ? 0 : 1));
    this.#rtt = new Float64Array(boxes.length).fill(-1);
    for (const host of hosts) this.addHost(host);
  }

  addHost({ id, paths }: HostFacts): void {
    const up = paths.filter((path) => path.up);
    this.#paths.set(
      id,
      up.map(({ box, rttNs }) => ({ box: this.#number(box), rttNs })),
    );
  }

  setFree(box: string, slot: number, free: boolean): void {
    this.#free[this.#number(box) * BOX_NODES + slot] = free ? 1 : 0;
  }

  /** How many would do; the first of them are remembered. */
  scan(demand: Demand): number {
    const paths = this.#paths.get(demand.host) ?? [];
    for (const { box, rttNs } of paths) this.#rtt[box] = rttNs;
    const model = demand.model === undefined ? -1 : MODELS.findIndex((one) => one === demand.model);
    const anyModel = demand.model === undefined;
    const memory = demand.memoryBytes ?? 0;
    const kind = demand.boxKind === undefined ? -1 : demand.boxKind === 'pcie' ? 0 : 1;
    const limit = demand.maxRttNs ?? Infinity;
    const picks: number[] = [];
    let found = 0;
    for (let node = 0; node < this.#free.length; node++) {
      if (this.#free[node] === 0) continue;
      if (!anyModel && this.#model[node] !== model) continue;
      if ((this.#memory[node] ?? 0) < memory) continue;
      const box = Math.floor(node / BOX_NODES);
      if (kind >= 0 && this.#kind[box] !== kind) continue;
      const rttNs = this.#rtt[box] ?? -1;
      if (rttNs < 0 || rttNs > limit) continue;
      found++;
      if (picks.length < demand.gpus) picks.push(node);
    }
    for (const { box } of paths) this.#rtt[box] = -1;
    return found;
  }

  /** Of the same facts as bare columns, windows and names not counted. */
  get columnBytes(): number {
    let paths = 0;
    for (const list of this.#paths.values()) paths += list.length;
    const perNode = 1 + 1 + 8;
    // Box number and round trip.
    return this.#free.length * perNode + this.#kind.length * 9 + paths * (4 + 8);
  }

  #number(box: string): number {
    return this.#boxNumbers.get(box) ?? -1;
  }

  #reachable(boxes: BenchPool['boxes'], box: string): boolean {
    return boxes[this.#number(box)]?.reachable === true;
  }
}
