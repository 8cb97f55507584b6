/**
 * A host in real time: soft host, host proxy and a link to each box, driven by one timer.
 *
 * `HostNode` owns them. Every event from outside (a frame, a timer, a table, a task) ends in
 * `settle`, which arms the timer anew.
 */
import { type Clock, TimerDriver } from '#base/clock';
import { DxpuError } from '#base/errors';
import { formatBdf, type Nanos } from '#base/units';
import type { StartableTransport } from '#fabric/fault-transport';
import type { LinkTap } from '#fabric/link-options';
import { HostProxy } from '#fabric/host-proxy';
import { HotPlug } from '#host/hot-plug';
import type { PciFunction } from '#host/pci-function';
import { SoftHost } from '#host/root-complex';
import { runTask } from '#host/run-task';
import type { Task } from '#host/task';
import { type CounterReport, type LinkReport, reportCounters } from './counter-report.ts';
import type { HostConfig, PathToBox } from './host-config.ts';
import { LinkToBox } from './link-to-box.ts';
import type { Logger } from './log.ts';
import { type RowsInForce, SlotReasons } from './slot-reasons.ts';
import { Taps } from './taps.ts';

export interface HostNodeOptions {
  readonly config: HostConfig;
  readonly clock: Clock;
  readonly log: Logger;
  /** Opens a connection over a path. Its promise's error ends up in the link. */
  readonly connect: (path: PathToBox) => Promise<StartableTransport>;
  readonly newSessionId: () => number;
}

export interface HostSlotReport {
  readonly slot: number;
  readonly state: string;
  readonly function:
    | {
        readonly bdf: string;
        readonly vendorId: number;
        readonly deviceId: number;
        readonly bars: PciFunction['bars'];
      }
    | undefined;
  readonly problem: string | undefined;
  /** Why it is not in use, and the way out. */
  readonly reason: string | undefined;
  readonly counters: CounterReport;
}

export class HostNode {
  readonly soft: SoftHost;
  readonly hotPlug: HotPlug;
  readonly proxy: HostProxy;
  readonly taps: Taps;
  readonly #options: HostNodeOptions;
  readonly #clock: Clock;
  readonly #driver: TimerDriver;
  readonly #links = new Map<string, LinkToBox>();
  readonly #reasons = new SlotReasons();

