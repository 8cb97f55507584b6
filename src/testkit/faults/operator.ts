/**
 * Who sets the tables of a fault world, as an operator does with files: each process has a table of
 * its own, put in force at a moment of its own. When a binding does not work, both its rows get a
 * new generation; now and then one moves to another host.
 */
import type { Prng } from '#base/prng';
import { nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import type { BoxRow, HostRow } from '#fabric/mapping-table';
import type { VirtualPortOptions } from '#host/virtual-port';
import type { Binding } from './binding.ts';
import type { FaultBox } from './fault-box.ts';
import type { FaultHost } from './fault-host.ts';
import { type FaultOracle, Invariant } from './oracle.ts';

export interface Processes {
  host(id: string): FaultHost | undefined;
  box(id: string): FaultBox | undefined;
}

export interface OperatorOptions {
  readonly clock: VirtualClock;
  readonly oracle: FaultOracle;
  readonly prng: Prng;
  readonly processes: Processes;
  readonly ports: readonly VirtualPortOptions[];
  readonly bindings: readonly Binding[];
  readonly hosts: readonly string[];
  readonly boxes: readonly string[];
  readonly firstGeneration: number;
  /** The two ends of a binding learn of a change this far apart, at most. */
  readonly lagNs: number;
}

const WINDOW_BYTES = 0x10_0000;

export class Operator {
  readonly bindings: readonly Binding[];
  readonly #options: OperatorOptions;
  readonly #prng: Prng;
  readonly #hostFiles = new Map<string, readonly HostRow[]>();
  readonly #boxFiles = new Map<string, readonly BoxRow[]>();
  /** Until when to let a binding settle before another try. */
  readonly #waitUntilNs = new Map<Binding, number>();
  #nextGeneration: number;
  #changesToCome = 0;

  constructor(options: OperatorOptions) {
    this.#options = options;
    this.#prng = options.prng;
    this.bindings = options.bindings;
    this.#nextGeneration = options.firstGeneration;
    for (const binding of this.bindings) binding.generation = this.#nextGeneration++;
    for (const host of options.hosts) this.#hostFiles.set(host, this.#hostRows(host));
    for (const box of options.boxes) this.#boxFiles.set(box, this.#boxRows(box));
  }

  /** Whether every table is what it is to be. */
  get isDone(): boolean {
    return this.#changesToCome === 0;
  }

  bindingAt(host: string, virtualSlot: number): Binding | undefined {
    return this.bindings.find((b) => b.host === host && b.virtualSlot === virtualSlot);
  }

  /** A process has started: it reads its file. */
  hostStarted(host: FaultHost): void {
    this.#putHost(host, this.#hostFiles.get(host.name) ?? []);
  }

  boxStarted(box: FaultBox): void {
    this.#putBox(box, this.#boxFiles.get(box.name) ?? []);
  }

  /** Whether a binding is in force at both ends. */
  works(binding: Binding): boolean {
    const { processes } = this.#options;
    const row = processes.host(binding.host)?.readyRow(binding.virtualSlot);
    const proxy = processes.box(binding.box)?.virtual.proxy;
    return (
      row?.generation === binding.generation &&
      row.box === binding.box &&
      row.slot === binding.slot &&
      proxy?.slotState(binding.slot) === 'ready' &&
      proxy.rows.some((r) => r.slot === binding.slot && r.generation === binding.generation)
    );
  }

  /** Has a look, and raises the generation of what does not work. */
  lookAround(): void {
    const { clock, processes } = this.#options;
    const now = clock.now();
    for (const binding of this.bindings) {
      if (this.works(binding)) {
        this.#waitUntilNs.delete(binding);
        continue;
      }
      const bothLive =
        processes.host(binding.host) !== undefined && processes.box(binding.box) !== undefined;
      const waitUntilNs = this.#waitUntilNs.get(binding);
      if (waitUntilNs === undefined) {
        this.#waitUntilNs.set(binding, now + 100e6 + this.#prng.float() * 1e9);
      } else if (bothLive && now >= waitUntilNs) {
        this.raise(binding);
      }
    }
  }

  /** Attaches a binding anew, under a generation of its own. */
  raise(binding: Binding): void {
    binding.generation = this.#nextGeneration++;
    this.#change(binding.host, binding.box);
    const { clock, lagNs } = this.#options;
    // Half a second for the link, once both ends have their rows.
    this.#waitUntilNs.set(binding, clock.now() + lagNs + 500e6 + this.#prng.float() * 2e9);
  }

  /** Gives the slot of a binding to another host, if one has a virtual slot free. */
  move(binding: Binding): boolean {
    const { hosts, ports, oracle } = this.#options;
    const places = hosts.flatMap((host) =>
      ports
        .map((_, virtualSlot) => ({ host, virtualSlot }))
        .filter(
          (place) =>
            place.host !== binding.host &&
            this.bindingAt(place.host, place.virtualSlot) === undefined,
        ),
    );
    const place = places[this.#prng.below(Math.max(1, places.length))];
    if (place === undefined) return false;
    oracle.counts.moves++;
    const before = binding.host;
    binding.host = place.host;
    binding.virtualSlot = place.virtualSlot;
    binding.generation = this.#nextGeneration++;
    this.#change(before, place.host, binding.box);
    this.#waitUntilNs.delete(binding);
    return true;
  }

  /** Lets the named processes have their new tables, each at a time of its own. */
  #change(...names: readonly string[]): void {
    const { clock, lagNs } = this.#options;
    for (const name of names) {
      const delayNs = this.#prng.chance(0.3) ? 0 : this.#prng.float() * lagNs;
      this.#changesToCome++;
      clock.at(nanos(clock.now() + delayNs), () => {
        this.#changesToCome--;
        this.#apply(name);
      });
    }
  }

  #apply(name: string): void {
    const { processes, oracle, hosts } = this.#options;
    oracle.disturb();
    oracle.event(`table of ${name}`);
    if (hosts.includes(name)) {
      const rows = this.#hostRows(name);
      this.#hostFiles.set(name, rows);
      const host = processes.host(name);
      if (host !== undefined) this.#putHost(host, rows);
    } else {
      const rows = this.#boxRows(name);
      this.#boxFiles.set(name, rows);
      const box = processes.box(name);
      if (box !== undefined) this.#putBox(box, rows);
    }
  }

  #putHost(host: FaultHost, rows: readonly HostRow[]): void {
    this.#refused(host.name, () => host.virtual.setTable(rows));
  }

  #putBox(box: FaultBox, rows: readonly BoxRow[]): void {
    this.#refused(box.name, () => box.virtual.setTable(rows));
  }

  #refused(name: string, put: () => void): void {
    try {
      put();
    } catch (error) {
      this.#options.oracle.fail(Invariant.BUG, `${name}: the table was refused: ${String(error)}`);
    }
  }

  #hostRows(host: string): HostRow[] {
    return this.#options.ports.map((port, virtualSlot) => {
      const binding = this.bindingAt(host, virtualSlot);
      return {
        virtualSlot,
        used: binding !== undefined,
        secondaryBus: port.secondaryBus,
        nonPrefetchable: {
          base: port.nonPrefetchableBase,
          limit: port.nonPrefetchableBase + port.nonPrefetchableBytes - 1,
        },
        prefetchable: {
          base: port.prefetchableBase,
          limit: port.prefetchableBase + port.prefetchableBytes - 1,
        },
        box: binding?.box ?? '',
        slot: binding?.slot ?? 0,
        path: 'any',
        generation: binding?.generation ?? 0,
      };
    });
  }

  #boxRows(box: string): BoxRow[] {
    return this.bindings
      .filter((binding) => binding.box === box)
      .map(({ slot, host, generation }) => ({
        slot,
        valid: true,
        used: true,
        host,
        path: 'any',
        generation,
      }));
  }
}

/** The windows a host of a fault world has set aside for its virtual slots. */
export function portsOf(count: number): VirtualPortOptions[] {
  return Array.from({ length: count }, (_, index) => ({
    secondaryBus: 1 + index,
    nonPrefetchableBase: 0xe000_0000 + index * WINDOW_BYTES,
    nonPrefetchableBytes: WINDOW_BYTES,
    prefetchableBase: 64 * 2 ** 30 + index * 2 * WINDOW_BYTES,
    prefetchableBytes: 2 * WINDOW_BYTES,
  }));
}
