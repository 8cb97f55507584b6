/**
 * What is done to a cluster on purpose: agents killed, streams and links cut, hardware broken, agents turned
 * liars, and what `ManagerTrouble` does. Each thing ends by itself after a while, or in `heal`.
 */
import type { Prng } from '#base/prng';
import type { VirtualClock } from '#base/virtual-clock';
import type { Batch } from '#manager/domain/batch';
import { BINDING_STATES, type BindingRecord, type BindingState } from '#manager/domain/records';
import type { AgentProcess } from './agent-process.ts';
import type { Honesty } from './honesty.ts';
import { drawDuration, Lasting } from './lasting.ts';
import { Liar, type LiarsKnowledge } from './liar.ts';
import { ManagerTrouble, type TroubledManager } from './manager-trouble.ts';
import type { BoxHardware } from './model-box-slot.ts';
import type { ModelLink, ModelLinks } from './model-links.ts';
import { SLOTS_PER_BOX } from './plan.ts';

export interface TroubledCluster extends TroubledManager {
  readonly clock: VirtualClock;
  readonly honesty: Honesty;
  readonly links: ModelLinks;
  readonly hardware: readonly BoxHardware[];
  readonly knowledge: LiarsKnowledge;
  agents(): AgentProcess[];
  /** Starts the process of this host or box anew; kills it first if it lives. */
  restartAgent(id: string): void;
  killAgent(id: string): void;
  /** Agents that do not reach the manager, though it lives. */
  readonly cutOff: Set<string>;
  /** Messages of this agent take so much longer. */
  readonly slowNs: Map<string, number>;
}

export class ClusterTrouble {
  readonly #world: TroubledCluster;
  readonly #prng: Prng;
  readonly #lasting: Lasting;
  readonly #manager: ManagerTrouble;
  /** States in which the next binding is struck. */
  readonly #strikes = new Set<BindingState>();

  constructor(world: TroubledCluster, prng: Prng) {
    this.#world = world;
    this.#prng = prng;
    this.#lasting = new Lasting(world.clock, world.oracle);
    this.#manager = new ManagerTrouble(world, prng);
  }

  /** Does one thing, drawn at random. */
  make(): void {
    const draw = this.#prng.float();
    if (draw < 0.16) this.#strikeLater();
    else if (draw < 0.26) this.#manager.crash();
    else if (draw < 0.35) this.#killAgent();
    else if (draw < 0.39) this.#cutOff();
    else if (draw < 0.47) this.#cutStream();
    else if (draw < 0.52) this.#slowStream();
    else if (draw < 0.54) this.#loseOrder();
    else if (draw < 0.7) this.#cutLink();
    else if (draw < 0.84) this.#lie();
    else if (draw < 0.86) this.#refuseTables();
    else if (draw < 0.89) this.#breakHardware();
    else if (draw < 0.93) this.#manager.fillDisk();
    else if (draw < 0.96) this.#manager.moveClock();
    else this.#manager.restoreStore();
  }

  /** Ends everything: from here on all are honest, alive and connected. */
  heal(): void {
    const world = this.#world;
    this.#strikes.clear();
    this.#lasting.endAll();
    world.store.fullFor = 0;
    world.managerPauseNs = 0;
    if (world.manager !== undefined) world.manager.planned = undefined;
  }