  constructor(options: HostNodeOptions) {
    const { config, clock, log } = options;
    this.#options = options;
    this.#clock = clock;
    this.soft = new SoftHost({ ...config.softHost, onDeadline: () => this.#driver.update() });
    this.hotPlug = new HotPlug(this.soft, {
      added: (_now, fn) =>
        log.info({ slot: fn.virtualSlot, bdf: formatBdf(fn.bdf) }, 'function added'),
      removed: (_now, fn, surprise) =>
        log.warn({ slot: fn.virtualSlot, surprise }, 'function removed'),
      problem: (_now, slot, problem) => log.error({ slot, problem: problem.kind }, problem.message),
    });
    this.proxy = new HostProxy({
      hostId: config.id,
      rootSide: this.soft,
      onEvent: (_now, event) => {
        const { kind, ...facts } = event;
        if (kind === 'slot-down') {
          this.#reasons.note(event.virtualSlot, event.generation, event.reason);
        }
        log[kind === 'slot-up' ? 'info' : 'warn'](facts, kind.replace('-', ' '));
      },
    });
    this.soft.attach(this.proxy);
    this.taps = new Taps({ outgoing: 'down', install: (tap) => this.#installTap(tap) });
    this.#driver = new TimerDriver(clock, {
      nextDeadlineNs: () => {
        let nextNs = this.soft.nextDeadlineNs();
        for (const { link } of this.#links.values())
          nextNs = Math.min(nextNs, link.nextDeadlineNs());
        return nextNs;
      },
      tick: (now) => {
        this.soft.tick(now);
        for (const { link } of this.#links.values()) link.tick(now);
        this.proxy.flush(now);
      },
    });
  }

  /** Starts a link to each box that has a path. */
  startLinks(): void {
    const { config, log, connect, newSessionId } = this.#options;
    for (const box of new Set(config.paths.map((one) => one.box))) {
      const toBox = new LinkToBox({
        hostId: config.id,
        box,
        paths: config.paths.filter((one) => one.box === box),
        user: this.proxy,
        clock: this.#clock,
        log,
        linkOptions: config.linkOptions,
        newSessionId,
        connect,
        settle: () => this.settle(),
      });
      this.#links.set(box, toBox);
      toBox.link.start(this.#clock.now());
    }
    this.settle();
  }

  /** Puts the table of a configuration in force, or fails and changes nothing. */
  setTable(config: HostConfig): void {
    const errors = this.proxy.setTable(this.#clock.now(), config.rows);
    if (errors.length > 0) throw config.tableError(errors);
    this.settle();
  }

  now(): Nanos {
    return this.#clock.now();
  }

  /** Runs a task of the soft host to its end. */
  run<T>(task: Task<T>): Promise<T> {
    const result = runTask(this.soft, this.#clock, task);
    this.settle();
    return result;
  }

  /** A link knows the slots of its box, a capture the virtual slots. */
  #installTap(tap: LinkTap | undefined): void {
    for (const [box, { link }] of this.#links) {
      link.tap =
        tap === undefined
          ? undefined
          : (now, direction, slot, bytes, offset, length) => {
              const row = this.proxy.rows.find((one) => one.box === box && one.slot === slot);
              if (row !== undefined) tap(now, direction, row.virtualSlot, bytes, offset, length);
            };
    }
  }

  settle(): void {
    this.proxy.flush(this.#clock.now());
    this.#driver.update();
  }

  stop(reason: string): void {
    for (const { link } of this.#links.values()) link.stop(this.#clock.now(), reason);
    this.#driver.stop();
  }

  /** The function of a slot, or an error that says what is there instead. */
  functionAt(slot: number): PciFunction {
    this.checkSlot(slot);
    const fn = this.hotPlug.functionAt(slot);
    if (fn !== undefined) return fn;
    const problem = this.hotPlug.problemAt(slot);
    const state = this.proxy.slotState(slot);
    const reason = this.#reasonOf(slot);
    throw new DxpuError(
      'unavailable',
      problem === undefined
        ? `virtual slot ${slot} has no function: it is ${state}${reason === undefined ? '' : ` (${reason})`}`
        : `virtual slot ${slot} has no usable function: ${problem.message}`,
      { details: { slot, state, reason, problem: problem?.kind } },
    );
  }

  checkSlot(slot: number): void {
    if (slot < this.soft.ports.length) return;
    throw new DxpuError(
      'not_found',
      `this host has no virtual slot ${slot}; it has 0 to ${this.soft.ports.length - 1}`,
    );
  }

  slotReports(): HostSlotReport[] {
    return this.soft.ports.map((port): HostSlotReport => {
      const slot = port.virtualSlot;
      const fn = this.hotPlug.functionAt(slot);
      return {
        slot,
        state: this.proxy.slotState(slot),
        function:
          fn === undefined
            ? undefined
            : {
                bdf: formatBdf(fn.bdf),
                vendorId: fn.vendorId,
                deviceId: fn.deviceId,
                bars: fn.bars,
              },
        problem: this.hotPlug.problemAt(slot)?.message,
        reason: this.#reasonOf(slot),
        counters: reportCounters(this.proxy.counters(slot)),
      };
    });
  }

  #reasonOf(virtualSlot: number): string | undefined {
    const row = this.proxy.rows.find((one) => one.virtualSlot === virtualSlot && one.used);
    if (row === undefined) return undefined;
    const { box, slot, generation } = row;
    switch (this.proxy.slotState(virtualSlot)) {
      case 'contained': {
        const otherwise = `box ${box} has contained slot ${slot}`;
        return this.#reasons.contained(virtualSlot, generation, otherwise);
      }
      case 'waiting': {
        const toBox = this.#links.get(box);
        if (toBox?.link.state === 'up') {
          return (
            `box ${box} has not said that slot ${slot} is ready: look for a row with host ` +
            `${this.#options.config.id} and generation ${generation} in its table`
          );
        }
        const why = toBox?.problem === undefined ? '' : `: ${toBox.problem}`;
        return `no connection to box ${box} yet${why}`;
      }
      default:
        return undefined;
    }
  }

  /** What `dxpu reload` says of the table. */
  rowsInForce(): RowsInForce {
    const contained = this.slotReports()
      .filter(({ state }) => state === 'contained')
      .map(({ slot, state, reason }) => ({ slot, reason: reason ?? state }));
    return { rows: this.proxy.rows.length, contained };
  }

  linkReports(): LinkReport[] {
    return [...this.#links.values()].map((one) => one.report());
  }
}
