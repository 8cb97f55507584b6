import { describe, expect, it } from 'vitest';
import type { Nanos } from '#base/units';
import type { AgentReport, BoxSlotOrder, HostSlotOrder } from '#proto/agent-messages';
import { ModelBoxPlane, ModelHostPlane } from '#testkit/model-plane';
import { fc } from '#testkit/properties';
import type { Agent, AgentUplink } from './agent-core.ts';
import type { AgentFaults } from './agent-faults.ts';
import { BoxAgentCore } from './box-agent.ts';
import { HostAgentCore } from './host-agent.ts';

const SLOTS = 3;

/** What a test does to an agent and its plane; `slot` and `pick` choose where. */
const step = fc.record({
  op: fc.constantFrom(
    'order',
    'order',
    'order',
    'whole',
    'stale',
    'disconnect',
    'connect',
    'contain',
    'lose',
    'refuse',
    'take',
    'use',
    'tick',
  ),
  slot: fc.nat(SLOTS - 1),
  /** 0: no row; 1: the row there is, moved; 2, 3: a row of a new generation. */
  pick: fc.nat(3),
  plugged: fc.boolean(),
  surprise: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** What an agent's manager knows, from its reports alone. */
class Listener implements AgentUplink {
  readonly slots = new Map<number, unknown>();
  applied = -1;
  isFirst = true;
  fault = '';

  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  hello(): void {
    if (!this.isFirst) this.fault = 'hello is not the first';
  }

  report(report: AgentReport): void {
    if (this.isFirst && !report.whole) this.fault = 'the first report is not whole';
    this.isFirst = false;
    if (report.whole) this.slots.clear();
    for (const slot of report.slots) {
      const now = this.#world.plane.slots().find((one) => one.slot === slot.slot);
      if (JSON.stringify(now) !== JSON.stringify(slot)) {
        this.fault = `slot ${slot.slot} is not as the plane shows it`;
      }
      this.slots.set(slot.slot, slot);
    }
    if (report.applied < this.applied) this.fault = 'applied went back';
    if (report.applied > this.applied && report.applied > 0 && !this.#world.isAsOrdered()) {
      this.fault = `order ${report.applied} is said to be in force and is not`;
    }
    this.applied = report.applied;
  }
}

/** One agent over its model plane, the last order, and what must follow from it. */
class World {
  readonly plane: ModelBoxPlane | ModelHostPlane;
  readonly agent: Agent;
  listener: Listener | undefined;
  #now = 0;
  #generation = 0;
  #revision = 0;
  /** What was ordered last, by slot. */
  readonly ordered = new Map<number, { generation: number; plugged: boolean }>();
  /** Slots that lost the row they have been ordered; it never comes back. */
  readonly lost = new Map<number, number>();

  readonly kind: 'box' | 'host';
  readonly faults: AgentFaults;

  constructor(kind: 'box' | 'host', faults: AgentFaults) {
    this.kind = kind;
    this.faults = faults;
    if (kind === 'box') {
      const plane = new ModelBoxPlane(SLOTS);
      this.plane = plane;
      this.agent = new BoxAgentCore({
        hello: {
          kind,
          id: 'x',
          instance: 'i',
          version: '0',
          boxKind: 'pcie',
          zone: '',
          endpoints: [],
        },
        plane,
        faults,
      });
    } else {
      const plane = new ModelHostPlane(SLOTS);
      this.plane = plane;
      const hello = { kind, id: 'x', instance: 'i', version: '0', reach: [] };
      this.agent = new HostAgentCore({ hello, plane, faults });
    }
  }

  get now(): Nanos {
    this.#now += 1e8;
    return this.#now as Nanos;
  }

  connect(): void {
    if (this.listener !== undefined) return;
    this.listener = new Listener(this);
    this.#revision = 0;
    this.agent.connected(this.now, this.listener);
    // A manager begins with all it wants.
    this.order(
      [...this.ordered].map(([slot]) => this.#slotOrder(slot)),
      true,
    );
  }

  order(slots: (BoxSlotOrder & HostSlotOrder)[], whole: boolean): void {
    if (this.listener === undefined) return;
    this.#send({ revision: ++this.#revision, whole, slots });
  }

  #send(order: {
    revision: number;
    whole: boolean;
    slots: (BoxSlotOrder & HostSlotOrder)[];
  }): void {
    const { kind, now } = this;
    if (kind === 'box') this.agent.order(now, { kind, ...order });
    else this.agent.order(now, { kind, ...order, peers: undefined });
  }

  #slotOrder(slot: number): BoxSlotOrder & HostSlotOrder {
    const wanted = this.ordered.get(slot);
    return {
      slot,
      row:
        wanted === undefined
          ? undefined
          : { host: 'h', box: 'b', boxSlot: slot, path: 'p', generation: wanted.generation },
      plugged: wanted?.plugged ?? false,
      surprise: false,
    };
  }

  run({ op, slot, pick, plugged, surprise }: Step): void {
    const { plane, agent } = this;
    switch (op) {
      case 'order':
      case 'whole': {
        if (this.listener === undefined) return;
        const before = this.ordered.get(slot);
        if (pick === 0) this.ordered.delete(slot);
        else if (pick === 1 && before !== undefined) this.ordered.set(slot, { ...before, plugged });
        else this.ordered.set(slot, { generation: ++this.#generation, plugged });
        if (op === 'order') this.order([{ ...this.#slotOrder(slot), surprise }], false);
        else
          this.order(
            [...this.ordered.keys()].map((one) => this.#slotOrder(one)),
            true,
          );
        return;
      }
      case 'stale': {
        if (this.listener === undefined) return;
        const order = { revision: this.#revision, whole: true, slots: [] };
        if (this.faults.appliesStaleOrder === true) this.#send(order);
        else expect(() => this.#send(order)).toThrow('is the next of this stream');
        return;
      }
      case 'disconnect':
        if (this.listener === undefined) return;
        agent.disconnected(this.now);
        this.check();
        this.listener = undefined;
        return;
      case 'connect':
        this.connect();
        return;
      case 'contain':
        plane.contain(slot);
        agent.changed(this.now);
        return;
      case 'lose': {
        const { row } = plane.slots()[slot]!;
        if (row !== undefined) this.lost.set(slot, row.generation);
        plane.lose(slot);
        agent.changed(this.now);
        return;
      }
      case 'refuse':
        plane.refusal = 'not now';
        return;
      case 'take':
        plane.refusal = '';
        agent.changed(this.now);
        return;
      case 'use':
        if (plane instanceof ModelHostPlane) plane.use(slot, surprise);
        agent.changed(this.now);
        return;
      case 'tick':
        agent.tick(this.now);
        return;
    }
  }

  /** Whether the plane has the rows ordered, but those it has lost. */
  isAsOrdered(): boolean {
    return this.plane.slots().every(({ slot, row }) => {
      const wanted = this.ordered.get(slot)?.generation;
      const isLost = wanted !== undefined && this.lost.get(slot) === wanted;
      return row?.generation === (isLost ? undefined : wanted);
    });
  }

  /** The reports add up to what the plane shows, and never said anything else. */
  check(): void {
    const { listener } = this;
    if (listener === undefined) return;
    expect(listener.fault).toBe('');
    expect([...listener.slots.values()].sort(bySlot)).toEqual(this.plane.slots());
  }

  /** With nothing in the way, the plane is as ordered, and the agent says so. */
  checkEnd(): void {
    this.plane.refusal = '';
    this.connect();
    this.agent.changed(this.now);
    this.check();
    expect(this.listener!.applied).toBe(this.#revision);
    expect(this.isAsOrdered()).toBe(true);
    for (const { slot, ...rest } of this.plane.slots()) {
      const wanted = this.ordered.get(slot);
      if (!('inUse' in rest) || rest.state !== 'ready' || rest.inUse) continue;
      expect(rest.function !== undefined).toBe(wanted?.plugged ?? false);
    }
  }
}

const bySlot = (a: unknown, b: unknown): number =>
  (a as { slot: number }).slot - (b as { slot: number }).slot;

function play(kind: 'box' | 'host', faults: AgentFaults, steps: readonly Step[]): void {
  const world = new World(kind, faults);
  world.connect();
  for (const one of steps) {
    world.run(one);
    world.check();
  }
  world.checkEnd();
}

const property = (kind: 'box' | 'host', faults: AgentFaults = {}) =>
  fc.property(fc.array(step, { maxLength: 40 }), (steps) => play(kind, faults, steps));

describe.each(['box', 'host'] as const)('the agent of a %s', (kind) => {
  it('ends at the last order and says what the plane shows, whatever happens', () => {
    fc.assert(property(kind), { numRuns: 500 });
  });

  it.each([
    'reportsWhatShouldBe',
    'keepsOldRow',
    'appliesStaleOrder',
    'claimsRefusedOrder',
  ] as const)('is caught with the planted fault %s', (fault) => {
    const result = fc.check(property(kind, { [fault]: true }), { numRuns: 500, seed: 1 });
    expect(result.failed).toBe(true);
  });
});
