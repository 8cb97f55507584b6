/** The index under changes, against one built afresh from the facts as they are. */
import { expect, it } from 'vitest';
import { violations } from '#testkit/placement-by-trial';
import { fc } from '#testkit/properties';
import {
  anyBox,
  anyDemand,
  anyHost,
  anyNode,
  anyPath,
  anyPool,
  indexOf,
  SMALL_BOXES,
  SMALL_HOSTS,
  type SmallPool,
} from '#testkit/small-pool';
import type { NodeState } from './box-entry.ts';
import { explain } from './explain.ts';
import type { BoxFacts, HostFacts, NodeFacts, PathFacts } from './facts.ts';
import { holds } from './holds.ts';
import { plan } from './plan.ts';
import { type PoolIndex, TALLIES } from './pool-index.ts';

/** What a change does to the plain facts, and to an index. */
interface Change {
  readonly name: string;
  /** `undefined` when it is not allowed here: its parent is missing. */
  apply(pool: SmallPool): SmallPool | undefined;
  tell(index: PoolIndex): void;
}

function withNode(pool: SmallPool, facts: NodeFacts): SmallPool {
  const others = pool.nodes.filter((one) => one.box !== facts.box || one.slot !== facts.slot);
  return { ...pool, nodes: [...others, facts] };
}

function withHost(
  pool: SmallPool,
  id: string,
  change: (host: HostFacts) => HostFacts,
): SmallPool | undefined {
  if (!pool.hosts.some((host) => host.id === id)) return undefined;
  return { ...pool, hosts: pool.hosts.map((host) => (host.id === id ? change(host) : host)) };
}

function known(pool: SmallPool, box: string): boolean {
  return pool.boxes.some((one) => one.id === box);
}

const anyBoxId = fc.constantFrom(...SMALL_BOXES);
const anyHostId = fc.constantFrom(...SMALL_HOSTS);
const anyState = fc.constantFrom<NodeState>('free', 'bound', 'scrubbing', 'quarantined', 'gone');

const setBox = anyBoxId.chain(anyBox).map(
  (facts: BoxFacts): Change => ({
    name: `setBox ${JSON.stringify(facts)}`,
    apply: (pool) => ({
      ...pool,
      boxes: [...pool.boxes.filter((one) => one.id !== facts.id), facts],
    }),
    tell: (index) => index.setBox(facts),
  }),
);
const removeBox = anyBoxId.map(
  (id): Change => ({
    name: `removeBox ${id}`,
    apply: (pool) => ({
      ...pool,
      boxes: pool.boxes.filter((one) => one.id !== id),
      nodes: pool.nodes.filter((one) => one.box !== id),
    }),
    tell: (index) => index.removeBox(id),
  }),
);
const setNode = fc
  .tuple(anyBoxId, fc.nat(3))
  .chain(([box, slot]) => anyNode(box, slot))
  .map(
    (facts: NodeFacts): Change => ({
      name: `setNode ${JSON.stringify(facts)}`,
      apply: (pool) => (known(pool, facts.box) ? withNode(pool, facts) : undefined),
      tell: (index) => index.setNode(facts),
    }),
  );
const setNodeState = fc.tuple(anyBoxId, fc.nat(3), anyState).map(
  ([box, slot, state]): Change => ({
    name: `setNodeState ${box} ${slot} ${state}`,
    apply: (pool) => {
      const node = pool.nodes.find((one) => one.box === box && one.slot === slot);
      return node === undefined ? undefined : withNode(pool, { ...node, state });
    },
    tell: (index) => index.setNodeState(box, slot, state),
  }),
);
const removeNode = fc.tuple(anyBoxId, fc.nat(3)).map(
  ([box, slot]): Change => ({
    name: `removeNode ${box} ${slot}`,
    apply: (pool) => ({
      ...pool,
      nodes: pool.nodes.filter((one) => one.box !== box || one.slot !== slot),
    }),
    tell: (index) => index.removeNode(box, slot),
  }),
);
const setHost = anyHostId
  .chain((id) => anyHost(id, SMALL_BOXES))
  .map(
    (facts: HostFacts): Change => ({
      name: `setHost ${JSON.stringify(facts)}`,
      apply: (pool) => ({
        ...pool,
        hosts: [...pool.hosts.filter((one) => one.id !== facts.id), facts],
      }),
      tell: (index) => index.setHost(facts),
    }),
  );
const removeHost = anyHostId.map(
  (id): Change => ({
    name: `removeHost ${id}`,
    apply: (pool) => ({ ...pool, hosts: pool.hosts.filter((one) => one.id !== id) }),
    tell: (index) => index.removeHost(id),
  }),
);
const setReachable = fc.tuple(anyHostId, fc.boolean()).map(
  ([id, reachable]): Change => ({
    name: `setHostReachable ${id} ${reachable}`,
    apply: (pool) => withHost(pool, id, (host) => ({ ...host, reachable })),
    tell: (index) => index.setHostReachable(id, reachable),
  }),
);
const setSlot = fc
  .tuple(anyHostId, anyHost('h1', []))
  .filter(([, { slots }]) => slots.length > 0)
  .map(([id, { slots }]): Change => {
    const facts = slots[slots.length - 1]!;
    return {
      name: `setHostSlot ${id} ${JSON.stringify(facts)}`,
      apply: (pool) =>
        withHost(pool, id, (host) => ({
          ...host,
          slots: [...host.slots.filter((one) => one.slot !== facts.slot), facts],
        })),
      tell: (index) => index.setHostSlot(id, facts),
    };
  });
