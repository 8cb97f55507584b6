/**
 * A box in real time: its proxy, devices and links, driven by one timer.
 *
 * `BoxNode` owns them. Every event from outside (a frame, a timer, a table) ends in `settle`, which
 * sends what it caused and arms the timer anew.
 */
import { type Clock, TimerDriver } from '#base/clock';
import { DxpuError } from '#base/errors';
import { type AcceleratorDevice, createAccelerator } from '#devices/accel';
import { BoxLinks } from '#fabric/box-links';
import { BoxProxy } from '#fabric/box-proxy';
import type { StartableTransport } from '#fabric/fault-transport';
import { settleAfter } from '#fabric/settle-after';
import type { Transport } from '#fabric/transport';
import type { BoxConfig } from './box-config.ts';
import type { CaptureBegin } from './capture-stream.ts';
import {
  type CounterReport,
  type LinkReport,
  reportCounters,
  reportLink,
} from './counter-report.ts';
import type { Logger } from './log.ts';
import { RepeatedLog } from './repeated-log.ts';
import { type RowsInForce, SlotReasons } from './slot-reasons.ts';
import { Taps } from './taps.ts';

/** Under no generation: a quarantine outlasts them. */
const QUARANTINED = 0;

export interface BoxSlotReport {
  readonly slot: number;
  readonly state: string;
  /** Why it is not in use, and the way out. */
  readonly reason: string | undefined;
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
  readonly #devices: ReadonlyMap<number, AcceleratorDevice>;
  readonly #reasons = new SlotReasons();
  /** Where connections came from, for the log. */
  readonly #cameFrom = new WeakMap<Transport, string>();

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
        if (kind === 'slot-gone') this.#reasons.note(event.slot, event.generation, event.reason);
        if (kind === 'quarantined') this.#reasons.note(event.slot, QUARANTINED, event.reason);
        log[kind === 'slot-ready' ? 'info' : 'warn'](facts, kind.replace('-', ' '));
      },
    });
    const repeated = new RepeatedLog(log);
    this.links = new BoxLinks({
      local: { kind: 'box', id: config.id },
      user: this.proxy,
      options: config.linkOptions,
      report: (_now, peer, message, transport) => {
        const from = transport === undefined ? undefined : this.#cameFrom.get(transport);
        const facts = { peer: `${peer.kind} ${peer.id}`, ...(from === undefined ? {} : { from }) };
        repeated.say('warn', facts, message, `${peer.id} ${message}`);
      },
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

  /** A verified connection of a host, from an address. */
  accept(transport: StartableTransport, from?: string): void {
    if (from !== undefined) this.#cameFrom.set(transport, from);
    const user = this.links.accept(this.#clock.now(), transport);
    transport.start(settleAfter(user, () => this.settle()));
    this.settle();
  }

  /** The function of a slot as it is configured now, for a capture. */
  readFunction(slot: number): CaptureBegin['function'] {
    const device = this.#devices.get(slot);
    if (device === undefined) return undefined;
    const bytes = Buffer.alloc(256);
    for (let register = 0; register < bytes.length; register += 4) {
      bytes.writeUInt32LE(device.readConfig(register), register);
    }
    return { bdf: device.bdf, configSpace: bytes.toString('hex') };
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
      reason: this.#reasonOf(slot),
      ...device.identity,
      counters: reportCounters(this.proxy.counters(slot)),
    }));
  }

  #reasonOf(slot: number): string | undefined {
    const row = this.proxy.rows.find((one) => one.slot === slot && one.valid && one.used);
    switch (this.proxy.slotState(slot)) {
      case 'contained':
        return this.#reasons.contained(slot, row?.generation ?? 0, 'its session ended');
      case 'quarantined':
        return `${this.#reasons.of(slot, QUARANTINED) ?? 'its scrub failed'}; restart the box`;
      case 'ready': {
        const host = row?.host ?? '';
        return this.links.sessionId(host) === 0 ? `host ${host} is not connected` : undefined;
      }
      default:
        return undefined;
    }
  }

  /** What `dxpu reload` says of the table. */
  rowsInForce(): RowsInForce {
    const contained = this.slotReports()
      .filter(({ state }) => state === 'contained' || state === 'quarantined')
      .map(({ slot, state, reason }) => ({ slot, reason: reason ?? state }));
    return { rows: this.proxy.rows.length, contained };
  }

  linkReports(): LinkReport[] {
    return [...this.links.counters()].map(([host, counters]) => {
      const sessionId = this.links.sessionId(host);
      return reportLink(
        `host ${host}`,
        sessionId === 0 ? 'down' : 'up',
        sessionId,
        undefined,
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
