/**
 * Hosts and boxes apart: who has what left, and which GPU is bound to whom. Columns of numbers, for
 * speed; all are read-only for policies.
 *
 * A GPU is free, bound whole to one request, or shared: bound to one host, whose requests take parts
 * of it. Bound or shared, it takes one virtual slot of its host. A shared GPU that nobody uses any
 * more is free again.
 */
import { assert } from '#base/assert';
import { BoxShelves } from './box-shelves.ts';
import { acceptsModel, type Demand, isShared, WHOLE_GPU } from './demand.ts';
import type { Placement } from './design.ts';
import { Outages } from './outages.ts';
import { membersOf, type PoolHardware } from './pool-hardware.ts';
import type { PoolWatcher } from './pool-watcher.ts';

const FREE = -1;

/** GPUs of box `b` are numbered from `b * stride`. */
export class Pool {
  readonly hardware: PoolHardware;
  readonly hostCount: number;
  readonly boxCount: number;
  readonly groups: number;
  readonly stride: number;
  readonly models: readonly string[];
  readonly maxCpuMilli: number;
  readonly capacityMilli: number;

  readonly cpuLeft: Float64Array;
  readonly memoryLeft: Float64Array;
  /** Over the hosts of a group. */
  readonly groupCpuLeft: Float64Array;
  readonly slotsLeft: Uint16Array;
  readonly hostGroup: Uint32Array;
  /** Hosts by group, and where in its group's list a host is. */
  readonly hostsOf: readonly (readonly number[])[];
  readonly placeInGroup: Uint32Array;
  /** GPUs that each host shares out in parts. */
  readonly parts: readonly number[][];

  readonly boxModel: Uint16Array;
  readonly boxGroup: Uint32Array;
  readonly boxSize: Uint16Array;
  readonly boxFree: Uint16Array;
  readonly boxesOf: readonly (readonly number[])[];
  readonly shelves: BoxShelves;

  /** Thousandths left: 1000 free, 0 whole, between them shared. */
  readonly gpuLeft: Uint16Array;
  readonly gpuHost: Int32Array;

  readonly #watchers: PoolWatcher[] = [];
  readonly #boxesDown: Outages;
  readonly #gpusDown: Outages;
  readonly #hostsDown: Outages;
  readonly #nvlink: ReadonlySet<number>;
  readonly #accepts = new WeakMap<Demand, readonly number[]>();