const removeSlot = fc.tuple(anyHostId, fc.nat(3)).map(
  ([id, slot]): Change => ({
    name: `removeHostSlot ${id} ${slot}`,
    apply: (pool) =>
      withHost(pool, id, (host) => ({
        ...host,
        slots: host.slots.filter((one) => one.slot !== slot),
      })) ?? pool,
    tell: (index) => index.removeHostSlot(id, slot),
  }),
);
const setPath = fc
  .tuple(
    anyHostId,
    fc.tuple(anyBoxId, fc.constantFrom('p0', 'p1')).chain(([box, path]) => anyPath(box, path)),
  )
  .map(
    ([id, facts]: [string, PathFacts]): Change => ({
      name: `setPath ${id} ${JSON.stringify(facts)}`,
      apply: (pool) =>
        withHost(pool, id, (host) => ({
          ...host,
          paths: [
            ...host.paths.filter((one) => one.box !== facts.box || one.path !== facts.path),
            facts,
          ],
        })),
      tell: (index) => index.setPath(id, facts),
    }),
  );
const removePath = fc.tuple(anyHostId, anyBoxId, fc.constantFrom('p0', 'p1')).map(
  ([id, box, path]): Change => ({
    name: `removePath ${id} ${box} ${path}`,
    apply: (pool) =>
      withHost(pool, id, (host) => ({
        ...host,
        paths: host.paths.filter((one) => one.box !== box || one.path !== path),
      })) ?? pool,
    tell: (index) => index.removePath(id, box, path),
  }),
);

const anyChange = fc
  .oneof(
    setBox,
    removeBox,
    setNode,
    setNode,
    setNodeState,
    setNodeState,
    removeNode,
    setHost,
    removeHost,
    setReachable,
    setSlot,
    removeSlot,
    setPath,
    removePath,
  )
  .map((change) => ({ ...change, toString: () => change.name }));

/** All an index holds, what is summed up included, in the order of keys. */
function contents(index: PoolIndex): unknown {
  return {
    nodes: index.nodes,
    tallies: TALLIES.map((tally) => index.tally(tally)),
    classes: [...index.classes()]
      .map(({ key, nodes, free }) => ({ key, nodes, free }))
      .sort((a, b) => (a.key < b.key ? -1 : 1)),
    boxes: index.boxes().map((box) => ({
      ...box,
      // Numbers may be given out in any order.
      number: undefined,
      offered: index.host('h1')?.paths.table.offered[box.number],
      nodes: box.nodes.map(({ facts, state }) => ({ ...facts, state })),
      lots: box.lots.map((lot) => ({ ...lot, nodeClass: lot.nodeClass.key })),
    })),
    hosts: SMALL_HOSTS.map((id) => {
      const host = index.host(id);
      if (host === undefined) return id;
      const { names, rttNs, up } = host.paths;
      const boxes = names.map((_, position) => host.paths.boxAt(position).id);
      return { ...host, paths: { boxes, names, rttNs, up } };
    }),
  };
}

const anyChanges = fc.array(anyChange, { maxLength: 30 });

it('after any changes the index equals one built afresh', () => {
  fc.assert(
    fc.property(anyPool, anyChanges, anyDemand, (start, changes, demand) => {
      let pool = start;
      const index = indexOf(start);
      for (const change of changes) {
        const next = change.apply(pool);
        if (next === undefined) continue;
        change.tell(index);
        pool = next;
      }
      const afresh = indexOf(pool);
      expect(contents(index)).toEqual(contents(afresh));
      expect(plan(index, demand)).toEqual(plan(afresh, demand));
      const numbers = [...index.classes()].map((one) => one.number);
      expect(new Set(numbers).size).toBe(numbers.length);
    }),
    { numRuns: 300 },
  );
});

it('the order in which facts come changes no answer', () => {
  fc.assert(
    fc.property(anyPool, anyDemand, (pool, demand) => {
      const backwards = {
        boxes: pool.boxes.toReversed(),
        nodes: pool.nodes.toReversed(),
        hosts: pool.hosts.toReversed().map((host) => ({
          ...host,
          slots: host.slots.toReversed(),
          paths: host.paths.toReversed(),
        })),
      };
      expect(plan(indexOf(backwards), demand)).toEqual(plan(indexOf(pool), demand));
      expect([...explain(indexOf(backwards), demand)]).toEqual([...explain(indexOf(pool), demand)]);
    }),
    { numRuns: 400 },
  );
});

it('a plan holds after a change exactly while it breaks nothing', () => {
  let broken = 0;
  fc.assert(
    fc.property(
      anyPool,
      anyDemand,
      fc.array(anyChange, { minLength: 1, maxLength: 6 }),
      (start, demand, changes) => {
        let pool = start;
        const index = indexOf(start);
        const answer = plan(index, demand);
        fc.pre(answer.ok);
        if (!answer.ok) return;
        for (const change of changes) {
          const next = change.apply(pool);
          if (next === undefined) continue;
          change.tell(index);
          pool = next;
          const breaks = violations(pool, answer).length > 0;
          if (breaks) broken++;
          expect(holds(index, answer)).toBe(!breaks);
        }
      },
    ),
    { numRuns: 300 },
  );
  expect(broken).toBeGreaterThan(50);
});

it('planning, checking and explaining change nothing', () => {
  fc.assert(
    fc.property(anyPool, anyDemand, (pool, demand) => {
      const index = indexOf(pool);
      const answer = plan(index, demand);
      if (answer.ok) holds(index, answer);
      for (const _ of explain(index, demand));
      expect(contents(index)).toEqual(contents(indexOf(pool)));
    }),
    { numRuns: 200 },
  );
});
