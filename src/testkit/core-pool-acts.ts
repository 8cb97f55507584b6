/** Everything that may happen to a pool, as values: for properties that try any order of it. */
import type { PoolFaults } from '#manager/domain/pool-options';
import { demandOf } from './core-pool.ts';
import { nodeOf, type ModelBoxProxy } from './core-pool-box.ts';
import { functionOf, type ModelHostProxy } from './core-pool-host.ts';
import { JudgedPool } from './core-pool-judge.ts';
import { fc } from './properties.ts';

const BOXES = ['b1', 'b2'] as const;
const HOSTS = ['h1', 'h2'] as const;

export type Act = ReturnType<typeof actOf>;

function actOf(name: string, run: (pool: JudgedPool) => void) {
  return { name, run, toString: () => name };
}

/** Boxes and hosts `b1`, `b2`, `h1` and `h2`, connected and at rest. */
export function newJudgedPool(faults: PoolFaults): JudgedPool {
  const pool = new JudgedPool(faults);
  for (const id of BOXES) pool.addBox(id, 2).connect();
  for (const id of HOSTS) pool.addHost(id, 2).connect();
  pool.run();
  pool.pass(1_000);
  pool.run();
  return pool;
}

const box = (pool: JudgedPool, id: string): ModelBoxProxy => pool.boxes.get(id) as ModelBoxProxy;
const host = (pool: JudgedPool, id: string): ModelHostProxy => pool.hosts.get(id) as ModelHostProxy;

/** The nth of the bindings there are; `undefined` without any. */
function nth(pool: JudgedPool, index: number): string | undefined {
  const { items } = pool.core.bindings({}, '', 10);
  return items[index % Math.max(1, items.length)]?.record.id;
}

const index = fc.nat({ max: 3 });
const slot = fc.nat({ max: 1 });
const request = fc.nat({ max: 12 });
const anyBox = fc.constantFrom(...BOXES);
const anyHost = fc.constantFrom(...HOSTS);
const anyProxy = fc.constantFrom(...BOXES, ...HOSTS);

function proxyOf(pool: JudgedPool, id: string): ModelBoxProxy | ModelHostProxy {
  return pool.boxes.get(id) ?? host(pool, id);
}

const commands = [
  fc
    .record({ gpus: fc.integer({ min: 1, max: 2 }), of: anyHost, request, retries: fc.boolean() })
    .map(({ gpus, of, request: number, retries }) =>
      actOf(`bind ${gpus} to ${of} (q${number})`, (pool) =>
        pool.submit({
          kind: 'bind',
          requestId: `q${number}`,
          retries,
          demand: demandOf({ gpus, host: of }),
        }),
      ),
    ),
  fc.record({ index, force: fc.boolean(), request }).map(({ index: at, force, request: number }) =>
    actOf(`unbind #${at}${force ? ' with force' : ''} (u${number})`, (pool) => {
      const id = nth(pool, at);
      if (id === undefined) return;
      pool.submit({ kind: 'unbind', requestId: `u${number}`, bindings: [id], force });
    }),
  ),
  fc.record({ index, request }).map(({ index: at, request: number }) =>
    actOf(`retry #${at} (t${number})`, (pool) => {
      const id = nth(pool, at);
      if (id !== undefined) pool.submit({ kind: 'retry', requestId: `t${number}`, bindings: [id] });
    }),
  ),
];

const progress = [
  anyProxy.map((id) => actOf(`${id} works`, (pool) => void proxyOf(pool, id).work())),
  fc.constant(actOf('turn', (pool) => pool.turn())),
  fc.constant(actOf('run', (pool) => pool.run())),
  fc
    .constantFrom(10, 1_000, 11_000, 70_000, 130_000)
    .map((ms) => actOf(`pass ${ms} ms`, (pool) => pool.pass(ms, false))),
];