  constructor(hardware: PoolHardware) {
    const { hosts, boxes } = hardware;
    this.hardware = hardware;
    this.hostCount = hosts.length;
    this.boxCount = boxes.length;
    this.groups = hardware.groups;
    this.stride = hardware.gpusPerBox;
    this.models = [...new Set(boxes.map(({ model }) => model))];
    this.maxCpuMilli = hosts.reduce((most, { cpuMilli }) => Math.max(most, cpuMilli), 1);
    this.cpuLeft = Float64Array.from(hosts, ({ cpuMilli }) => cpuMilli);
    this.memoryLeft = Float64Array.from(hosts, ({ memoryMib }) => memoryMib);
    this.slotsLeft = Uint16Array.from(hosts, ({ slots }) => slots);
    this.hostGroup = Uint32Array.from(hosts, ({ group }) => group);
    this.groupCpuLeft = new Float64Array(this.groups);
    for (const { group, cpuMilli } of hosts) {
      this.groupCpuLeft[group] = (this.groupCpuLeft[group] as number) + cpuMilli;
    }
    this.hostsOf = membersOf(this.hostGroup, this.groups);
    this.placeInGroup = new Uint32Array(hosts.length);
    for (const members of this.hostsOf) {
      for (const [place, h] of members.entries()) this.placeInGroup[h] = place;
    }
    this.parts = hosts.map(() => []);
    this.boxModel = Uint16Array.from(boxes, ({ model }) => this.models.indexOf(model));
    this.#nvlink = new Set(
      boxes.filter(({ nvlink }) => nvlink).map(({ model }) => this.models.indexOf(model)),
    );
    this.boxGroup = Uint32Array.from(boxes, ({ group }) => group);
    this.boxSize = Uint16Array.from(boxes, ({ gpus }) => gpus);
    this.boxFree = Uint16Array.from(this.boxSize);
    this.boxesOf = membersOf(this.boxGroup, this.groups);
    this.#boxesDown = new Outages(boxes.length);
    this.#gpusDown = new Outages(boxes.length * this.stride);
    this.#hostsDown = new Outages(hosts.length);
    this.gpuLeft = new Uint16Array(boxes.length * this.stride);
    this.gpuHost = new Int32Array(boxes.length * this.stride).fill(FREE);
    for (const [b, { gpus }] of boxes.entries()) {
      this.gpuLeft.fill(WHOLE_GPU, b * this.stride, b * this.stride + gpus);
    }
    this.capacityMilli = boxes.reduce((sum, { gpus }) => sum + gpus * WHOLE_GPU, 0);
    this.shelves = new BoxShelves(this.groups, this.models.length, this.stride, boxes.length);
    for (const b of boxes.keys()) this.#shelve(b);
  }

  watch(watcher: PoolWatcher): void {
    this.#watchers.push(watcher);
  }

  /** The models, by number, that will do. */
  accepted(demand: Demand): readonly number[] {
    let accepted = this.#accepts.get(demand);
    if (accepted === undefined) {
      accepted = [...this.models.keys()].filter((model) =>
        acceptsModel(demand, this.models[model] ?? ''),
      );
      this.#accepts.set(demand, accepted);
    }
    return accepted;
  }

  hasHostRoom(h: number, demand: Demand): boolean {
    return (
      (this.cpuLeft[h] as number) >= demand.cpuMilli &&
      (this.memoryLeft[h] as number) >= demand.memoryMib &&
      !this.isHostDown(h)
    );
  }

  boxOf(gpu: number): number {
    return Math.floor(gpu / this.stride);
  }

  modelOf(gpu: number): number {
    return this.boxModel[this.boxOf(gpu)] as number;
  }

  /** Whether boxes of a model have NVLink between all their GPUs. */
  hasNvlink(model: number): boolean {
    return this.#nvlink.has(model);
  }

  /** The shared GPU of host `h` with the least left that is enough; -1 if it has none. */
  tightestPart(h: number, demand: Demand): number {
    const parts = this.parts[h] as readonly number[];
    if (parts.length === 0) return -1;
    const accepted = this.accepted(demand);
    let best = -1;
    let bestLeft = Infinity;
    for (const gpu of parts) {
      const left = this.gpuLeft[gpu] as number;
      if (left < demand.gpuMilli || left >= bestLeft) continue;
      if (!accepted.includes(this.modelOf(gpu)) || this.isDown(gpu)) continue;
      best = gpu;
      bestLeft = left;
    }
    return best;
  }

  /** So many free GPUs of box `b`, the first ones. It has them. */
  freeGpus(b: number, count: number): number[] {
    const found: number[] = [];
    for (let gpu = b * this.stride; found.length < count; gpu++) {
      assert(gpu < (b + 1) * this.stride, 'a box has as many free GPUs as it counts');
      if (this.gpuLeft[gpu] === WHOLE_GPU && !this.#gpusDown.isDown(gpu)) found.push(gpu);
    }
    return found;
  }

  /** Takes CPU, memory and these GPUs, which are free, or shared by host `h` with enough left. */
  take(h: number, demand: Demand, gpus: readonly number[]): Placement {
    assert(gpus.length === demand.gpus, 'as many GPUs as were asked for');
    this.#moveHost(h, demand, -1);
    for (const gpu of gpus) {
      if (this.gpuHost[gpu] === FREE) this.#bind(h, gpu, isShared(demand));
      assert(this.gpuHost[gpu] === h, 'a GPU is bound to one host');
      this.#moveGpu(gpu, -demand.gpuMilli);
    }
    this.#hostChanged(h);
    return { demand, host: h, gpus };
  }

  give({ demand, host, gpus }: Placement): void {
    this.#moveHost(host, demand, 1);
    for (const gpu of gpus) {
      assert(this.gpuHost[gpu] === host, 'a GPU given back was bound to the host');
      this.#moveGpu(gpu, demand.gpuMilli);
      if (this.gpuLeft[gpu] === WHOLE_GPU) this.#unbind(host, gpu);
    }
    this.#hostChanged(host);
  }

  /** Takes exactly what was given back with this placement. */
  retake({ demand, host, gpus }: Placement): void {
    this.take(host, demand, gpus);
  }

  isDown(gpu: number): boolean {
    return this.#gpusDown.isDown(gpu) || this.isBoxDown(this.boxOf(gpu));
  }

  isBoxDown(b: number): boolean {
    return this.#boxesDown.isDown(b);
  }

  isHostDown(h: number): boolean {
    return this.#hostsDown.isDown(h);
  }

  /** One more reason, or one less. A host that is down takes nothing new, and keeps what it has. */
  setHostDown(h: number, down: boolean): void {
    if (this.#hostsDown.change(h, down)) this.#hostChanged(h);
  }

  /** A box that is down gives no GPU to anybody. What is bound stays bound until it is given back. */
  setBoxDown(b: number, down: boolean): void {
    if (!this.#boxesDown.change(b, down)) return;
    if (down) this.shelves.remove(b);
    else this.#shelve(b);
    for (const watcher of this.#watchers) {
      watcher.boxChanged?.(b, down);
      watcher.groupChanged?.(this.boxGroup[b] as number);
    }
    for (let gpu = b * this.stride; gpu < (b + 1) * this.stride; gpu++) {
      const host = this.gpuHost[gpu] as number;
      if (host !== FREE) this.#hostChanged(host);
    }
  }

  /** The same of one GPU. */
  setGpuDown(gpu: number, down: boolean): void {
    if (!this.#gpusDown.change(gpu, down)) return;
    const host = this.gpuHost[gpu] as number;
    const group = this.boxGroup[this.boxOf(gpu)] as number;
    if (host === FREE) {
      this.#countFree(gpu, down ? -1 : 1);
      this.#gpuChanged(gpu);
      for (const watcher of this.#watchers) watcher.groupChanged?.(group);
    } else {
      this.#hostChanged(host);
    }
  }

  #gpuChanged(gpu: number): void {
    const bound = this.gpuHost[gpu] !== FREE;
    const state = bound ? 'bound' : !this.#gpusDown.isDown(gpu) ? 'free' : 'broken';
    for (const watcher of this.#watchers) watcher.gpuChanged?.(gpu, state);
  }

  #hostChanged(h: number): void {
    for (const watcher of this.#watchers) watcher.hostChanged?.(h);
  }

  #moveHost(h: number, demand: Demand, sign: 1 | -1): void {
    const has = this.hardware.hosts[h];
    const cpu = (this.cpuLeft[h] as number) + sign * demand.cpuMilli;
    const memory = (this.memoryLeft[h] as number) + sign * demand.memoryMib;
    assert(has !== undefined && cpu >= 0 && cpu <= has.cpuMilli, 'CPU given or taken twice');
    assert(memory >= 0 && memory <= has.memoryMib, 'memory given or taken twice');
    this.cpuLeft[h] = cpu;
    const group = this.hostGroup[h] as number;
    this.groupCpuLeft[group] = (this.groupCpuLeft[group] as number) + sign * demand.cpuMilli;
    this.memoryLeft[h] = memory;
  }

  #moveGpu(gpu: number, milli: number): void {
    const left = (this.gpuLeft[gpu] as number) + milli;
    assert(left >= 0 && left <= WHOLE_GPU, 'a GPU given or taken twice');
    this.gpuLeft[gpu] = left;
  }

  #bind(h: number, gpu: number, shared: boolean): void {
    assert((this.slotsLeft[h] as number) > 0, 'a host binds no more GPUs than it has slots');
    assert(!this.isDown(gpu), 'a box that is down gives no GPU');
    this.slotsLeft[h] = (this.slotsLeft[h] as number) - 1;
    this.gpuHost[gpu] = h;
    if (shared) this.parts[h]?.push(gpu);
    this.#countFree(gpu, -1);
    this.#gpuChanged(gpu);
  }

  #unbind(h: number, gpu: number): void {
    this.slotsLeft[h] = (this.slotsLeft[h] as number) + 1;
    this.gpuHost[gpu] = FREE;
    const parts = this.parts[h] as number[];
    const at = parts.indexOf(gpu);
    if (at >= 0) parts.splice(at, 1);
    if (!this.#gpusDown.isDown(gpu)) this.#countFree(gpu, 1);
    this.#gpuChanged(gpu);
  }

  #countFree(gpu: number, by: 1 | -1): void {
    const b = this.boxOf(gpu);
    this.boxFree[b] = (this.boxFree[b] as number) + by;
    if (!this.isBoxDown(b)) this.#shelve(b);
  }

  #shelve(b: number): void {
    this.shelves.put(
      b,
      this.boxGroup[b] as number,
      this.boxModel[b] as number,
      this.boxFree[b] as number,
    );
  }
}
