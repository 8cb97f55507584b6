/**
 * Machines with GPUs fixed into them: who has what left. Columns of numbers, for speed; the order of
 * machines is the order in which equals are preferred, which the caller has shuffled.
 */
import { assert } from '#base/assert';
import { acceptsModel, type Demand, isShared, type Machine, WHOLE_GPU } from './demand.ts';
import type { Placement } from './design.ts';
import { Outages } from './outages.ts';

/** GPUs of server `s` are numbered from `s * stride`. All arrays are read-only for policies. */
export class Servers {
  readonly count: number;
  /** GPUs of the largest machine. */
  readonly stride: number;
  /** CPU of the largest machine, in thousandths. */
  readonly maxCpuMilli: number;
  readonly machines: readonly Machine[];
  readonly gpuCount: Uint16Array;
  readonly model: Uint16Array;
  readonly models: readonly string[];
  readonly cpuLeft: Float64Array;
  readonly memoryLeft: Float64Array;
  /** Thousandths left of each GPU; 0 where the machine has fewer GPUs than `stride`. */
  readonly gpuLeft: Uint16Array;
  /** Over the GPUs of a server: thousandths left, GPUs wholly free, most left of one GPU. */
  readonly leftSum: Float64Array;
  readonly wholeFree: Uint16Array;
  readonly mostLeft: Uint16Array;
  /** How many requests of a size are on a server: column 0 for parts, column N for N whole GPUs. */
  readonly sizeCounts: Uint32Array;
  /** How many sizes are on a server. */
  readonly sizes: Uint16Array;
  /** Counts the changes to a server. */
  readonly version: Uint32Array;
  readonly capacityMilli: number;
  /** Servers that take nothing new. */
  readonly #down: Outages;
  readonly #accepts = new WeakMap<Demand, Uint8Array>();

  constructor(machines: readonly Machine[]) {
    const n = machines.length;
    this.machines = machines;
    this.count = n;
    this.stride = machines.reduce((most, { gpus }) => Math.max(most, gpus), 0);
    this.maxCpuMilli = machines.reduce((most, { cpuMilli }) => Math.max(most, cpuMilli), 0);
    this.models = [...new Set(machines.map(({ model }) => model))];
    this.gpuCount = Uint16Array.from(machines, ({ gpus }) => gpus);
    this.model = Uint16Array.from(machines, ({ model }) => this.models.indexOf(model));
    this.cpuLeft = Float64Array.from(machines, ({ cpuMilli }) => cpuMilli);
    this.memoryLeft = Float64Array.from(machines, ({ memoryMib }) => memoryMib);
    this.gpuLeft = new Uint16Array(n * this.stride);
    this.leftSum = new Float64Array(n);
    this.wholeFree = new Uint16Array(n);
    this.mostLeft = new Uint16Array(n);
    this.sizeCounts = new Uint32Array(n * (this.stride + 1));
    this.sizes = new Uint16Array(n);
    this.version = new Uint32Array(n);
    this.#down = new Outages(n);
    for (const [s, { gpus }] of machines.entries()) {
      this.gpuLeft.fill(WHOLE_GPU, s * this.stride, s * this.stride + gpus);
      this.#recount(s);
    }
    this.capacityMilli = this.leftSum.reduce((sum, left) => sum + left, 0);
  }

  /** Whether server `s` has room for the demand now. */
  fits(s: number, demand: Demand): boolean {
    return this.hasHostRoom(s, demand) && this.hasGpus(s, demand) && this.accepts(s, demand);
  }

  /** Whether CPU and memory are enough, and the server up. */
  hasHostRoom(s: number, demand: Demand): boolean {
    return (
      (this.cpuLeft[s] as number) >= demand.cpuMilli &&
      (this.memoryLeft[s] as number) >= demand.memoryMib &&
      !this.#down.isDown(s)
    );
  }