const trouble = [
  anyProxy.map((id) =>
    actOf(`${id} loses its stream or gets one`, (pool) => {
      const proxy = proxyOf(pool, id);
      if (proxy.session === undefined) proxy.connect();
      else proxy.disconnect();
    }),
  ),
  anyProxy.map((id) => actOf(`${id} restarts`, (pool) => proxyOf(pool, id).restart())),
  fc.constant(
    actOf('the manager dies', (pool) => {
      pool.restart();
      for (const proxy of pool.proxies()) proxy.connect();
    }),
  ),
  fc.constant(
    actOf('the manager dies behind a commit', (pool) => {
      pool.commit();
      pool.restart();
      for (const proxy of pool.proxies()) proxy.connect();
    }),
  ),
  fc.record({ of: anyProxy, slot }).map(({ of, slot: number }) =>
    actOf(`${of} contains slot ${number}`, (pool) => {
      const proxy = proxyOf(pool, of);
      if (proxy.slot(number).row !== undefined) proxy.contain(number);
    }),
  ),
  fc.record({ of: anyBox, slot }).map(({ of, slot: number }) =>
    actOf(`the GPU node of ${of} ${number} leaves or comes back`, (pool) => {
      const proxy = box(pool, of);
      const found = proxy.slot(number);
      found.node = found.node === undefined ? nodeOf(`${of}-gpu${number}`) : undefined;
      if (found.node !== undefined && found.row === undefined) found.clean = false;
      // At once: until it is told, nobody can know.
      proxy.say(false);
    }),
  ),
  fc
    .record({ of: anyBox, key: fc.constantFrom('isDeaf', 'scrubsForever', 'scrubsInVain') })
    .map(({ of, key }) =>
      actOf(`${of} ${key}, or no more`, (pool) => {
        const found = box(pool, of);
        Object.assign(found, { [key]: found[key as 'isDeaf'] === false });
      }),
    ),
  fc
    .record({ of: anyHost, key: fc.constantFrom('isDeaf', 'isBlind', 'letsGo') })
    .map(({ of, key }) =>
      actOf(`${of} ${key}, or the contrary`, (pool) => {
        const found = host(pool, of);
        Object.assign(found, { [key]: found[key as 'isDeaf'] === false });
      }),
    ),
];

const lies = [
  fc
    .record({ slot, generation: fc.nat({ max: 20 }), of: anyHost })
    .map(({ slot: number, generation, of }) =>
      actOf(`b2 claims a row of ${of} with generation ${generation} in ${number}`, (pool) =>
        box(pool, 'b2').sayThis({
          slots: [
            {
              slot: number,
              node: nodeOf(`b2-gpu${number}`),
              state: 'ready',
              clean: false,
              row: { host: of, generation: generation + 1 },
              reason: '',
            },
          ],
        }),
      ),
    ),
  slot.map((number) =>
    actOf(`b2 claims GPU b1-gpu${number}`, (pool) => {
      box(pool, 'b2').sayThis({
        slots: [
          {
            slot: number,
            node: nodeOf(`b1-gpu${number}`),
            state: 'unused',
            clean: true,
            row: undefined,
            reason: '',
          },
        ],
      });
    }),
  ),
  fc.constant(
    actOf('h2 misplaces functions, or no more', (pool) => {
      const found = host(pool, 'h2');
      found.misplaces = !found.misplaces;
    }),
  ),
  fc.record({ slot, generation: fc.nat({ max: 20 }) }).map(({ slot: number, generation }) =>
    actOf(`h2 claims a row of b1/0 under generation ${generation + 1} in ${number}`, (pool) => {
      const found = host(pool, 'h2');
      const row = { box: 'b1', boxSlot: 0, generation: generation + 1 };
      const state = { ...found.slot(number), row, state: 'ready' as const };
      found.sayThis({
        slots: [found.reportOf(number, { ...state, function: functionOf(number) })],
      });
    }),
  ),
  fc.constantFrom('b2', 'h2').map((id) =>
    actOf(`${id} claims that every order is in force`, (pool) => {
      const proxy = proxyOf(pool, id);
      const last = proxy.orders.at(-1);
      if (last !== undefined) proxy.sayThis({ applied: last.revision });
    }),
  ),
];

export const acts: fc.Arbitrary<Act[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.oneof(...commands) },
    { weight: 12, arbitrary: fc.oneof(...progress) },
    { weight: 5, arbitrary: fc.oneof(...trouble) },
    { weight: 2, arbitrary: fc.oneof(...lies) },
  ),
  { minLength: 10, maxLength: 80 },
);

/** Nothing is wrong any more, and nothing is held back. */
export function healAll(pool: JudgedPool): void {
  for (const [id, found] of pool.boxes) {
    Object.assign(found, { isDeaf: false, scrubsForever: false, scrubsInVain: false });
    for (const [number, state] of found.slots) {
      state.node ??= nodeOf(`${id}-gpu${number}`);
      if (state.state === 'quarantined') Object.assign(state, { state: 'unused', row: undefined });
    }
  }
  for (const found of pool.hosts.values()) {
    Object.assign(found, { isDeaf: false, isBlind: false, letsGo: true, misplaces: false });
    for (const [number, state] of found.slots) {
      if (state.function !== undefined) state.function = functionOf(number);
    }
  }
  for (const proxy of [...pool.boxes.values(), ...pool.hosts.values()]) {
    proxy.disconnect();
    proxy.connect();
  }
  pool.run();
}
