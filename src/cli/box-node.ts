/**
 * A box in real time: its proxy, devices and links, driven by one timer.
 *
 * `BoxNode` owns them. Every event from outside (a frame, a timer, a table) ends in `settle`, which
 * sends what it caused and arms the timer anew.
 */
import { type Clock, TimerDriver } from '#base/clock';
import { DxpuError } from '#base/errors';
import { createAccelerator } from '#devices/accel';
import { BoxLinks } from '#fabric/box-links';
import { BoxProxy } from '#fabric/box-proxy';
import type { StartableTransport } from '#fabric/fault-transport';
import type { Device } from '#pcie/device';
import type { BoxConfig } from './box-config.ts';
import {
  type CounterReport,
  type LinkReport,
  reportCounters,
  reportLink,
} from './counter-report.ts';
import type { Logger } from './log.ts';
import { Taps } from './taps.ts';

export interface BoxSlotReport {
  readonly slot: number;
  readonly state: string;
  readonly kind: string;
  readonly model: string;
  readonly memoryBytes: number;
  readonly uuid: string;
  readonly counters: CounterReport;
}

export class BoxNode {
  readonly proxy: BoxProxy;
  readonly links: BoxLinks;
  readonly taps: Taps;
  readonly #clock: Clock;
  readonly #driver: TimerDriver;
  readonly #devices: ReadonlyMap<number, Device>;

  constructor(config: BoxConfig, clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#devices = new Map(
      config.devices.map((device) => [
        device.slot,
        createAccelerator({
          ...device.options,
          log: (message) => log.warn({ slot: device.slot }, message),
        }),
      ]),
    );
    this.proxy = new BoxProxy({
      boxId: config.id,
      devices: this.#devices,
      ...(config.outstandingReads === undefined
        ? {}
        : { outstandingReads: config.outstandingReads }),
      onEvent: (_now, event) => {
        const { kind, ...facts } = event;
        log[kind === 'slot-ready' ? 'info' : 'warn'](facts, kind.replace('-', ' '));
      },
    });
    this.links = new BoxLinks({
      local: { kind: 'box', id: config.id },
      user: this.proxy,
      options: config.linkOptions,
      report: (_now, peer, message) => log.info({ peer: `${peer.kind} ${peer.id}` }, message),
    });
    this.taps = new Taps({
      outgoing: 'up',
      install: (tap) => {
        this.links.tap = tap;
      },
    });
    this.#driver = new TimerDriver(clock, {
      nextDeadlineNs: () => Math.min(this.proxy.nextDeadlineNs(), this.links.nextDeadlineNs()),
      tick: (now) => {
        this.proxy.tick(now);
        this.links.tick(now);
        this.proxy.flush(now);
      },
    });
  }

  /** Puts the table of a configuration in force, or fails and changes nothing. */
  setTable(config: BoxConfig): void {
    const errors = this.proxy.setTable(this.#clock.now(), config.rows);
    if (errors.length > 0) throw config.tableError(errors);
    this.settle();
  }

  /** A verified connection of a host. */
  accept(transport: StartableTransport): void {
    const user = this.links.accept(this.#clock.now(), transport);
    transport.start({
      frame: (now, bytes, offset, length) => user.frame(now, bytes, offset, length),
      turnEnd: (now) => {
        user.turnEnd(now);
        this.settle();
      },
      writable: (now) => {
        user.writable(now);
        this.settle();
      },
      closed: (now, reason) => {
        user.closed(now, reason);
        this.settle();
      },
    });
    this.settle();
  }

  settle(): void {
    this.proxy.flush(this.#clock.now());
    this.#driver.update();
  }

  stop(reason: string): void {
    this.links.stop(this.#clock.now(), reason);
    this.#driver.stop();
  }

  slotReports(): BoxSlotReport[] {
    return [...this.#devices].map(([slot, device]) => ({
      slot,
      state: this.proxy.slotState(slot),
      ...device.identity,
      counters: reportCounters(this.proxy.counters(slot)),
    }));
  }

  linkReports(): LinkReport[] {
    return [...this.links.counters()].map(([host, counters]) => {
      const sessionId = this.links.sessionId(host);
      return reportLink(
        `host ${host}`,
        sessionId === 0 ? 'down' : 'up',
        sessionId,
        undefined,
        counters,
      );
    });
  }

  checkSlot(slot: number): void {
    if (this.#devices.has(slot)) return;
    throw new DxpuError(
      'not_found',
      `this box has no slot ${slot}; it has ${[...this.#devices.keys()].join(', ')}`,
    );
  }
}
