/**
 * Fragmentation gradient descent: the server, and the GPU in it, where a request adds the least
 * fragmentation. A score is kept for every state of a server and shape of request that met: few
 * states exist at a time, and one placement makes one new state at most.
 */
import { assertDefined } from '#base/assert';
import { type Demand, isShared, WHOLE_GPU } from './demand.ts';
import { Fragmentation, shapeKey, typicalDemands } from './fragmentation.ts';
import type { MakeServerPolicy, ServerPolicy, ServerPolicyInput } from './server-policy.ts';
import type { Servers } from './servers.ts';

const UNKNOWN = -1;
/** So many states are kept before all are forgotten. */
const MOST_STATES = 100_000;

interface State {
  readonly fragmentation: number;
  /** By shape of request: the score from 0 to 100, and the GPU for a part. */
  readonly scores: Int8Array;
  readonly gpus: Int16Array;
}

class Fgd implements ServerPolicy {
  readonly #servers: Servers;
  readonly #fragmentation: Fragmentation;
  readonly #shapes = new Map<Demand, number>();
  readonly #shapeCount: number;
  readonly #states = new Map<string, State>();
  readonly #stateOf: (State | undefined)[];
  readonly #versionOf: Float64Array;
  readonly #left: Uint16Array;
  /** One demand is put to all servers in turn: its shape is looked up once. */
  #demand: Demand | undefined;
  #shape = 0;

  constructor({ servers, workload }: ServerPolicyInput) {
    this.#servers = servers;
    this.#fragmentation = new Fragmentation(typicalDemands(workload), servers.models);
    const keys = new Map<string, number>();
    for (const kind of workload.kinds) {
      const key = shapeKey(kind);
      const shape = keys.get(key) ?? keys.size;
      keys.set(key, shape);
      this.#shapes.set(kind, shape);
    }
    this.#shapeCount = keys.size;
    this.#stateOf = new Array<State | undefined>(servers.count);
    this.#versionOf = new Float64Array(servers.count).fill(UNKNOWN);
    this.#left = new Uint16Array(servers.stride);
  }

  score(s: number, demand: Demand): number {
    const state = this.#state(s);
    const shape = this.#shapeOf(demand);
    const known = state.scores[shape] as number;
    return known === UNKNOWN ? this.#work(s, state, demand, shape) : known;
  }

  gpuFor(s: number, demand: Demand): number {
    this.score(s, demand);
    return this.#state(s).gpus[this.#shapeOf(demand)] as number;
  }

  #shapeOf(demand: Demand): number {
    if (demand !== this.#demand) {
      this.#demand = demand;
      this.#shape = assertDefined(this.#shapes.get(demand), 'a demand of the workload');
    }
    return this.#shape;
  }

  #state(s: number): State {
    const version = this.#servers.version[s] as number;
    const current = this.#stateOf[s];
    if (current !== undefined && this.#versionOf[s] === version) return current;
    const { cpuLeft, model, stride } = this.#servers;
    const left = this.#leftOf(s);
    const key = `${cpuLeft[s]},${model[s]},${left.join(',')}`;
    let state = this.#states.get(key);
    if (state === undefined) {
      if (this.#states.size >= MOST_STATES) this.#states.clear();
      state = {
        fragmentation: this.#fragmentation.amount(cpuLeft[s] as number, model[s] as number, left),
        scores: new Int8Array(this.#shapeCount).fill(UNKNOWN),
        gpus: new Int16Array(stride === 0 ? 0 : this.#shapeCount),
      };
      this.#states.set(key, state);
    }
    this.#stateOf[s] = state;
    this.#versionOf[s] = version;
    return state;
  }

  #leftOf(s: number): Uint16Array {
    const { gpuLeft, stride } = this.#servers;
    for (let g = 0; g < stride; g++) this.#left[g] = gpuLeft[s * stride + g] as number;
    return this.#left;
  }

  #work(s: number, state: State, demand: Demand, shape: number): number {
    const model = this.#servers.model[s] as number;
    const cpuAfter = (this.#servers.cpuLeft[s] as number) - demand.cpuMilli;
    const left = this.#leftOf(s);
    const scoreOf = (): number => {
      const gain = state.fragmentation - this.#fragmentation.amount(cpuAfter, model, left);
      return Math.trunc((1 / (1 + Math.exp(-gain / 1000))) * 100);
    };
    let score = UNKNOWN;
    if (isShared(demand)) {
      for (let gpu = 0; gpu < left.length; gpu++) {
        const before = left[gpu] as number;
        if (before < demand.gpuMilli || left.indexOf(before) < gpu) continue;
        left[gpu] = before - demand.gpuMilli;
        const here = scoreOf();
        left[gpu] = before;
        if (here > score) {
          score = here;
          state.gpus[shape] = gpu;
        }
      }
    } else {
      for (let gpu = 0, need = demand.gpus; need > 0; gpu++) {
        if (left[gpu] !== WHOLE_GPU) continue;
        left[gpu] = 0;
        need -= 1;
      }
      score = scoreOf();
    }
    state.scores[shape] = score;
    return score;
  }
}

export const fgd: MakeServerPolicy = (input) => new Fgd(input);
