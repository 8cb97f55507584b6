/** The smallest hardware that serves a demand: by bisection, then by looking around. */
import { Prng } from '#base/prng';
import { askedMilli, type Demand, gpusOf, type Machine, WHOLE_GPU } from './demand.ts';
import type { Design } from './design.ts';
import { PoolDesign } from './pool-design.ts';
import { placed, type PoolShape, spreadMachines, takeApart } from './pool-hardware.ts';
import type { MakePoolPolicy } from './pool-policy.ts';
import { ServerDesign } from './server-design.ts';
import type { MakeServerPolicy } from './server-policy.ts';
import { drawArrivals, type Workload } from './workload.ts';

export interface FewestInput {
  readonly machines: readonly Machine[];
  readonly workload: Workload;
  readonly seeds: readonly number[];
  /** Arrivals until this share of the GPUs of `machines` has been asked for: the same in all designs. */
  readonly demandPct: number;
  /** Of the GPUs asked for, what every seed must place. */
  readonly sharePct: number;
  /** After the bisection so many smaller counts are tried, and as many again after each success. */
  readonly scan: number;
}

export interface Fewest {
  readonly gpus: number;
  readonly servers: number;
}

/** More than this many times the machines of the list, and the demand counts as unservable. */
const MOST_TIMES = 4;

/**
 * The fewest machines, in the mix of the list, that serve the demand in every seed; `undefined` if
 * even four times the list does not.
 */
export function fewestServers(
  input: FewestInput,
  makePolicy: MakeServerPolicy,
): Fewest | undefined {
  const { machines, workload } = input;
  const asked = new Seeds(input);
  const built = (count: number): Machine[] =>
    spreadMachines(machines, count).map(({ machine }) => machine);
  const servers = smallest(input, machines.length, (count) =>
    asked.served((prng) => new ServerDesign(built(count), workload, makePolicy, prng)),
  );
  return servers === undefined ? undefined : { servers, gpus: gpusOf(built(servers)) };
}

/**
 * The fewest GPUs with all machines of the list as hosts (more, in their mix, where GPUs are more),
 * and then the fewest hosts with so many GPUs.
 */
export function fewestPooled(
  input: FewestInput,
  makePolicy: MakePoolPolicy,
  shape: PoolShape,
): Fewest | undefined {
  const { machines, workload } = input;
  const asked = new Seeds(input);
  const perMachine = gpusOf(machines) / machines.length;
  const sources = spreadMachines(machines, machines.length * MOST_TIMES * 2);
  const serves = (servers: number | undefined, gpus: number): boolean => {
    const hosts = servers === undefined ? placed(machines) : spreadMachines(machines, servers);
    const hardware = takeApart(hosts, sources, shape, gpus);
    return asked.served((prng) => new PoolDesign(hardware, workload, makePolicy, prng));
  };
  const enough = (gpus: number): number | undefined =>
    gpus <= gpusOf(machines) ? undefined : Math.ceil(gpus / perMachine);
  const gpus = smallest(input, gpusOf(machines), (count) => serves(enough(count), count));
  if (gpus === undefined) return undefined;
  const most = enough(gpus) ?? machines.length;
  const servers = smallest(input, most, (count) => serves(count, gpus));
  return { gpus, servers: Math.min(servers ?? most, most) };
}

/**
 * The smallest count that serves. `serves` need not be monotone: what bisection finds is a count
 * that serves below which the next does not, and from there smaller ones are tried one by one.
 */
export function smallest(
  { scan }: Pick<FewestInput, 'scan'>,
  start: number,
  serves: (count: number) => boolean,
): number | undefined {
  let high = Math.max(1, start);
  let low = 0;
  while (!serves(high)) {
    if (high >= start * MOST_TIMES) return undefined;
    low = high;
    high = Math.min(start * MOST_TIMES, Math.ceil(high * 1.25));
  }
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (serves(middle)) high = middle;
    else low = middle;
  }
  // The count below it has just been seen not to serve.
  for (let tried = 1, count = high - 2; tried <= scan && count > 0; tried++, count--) {
    if (!serves(count)) continue;
    high = count;
    tried = 0;
  }
  return high;
}

/**
 * Asks whether every seed is served, again and again. The seed that was not served last is asked
 * first: the next hardware that is too small will mostly fail there too, and one seed is enough.
 */
class Seeds {
  readonly #input: FewestInput;
  readonly #order: number[];
  readonly #arrivals = new Map<number, Uint32Array>();

  constructor(input: FewestInput) {
    this.#input = input;
    this.#order = [...input.seeds];
  }

  served(build: (prng: Prng) => Design): boolean {
    const at = this.#order.findIndex((seed) => !this.#isServed(seed, build));
    if (at < 0) return true;
    this.#order.unshift(...this.#order.splice(at, 1));
    return false;
  }

  #isServed(seed: number, build: (prng: Prng) => Design): boolean {
    const { machines, workload, demandPct, sharePct } = this.#input;
    const prng = new Prng(seed);
    const ofArrivals = prng.fork();
    let arrivals = this.#arrivals.get(seed);
    if (arrivals === undefined) {
      const capacityMilli = gpusOf(machines) * WHOLE_GPU;
      arrivals = drawArrivals(workload, ofArrivals, capacityMilli, demandPct);
      this.#arrivals.set(seed, arrivals);
    }
    return servesShare(build(prng.fork()), workload.kinds, arrivals, sharePct);
  }
}

/** Whether the share of the GPUs asked for is placed. Stops as soon as it cannot be any more. */
export function servesShare(
  design: Design,
  kinds: readonly Demand[],
  arrivals: Uint32Array,
  sharePct: number,
): boolean {
  const asked = kinds.map(askedMilli);
  const total = arrivals.reduce((sum, kind) => sum + (asked[kind] as number), 0);
  let mayMiss = total * (1 - sharePct / 100);
  if (total - design.capacityMilli > mayMiss) return false;
  for (const kind of arrivals) {
    if (design.place(kinds[kind] as Demand) === undefined) mayMiss -= asked[kind] as number;
    if (mayMiss < 0) return false;
  }
  return true;
}
