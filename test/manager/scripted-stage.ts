/**
 * Bindings of a scripted box and host, each held in the step that a row of the table begins at. What
 * holds them is what the agents do and say, so that it lasts over any number of managers.
 */
import { expect } from 'vitest';
import type { BindingState } from '#manager/domain/records';
import type { Transition } from '#manager/domain/transitions';
import { type Binding, BindingState as WireState } from '#proto/generated/dxpu/pool/v1/pool_pb';
import type { CrashPool } from './crash-pool.ts';
import { BOUND } from './crash-steps.ts';
import { PATIENCE_MS } from './crash-user.ts';
import type { ScriptedPair } from './scripted-agents.ts';
import { BOX_SAYS, HOST_SAYS } from './scripted-sayings.ts';
import { until } from './until.ts';

/** A binding, and the row it is there for. */
export interface Held {
  readonly row: Transition;
  readonly id: string;
  readonly boxSlot: number;
  readonly hostSlot: number;
}

interface Hold {
  /** What the agents do from now on; the binding is attached. */
  readonly prepare: (pair: ScriptedPair, held: Held) => void;
  readonly isGivenBack?: boolean;
}

/** From `attached` to each step, and no further. `reserved` is another matter: nobody was told yet. */
const HOLDS: Partial<Record<BindingState, Hold>> = {
  programming: {
    // It is lost, tried again, and never comes to be in force.
    prepare: ({ box }, { boxSlot }) => box.plane.says.set(boxSlot, BOX_SAYS.rowless),
  },
  attaching: {
    prepare: ({ box, host }, { boxSlot, hostSlot }) => {
      host.plane.says.set(hostSlot, HOST_SAYS.blind);
      box.plane.contain(boxSlot);
    },
  },
  attached: { prepare: () => {} },
  draining: {
    prepare: ({ host }, { hostSlot }) => host.plane.use(hostSlot),
    isGivenBack: true,
  },
  detaching: {
    // It has let the function go, and keeps its row.
    prepare: ({ host }, { hostSlot }) => {
      const was = host.plane.slots()[hostSlot];
      host.plane.says.set(hostSlot, (is) => ({ ...is, ...was, function: undefined }));
    },
    isGivenBack: true,
  },
  scrubbing: {
    prepare: ({ box }, { boxSlot }) => box.plane.says.set(boxSlot, BOX_SAYS.unclean),
    isGivenBack: true,
  },
  failed: {
    prepare: ({ box }, { boxSlot }) => {
      box.plane.says.set(boxSlot, BOX_SAYS.unclean);
      box.plane.contain(boxSlot);
    },
  },
};

export class Stage {
  readonly pool: CrashPool;
  readonly pair: ScriptedPair;
  readonly held: readonly Held[];

  private constructor(pool: CrashPool, pair: ScriptedPair, held: readonly Held[]) {
    this.pool = pool;
    this.pair = pair;
    this.held = held;
  }

  /** With a binding for each of `rows`, in the step that it begins at. */
  static async set(
    pool: CrashPool,
    pair: ScriptedPair,
    rows: readonly Transition[],
  ): Promise<Stage> {
    const isReserved = ({ from }: Transition): boolean => from === 'reserved';
    const held = await attach(
      pool,
      pair,
      rows.filter((row) => !isReserved(row)),
    );
    for (const one of held) holdOf(one.row).prepare(pair, one);
    pair.box.changed();
    pair.host.changed();
    const leaving = held.filter(({ row }) => holdOf(row).isGivenBack === true);
    if (leaving.length > 0) await pool.user.unbind(leaving.map(({ id }) => id));
    const areThere = (): Promise<unknown> =>
      Promise.all(held.map(({ id, row }) => pool.user.reaches(id, wireName(row.from))));
    // Before slots without a row are taken from those that come later: one on its way is without, too.
    await areThere();
    for (const row of rows.filter(isReserved)) held.push(await reserve(pool, pair, row));
    await areThere();
    return new Stage(pool, pair, held);
  }

  /** Those that are there still. */
  bindings(): Promise<readonly Binding[]> {
    return this.pool.user.bindingsOf(this.pair.hostId);
  }

  /** Each of `held` has failed with the reason of its row, and stays so; there are no others. */
  async haveFailed(held: readonly Held[]): Promise<void> {
    const bindings = await this.bindings();
    expect(bindings).toHaveLength(held.length);
    for (const { id, state, failure } of bindings) {
      const row = held.find((one) => one.id === id)?.row;
      expect(state).toBe(WireState.FAILED);
      expect(failure?.reason).toBe(row?.reason);
    }
  }

  /**
   * The agents behave from now on: what was asked for is attached, and what was asked back goes. Then
   * everything is given back.
   */
  async comesToItsGoal(): Promise<void> {
    const { pair, pool } = this;
    pair.heal();
    const wanted = (await this.bindings()).filter(({ leaving }) => !leaving).map(({ id }) => id);
    // Those that do not try again by themselves.
    if (wanted.length > 0) await pool.user.retry(wanted);
    await until(
      async () => {
        const left = await this.bindings();
        const areThere = left.every(({ state }) => state === WireState.ATTACHED);
        return areThere && left.length === wanted.length ? true : undefined;
      },
      `the bindings of ${pair.hostId} to be attached or gone`,
      PATIENCE_MS,
    );
    if (wanted.length > 0) await pool.user.unbind(wanted);
    await this.isEmpty();
  }

  /** Nobody owns a slot of the two, and no row is in force. */
  async isEmpty(): Promise<void> {
    const { pair, pool } = this;
    await Promise.all(this.held.map(({ id }) => pool.user.isGone(id)));
    await pair.hasAllFree();
    expect(await this.bindings()).toEqual([]);
    for (const { plane } of [pair.box, pair.host]) {
      expect(plane.slots().filter(({ row }) => row !== undefined)).toEqual([]);
    }
  }
}

function holdOf({ name, from }: Transition): Hold {
  const hold = HOLDS[from];
  if (hold === undefined) throw new Error(`${name}: no way is known to hold a binding there`);
  return hold;
}

function wireName(state: BindingState): keyof typeof WireState {
  return state.toUpperCase() as keyof typeof WireState;
}

async function attach(
  pool: CrashPool,
  { hostId }: ScriptedPair,
  rows: readonly Transition[],
): Promise<Held[]> {
  if (rows.length === 0) return [];
  const bindings = await pool.user.bindSome(hostId, rows.length);
  await Promise.all(bindings.map(({ id }) => pool.user.reaches(id, 'ATTACHED')));
  return bindings.flatMap(({ id, boxSlot, hostSlot }, index) => {
    const row = rows[index];
    return row === undefined ? [] : { row, id, boxSlot, hostSlot };
  });
}

/** It stays so: when the box is back, whatever slot the binding has is not clean. */
async function reserve(pool: CrashPool, pair: ScriptedPair, row: Transition): Promise<Held> {
  const { plane } = pair.box;
  const others = new Set(plane.says.keys());
  let id = '';
  await pool.crashAt(
    [BOUND],
    async () => {
      id = await pool.user.bind(pair.hostId);
    },
    () => {
      for (const slot of plane.unused) {
        if (!others.has(slot)) plane.says.set(slot, BOX_SAYS.unclean);
      }
    },
  );
  const { boxSlot, hostSlot } = await pool.user.reaches(id, 'RESERVED');
  return { row, id, boxSlot, hostSlot };
}