  /** Whether enough of its GPUs are free, of whatever model, and the server up. */
  hasGpus(s: number, demand: Demand): boolean {
    if (this.#down.isDown(s)) return false;
    return demand.gpuMilli < WHOLE_GPU
      ? (this.mostLeft[s] as number) >= demand.gpuMilli
      : (this.wholeFree[s] as number) >= demand.gpus;
  }

  /** Whether the GPUs of server `s` are of a model that will do. */
  accepts(s: number, demand: Demand): boolean {
    if (demand.models.length === 0) return true;
    let accepts = this.#accepts.get(demand);
    if (accepts === undefined) {
      accepts = Uint8Array.from(this.models, (model) => Number(acceptsModel(demand, model)));
      this.#accepts.set(demand, accepts);
    }
    return accepts[this.model[s] as number] === 1;
  }

  /** Takes the demand from server `s`, which fits; a part of a GPU comes from GPU `part` of it. */
  take(s: number, demand: Demand, part: number): Placement {
    const gpus =
      demand.gpus === 0 ? [] : isShared(demand) ? [part] : this.#wholeGpus(s, demand.gpus);
    const base = s * this.stride;
    const placement = { demand, host: s, gpus: gpus.map((gpu) => base + gpu) };
    this.#move(placement, -1);
    return placement;
  }

  give(placement: Placement): void {
    this.#move(placement, 1);
  }

  /** Takes exactly what was given back with this placement. */
  retake(placement: Placement): void {
    this.#move(placement, -1);
  }

  /** One more reason, or one less, for which server `s` takes nothing new. It keeps what it holds. */
  setDown(s: number, down: boolean): void {
    this.#down.change(s, down);
  }

  #wholeGpus(s: number, gpus: number): number[] {
    const found: number[] = [];
    const base = s * this.stride;
    for (let gpu = 0; found.length < gpus && gpu < this.stride; gpu++) {
      if (this.gpuLeft[base + gpu] === WHOLE_GPU) found.push(gpu);
    }
    return found;
  }

  #move({ demand, host, gpus }: Placement, sign: 1 | -1): void {
    const machine = this.machines[host] as Machine;
    const cpu = (this.cpuLeft[host] as number) + sign * demand.cpuMilli;
    const memory = (this.memoryLeft[host] as number) + sign * demand.memoryMib;
    assert(cpu >= 0 && cpu <= machine.cpuMilli, 'CPU given or taken twice');
    assert(memory >= 0 && memory <= machine.memoryMib, 'memory given or taken twice');
    assert(gpus.length === demand.gpus, 'a placement has the GPUs that were asked for');
    this.cpuLeft[host] = cpu;
    this.memoryLeft[host] = memory;
    for (const gpu of gpus) {
      const left = (this.gpuLeft[gpu] as number) + sign * demand.gpuMilli;
      assert(left >= 0 && left <= WHOLE_GPU, 'a GPU given or taken twice');
      this.gpuLeft[gpu] = left;
    }
    if (demand.gpus > 0) {
      const size = host * (this.stride + 1) + (isShared(demand) ? 0 : demand.gpus);
      const before = this.sizeCounts[size] as number;
      this.sizeCounts[size] = before - sign;
      if (before === 0) this.sizes[host] = (this.sizes[host] as number) + 1;
      if (before - sign === 0) this.sizes[host] = (this.sizes[host] as number) - 1;
      this.#recount(host);
    }
    this.version[host] = (this.version[host] as number) + 1;
  }

  #recount(s: number): void {
    let sum = 0;
    let whole = 0;
    let most = 0;
    for (let gpu = s * this.stride; gpu < (s + 1) * this.stride; gpu++) {
      const left = this.gpuLeft[gpu] as number;
      sum += left;
      if (left === WHOLE_GPU) whole += 1;
      if (left > most) most = left;
    }
    this.leftSum[s] = sum;
    this.wholeFree[s] = whole;
    this.mostLeft[s] = most;
  }
}
