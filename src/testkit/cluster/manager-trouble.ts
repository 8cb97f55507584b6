/** What is done on purpose to a manager and what it stands on: crashes, full disks, stores set back, clocks moved. */
import type { Prng } from '#base/prng';
import type { Batch } from '#manager/domain/batch';
import { TRANSITIONS } from '#manager/domain/transitions';
import type { ClusterOracle } from './cluster-oracle.ts';
import { drawDuration } from './lasting.ts';
import { CRASH_POINTS, type ManagerProcess, type PlannedCrash } from './manager-process.ts';
import type { StoreMirror } from './store-mirror.ts';
import type { WatchedStore } from './watched-store.ts';

export interface TroubledManager {
  readonly oracle: ClusterOracle;
  readonly store: WatchedStore;
  readonly mirror: StoreMirror;
  manager: ManagerProcess | undefined;
  /** The manager comes back after so long, however it died. */
  managerPauseNs: number;
  /** The store is set back to this many commits before the manager starts again. */
  restoreTo: number | undefined;
  wallOffsetMs: number;
}

const DAY_MS = 24 * 3_600_000;

export class ManagerTrouble {
  readonly #world: TroubledManager;
  readonly #prng: Prng;

  constructor(world: TroubledManager, prng: Prng) {
    this.#world = world;
    this.#prng = prng;
  }

  crash(): void {
    const world = this.#world;
    const { manager } = world;
    world.managerPauseNs = drawDuration(this.#prng, this.#prng.chance(0.7) ? 3e9 : 60e9);
    if (manager === undefined) return;
    if (this.#prng.chance(0.3)) {
      world.oracle.tell('the manager dies', 'crash between turns');
      manager.crash();
      return;
    }
    const point = this.#prng.pick(CRASH_POINTS);
    manager.planned = { point, when: this.#prng.chance(0.4) ? () => true : this.#batchOf() };
    world.oracle.event(`the manager will die ${point}`);
  }

  /** A batch in which some binding makes a certain step. */
  #batchOf(): PlannedCrash['when'] {
    const { mirror } = this.#world;
    const { from, to } = this.#prng.pick(TRANSITIONS);
    return ({ bindings, removedBindings }: Batch) =>
      to === 'free'
        ? removedBindings.some((id) => mirror.bindings.get(id)?.state === from)
        : bindings.some(({ id, state }) => state === to && mirror.bindings.get(id)?.state === from);
  }

  fillDisk(): void {
    this.#world.oracle.tell('the disk is full', 'disks full');
    this.#world.store.fullFor = this.#prng.between(1, 5);
    this.#world.managerPauseNs = drawDuration(this.#prng, 1e9);
  }

  moveClock(): void {
    const byMs = this.#prng.pick([-DAY_MS, -5000, 5000, 3_600_000, DAY_MS, 30 * DAY_MS]);
    this.#world.oracle.tell(`the wall clock goes by ${byMs} ms`, 'clock jumps');
    this.#world.wallOffsetMs += byMs;
  }

  restoreStore(): void {
    const world = this.#world;
    const { length } = world.mirror.journal;
    if (length === 0) return;
    const back = Math.ceil(length * this.#prng.float() ** 2);
    world.oracle.tell(`the store is set back by ${back} commits`, 'stores restored');
    world.managerPauseNs = drawDuration(this.#prng, 2e9);
    world.restoreTo = length - back;
    world.manager?.crash();
  }
}