  /** Something happens to a binding's own proxies at the very moment it comes into a state. */
  #strikeLater(): void {
    // A reserved one waits for nobody, and a failed one for long.
    const state = this.#prng.pick(['reserved', 'failed', ...BINDING_STATES] as const);
    this.#strikes.add(state);
    this.#world.oracle.event(`something will happen to the next that is ${state}`);
  }

  /** A batch is durable, and nobody has been told. */
  committed({ bindings }: Batch): void {
    if (this.#strikes.size === 0) return;
    const struck = bindings.find((record) => this.#strikes.has(record.state));
    if (struck === undefined) return;
    const { state } = struck;
    this.#strikes.delete(state);
    this.#world.oracle.counts.up(`struck while ${state}`);
    if (this.#prng.chance(state === 'reserved' ? 0.8 : 0.2)) {
      this.#world.managerPauseNs = this.#duration(20e9);
      this.#world.manager?.crash();
    }
    this.#strike(struck);
  }

  #strike({ box, boxSlot, host }: BindingRecord): void {
    const prng = this.#prng;
    const what = prng.below(8);
    const id = prng.chance(0.6) ? box : host;
    const agent = this.#world.agents().find((one) => one.id === id && !one.isDead);
    if (what < 3) {
      if (agent !== undefined) this.#cutOff(agent, 300e9);
    } else if (what === 3) {
      if (agent !== undefined) this.#killAgent(agent, 150e9);
    } else if (what === 4) {
      this.#breakNode(box, boxSlot, 'gone');
    } else if (what === 5) {
      this.#breakNode(box, boxSlot, prng.pick(['fails', 'hangs']));
    } else if (what === 6) {
      this.#refuseTables(agent);
    } else {
      this.#cutLink(this.#world.links.of(host, box));
    }
  }

  #killAgent(agent = this.#anyAgent(), longestNs = 40e9): void {
    if (agent === undefined) return;
    const { id } = agent;
    this.#world.oracle.tell(`kill ${id}`, 'agents killed');
    this.#world.killAgent(id);
    this.#lasting.begin(
      `process ${id}`,
      this.#prng.chance(0.4) ? 0 : this.#duration(longestNs),
      () => this.#world.restartAgent(id),
    );
  }

  /** The agent goes on, and its proxy, but the manager is out of reach. */
  #cutOff(agent = this.#anyAgent(), longestNs = 150e9): void {
    if (agent === undefined) return;
    const { id, stream } = agent;
    this.#world.oracle.tell(`${id} does not reach the manager`, 'agents cut off');
    this.#world.cutOff.add(id);
    stream?.cut('both');
    this.#lasting.begin(`way of ${id}`, this.#duration(longestNs), () =>
      this.#world.cutOff.delete(id),
    );
  }

  #cutStream(): void {
    const agent = this.#anyAgent();
    if (agent?.stream?.isWhole !== true) return;
    const told = this.#prng.pick(['both', 'agent', 'manager'] as const);
    this.#world.oracle.tell(
      `cut the stream of ${agent.id}, told: ${told}`,
      `streams cut, told ${told}`,
    );
    agent.stream.cut(told);
  }

  #slowStream(): void {
    const agent = this.#anyAgent();
    if (agent === undefined) return;
    const { id } = agent;
    this.#world.oracle.tell(`the stream of ${id} is slow`, 'streams slow');
    this.#world.slowNs.set(id, this.#duration(8e9));
    this.#lasting.begin(`slow ${id}`, this.#duration(30e9), () => this.#world.slowNs.delete(id));
  }

  /** A stream that breaks in the middle: an agent must see that an order is missing. */
  #loseOrder(): void {
    const agent = this.#anyAgent();
    const stream = agent?.stream;
    if (agent === undefined || stream?.isWhole !== true) return;
    this.#world.oracle.tell(`the next order to ${agent.id} is lost`, 'orders lost');
    stream.losesOrder = true;
    this.#lasting.begin(`order ${agent.id}`, this.#duration(30e9), () => stream.cut('both'));
  }

  /** A proxy that cannot put any table in force, as when memory is where a window is. */
  #refuseTables(agent = this.#anyAgent()): void {
    if (agent === undefined) return;
    const { id, plane } = agent;
    const { faults } = plane.kind === 'box' ? plane.box : plane.host;
    faults.refuses = true;
    this.#world.oracle.tell(`${id} refuses tables`, 'tables refused');
    this.#lasting.begin(`tables ${id}`, this.#duration(30e9), () => {
      faults.refuses = false;
      agent.changed();
    });
  }

  /** Mostly one that somebody uses. */
  #anyLink(): ModelLink | undefined {
    const { links, mirror } = this.#world;
    const records = [...mirror.bindings.values()];
    const used = records.length > 0 ? this.#prng.pick(records) : undefined;
    return used !== undefined && this.#prng.chance(0.9)
      ? links.of(used.host, used.box)
      : this.#prng.pick(links.all);
  }

  #cutLink(link = this.#anyLink()): void {
    const { links } = this.#world;
    if (link === undefined) return;
    this.#world.oracle.tell(`cut the link of ${link.host} and ${link.box}`, 'links cut');
    links.cut(link);
    this.#lasting.begin(`link ${link.host} ${link.box}`, this.#duration(15e9), () =>
      links.heal(link),
    );
  }

  #lie(): void {
    const { honesty, knowledge } = this.#world;
    const agent = this.#anyAgent();
    if (agent === undefined || agent.liar !== undefined) return;
    const { id, plane } = agent;
    honesty.lies(id);
    const liar = new Liar(plane.kind, this.#prng.fork(), knowledge);
    agent.liar = liar;
    let what: string = liar.lie;
    if (this.#prng.chance(0.25)) {
      what = 'keeps its old rows';
      const proxy = plane.kind === 'box' ? plane.box : plane.host;
      proxy.faults.keepsRows = true;
    }
    this.#world.oracle.tell(`${id} lies: ${what}`, `lie of a ${plane.kind}: ${what}`);
    // Most lies come unasked.
    if (this.#prng.chance(0.8)) agent.stream?.cut('both');
    this.#lasting.begin(`lie ${id}`, this.#duration(40e9), () => this.#world.restartAgent(id));
  }

  #breakHardware(): void {
    const { id } = this.#prng.pick(this.#world.hardware).plan;
    const what = this.#prng.pick(['gone', 'gone', 'fails', 'hangs'] as const);
    this.#breakNode(id, this.#prng.below(SLOTS_PER_BOX), what);
  }

  /** A GPU node is pulled out for a while, or cannot be scrubbed. */
  #breakNode(id: string, number: number, what: 'gone' | 'fails' | 'hangs'): void {
    const slot = this.#world.hardware.find((box) => box.plan.id === id)?.nodes[number];
    const node = slot?.node;
    if (slot === undefined || node === undefined) return;
    const put = (next: typeof node | undefined): void => {
      slot.node = next;
      slot.content = 0;
      const agent = this.#world.agents().find((one) => one.id === id);
      if (agent?.plane.kind === 'box') agent.plane.box.replaceNode(number, next);
    };
    this.#world.oracle.tell(`${id}/${number}: ${what}`, `GPU node ${what}`);
    if (what === 'gone') put(undefined);
    else slot.defect = what;
    this.#lasting.begin(`node ${id} ${number}`, this.#duration(60e9), () => {
      if (what === 'gone') put(node);
      else slot.defect = undefined;
    });
  }

  #anyAgent(): AgentProcess | undefined {
    const living = this.#world.agents().filter((agent) => !agent.isDead);
    if (living.length === 0) return undefined;
    const records = [...this.#world.mirror.bindings.values()];
    if (records.length === 0 || this.#prng.chance(0.3)) return this.#prng.pick(living);
    // Mostly one that is about something.
    const { host, box } = this.#prng.pick(records);
    const id = this.#prng.chance(0.5) ? host : box;
    return living.find((agent) => agent.id === id);
  }

  #duration(longestNs: number): number {
    return drawDuration(this.#prng, longestNs);
  }
}
