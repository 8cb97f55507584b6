/** A soft host on a `FakeFabric` in virtual time. */
import { TimerDriver } from '#base/clock';
import type { Nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import type { EnumerationProblem, PciFunction } from '#host/pci-function';
import { HotPlug, type HotPlugOptions } from '#host/hot-plug';
import { SoftHost, type SoftHostOptions } from '#host/root-complex';
import type { Outcome, Task, TaskScope } from '#host/task';
import type { VirtualPortOptions } from '#host/virtual-port';
import { FakeFabric } from './fake-fabric.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** Slot n: bus n + 1, 16 MiB at 0xe0000000 + n × 16 MiB, 4 GiB at 256 GiB + n × 4 GiB. */
export function portOptions(
  slot: number,
  changes: Partial<VirtualPortOptions> = {},
): VirtualPortOptions {
  return {
    secondaryBus: slot + 1,
    nonPrefetchableBase: 0xe000_0000 + slot * 16 * MIB,
    nonPrefetchableBytes: 16 * MIB,
    prefetchableBase: 256 * GIB + slot * 4 * GIB,
    prefetchableBytes: 4 * GIB,
    ...changes,
  };
}

export class HostRig {
  readonly clock = new VirtualClock();
  readonly host: SoftHost;
  readonly hotPlug: HotPlug;
  readonly fabric: FakeFabric;
  readonly added: PciFunction[] = [];
  readonly removed: PciFunction[] = [];
  readonly problems: EnumerationProblem[] = [];
  readonly #driver: TimerDriver | undefined;

  constructor(
    options: Partial<SoftHostOptions> & { readonly slots?: number } = {},
    hotPlugOptions: HotPlugOptions = {},
  ) {
    const { slots = 1, ...rest } = options;
    this.host = new SoftHost({
      ports: Array.from({ length: slots }, (_, slot) => portOptions(slot)),
      onDeadline: () => this.#driver?.update(),
      ...rest,
    });
    this.#driver = new TimerDriver(this.clock, this.host);
    const events = {
      added: (_now: Nanos, fn: PciFunction) => this.added.push(fn),
      removed: (_now: Nanos, fn: PciFunction) => this.removed.push(fn),
      problem: (_now: Nanos, _slot: number, problem: EnumerationProblem) =>
        this.problems.push(problem),
    };
    this.hotPlug = new HotPlug(this.host, events, hotPlugOptions);
    this.fabric = new FakeFabric(this.clock, this.host, this.host.ports);
    this.host.attach(this.fabric);
  }

  get now(): Nanos {
    return this.clock.now();
  }

  /** Starts a task; look at the result once time has passed. */
  start<T>(task: Task<T>, scope?: TaskScope): { outcome: Outcome<T> | undefined } {
    const result: { outcome: Outcome<T> | undefined } = { outcome: undefined };
    this.host.tasks.run(
      this.now,
      task,
      (_now, outcome) => {
        result.outcome = outcome;
      },
      scope,
    );
    return result;
  }

  /** Runs a task to its end in virtual time and returns its result or throws its error. */
  run<T>(task: Task<T>, withinNs = 1e12): T {
    const result = this.start(task);
    const ended = this.clock.runWhile(() => result.outcome === undefined, this.now + withinNs);
    const { outcome } = result;
    if (!ended || outcome === undefined) throw new Error('the task did not end');
    if (outcome.ok) return outcome.value;
    throw outcome.error;
  }

  /** Lets everything happen that is due within `durationNs`. */
  pass(durationNs: number): void {
    this.clock.runUntil(this.now + durationNs);
  }
}

/** A `HostRig` whose own software leaves functions alone. */
export function rigWithoutSoftware(slots = 1): HostRig {
  const rig = new HostRig({ slots });
  rig.hotPlug.slotChanged = (): void => {};
  return rig;
}
