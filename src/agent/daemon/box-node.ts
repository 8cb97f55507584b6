/**
 * A box in real time: its proxy, devices and links. `BoxNode` owns them, `NodeTurns` drives them;
 * `BoxPlane` is what its agent sees.
 */
import type { Clock } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import type { DeviceModel } from '#devices/device-model';
import type { Screenshot } from '#devices/screenshot';
import { BoxLinks } from '#fabric/box-links';
import { BoxProxy } from '#fabric/box-proxy';
import type { StartableTransport } from '#fabric/fault-transport';
import type { LinkOptions } from '#fabric/link-options';
import type { BoxRow } from '#fabric/mapping-table';
import { settleAfter } from '#fabric/settle-after';
import type { TableError } from '#fabric/table-check';
import type { Transport } from '#fabric/transport';
import { BoxDevices, type BoxDevice, type BoxDevicesOptions } from './box-devices.ts';
import { BoxPlane } from './box-plane.ts';
import {
  type CounterReport,
  type LinkReport,
  reportCounters,
  reportLink,
} from './counter-report.ts';
import type { Logger } from './logger.ts';
import { NodeTurns } from './node-turns.ts';
import { RepeatedLog } from './repeated-log.ts';
import { type TableReport, SlotReasons, withWayOut } from './slot-reasons.ts';
import { Taps } from './taps.ts';

/** Under no generation: a quarantine outlasts them. */
const QUARANTINED = 0;

export interface BoxNodeOptions {
  readonly id: string;
  readonly devices: readonly BoxDevice[];
  /** Non-posted requests of a slot outstanding at once, on top of its device's own tags. */
  readonly outstandingReads?: number;
  readonly linkOptions?: Partial<LinkOptions>;
  readonly clock: Clock;
  readonly log: Logger;
  /** A manager orders the rows, through `plane`; the devices are scrubbed at once. */
  readonly isManaged?: boolean;
  /** Something changed that a manager may want to know; called at the end of a turn. */
  readonly onChanged?: (now: Nanos) => void;
  /** See `BoxDevicesOptions`. */
  readonly remoteSocket?: BoxDevicesOptions['remoteSocket'];
}

/** A slot as `dxpu status` shows it. */
export interface BoxSlotStatus {
  readonly slot: number;
  readonly state: string;
  /** Of the row in force. */
  readonly generation: number | undefined;
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
  readonly plane: BoxPlane;
  readonly links: BoxLinks;
  readonly taps: Taps;
  readonly #options: BoxNodeOptions;
  readonly #clock: Clock;
  readonly #turns: NodeTurns;
  readonly #inSlots: BoxDevices;
  readonly #devices: ReadonlyMap<number, DeviceModel>;
  readonly #reasons = new SlotReasons();
  /** Where connections came from, for the log. */
  readonly #cameFrom = new WeakMap<Transport, string>();

  constructor(options: BoxNodeOptions) {
    const { id, clock, log, outstandingReads } = options;
    this.#options = options;
    this.#clock = clock;
    this.#inSlots = new BoxDevices({
      devices: options.devices,
      remoteSocket: options.remoteSocket,
      clock,
      log,
      onWork: () => this.settle(),
      onChanged: (now, slot) => {
        this.proxy.deviceChanged(now, slot);
        this.#turns.changed();
      },
    });
    this.#devices = this.#inSlots.bySlot;
    this.proxy = new BoxProxy({
      boxId: id,
      devices: this.#devices,
      ...(outstandingReads === undefined ? {} : { outstandingReads }),
      onEvent: (_now, event) => {
        const { kind, ...facts } = event;
        if (kind === 'slot-gone') this.#reasons.note(event.slot, event.generation, event.reason);
        if (kind === 'quarantined') this.#reasons.note(event.slot, QUARANTINED, event.reason);
        const isGood = kind === 'slot-ready' || kind === 'device-ready';
        log[isGood ? 'info' : 'warn'](facts, kind.replace('-', ' '));
        this.#turns.changed();
      },
    });
    this.plane = new BoxPlane({
      proxy: this.proxy,
      slots: [...this.#devices.keys()],
      nodeOf: (slot) => this.#inSlots.nodeOf(slot),
      reasonOf: (slot) => this.#reasonOf(slot),
    });
    const repeated = new RepeatedLog(log);
    this.links = new BoxLinks({
      local: { kind: 'box', id },
      user: this.proxy,
      ...(options.linkOptions === undefined ? {} : { options: options.linkOptions }),
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
    this.#turns = new NodeTurns({
      clock,
      machines: [this.proxy, this.links],
      flush: (now) => this.proxy.flush(now),
      onChanged: (now) => options.onChanged?.(now),
    });
    // Whoever was before this process may have left something in them.
    if (options.isManaged === true) this.proxy.scrubUnbound(clock.now());
    this.#inSlots.start();
  }

  /** See `BoxDevices.allSeen`. */
  devicesSeen(withinNs: number): Promise<void> {
    return this.#inSlots.allSeen(withinNs);
  }

  /** Puts a table in force; with errors nothing has changed. */
  setTable(rows: readonly BoxRow[]): TableError[] {
    const errors = this.proxy.setTable(this.#clock.now(), rows);
    if (errors.length === 0) this.settle();
    return errors;
  }

  /** A verified connection of a host, from an address. */
  accept(transport: StartableTransport, from?: string): void {
    if (from !== undefined) this.#cameFrom.set(transport, from);
    const user = this.links.accept(this.#clock.now(), transport);
    transport.start(settleAfter(user, () => this.settle()));
    this.settle();
  }

  /** The function of a slot as it is configured now, for a capture. */
  readFunction(slot: number): { readonly bdf: number; readonly configSpace: string } | undefined {
    const device = this.#devices.get(slot);
    if (device === undefined) return undefined;
    const bytes = Buffer.alloc(256);
    for (let register = 0; register < bytes.length; register += 4) {
      bytes.writeUInt32LE(device.readConfig(register), register);
    }
    return { bdf: device.bdf, configSpace: bytes.toString('hex') };
  }

  /**
   * What the display in a slot shows. Fails with `not_found` where there is no such slot,
   * `invalid_argument` where it holds no display, `failed_precondition` while that shows nothing.
   */
  screenshot(slot: number): Screenshot {
    this.checkSlot(slot);
    const device = this.#devices.get(slot);
    if (device?.identity.kind === 'vfio-user') {
      throw new DxpuError(
        'invalid_argument',
        `the device in slot ${slot} is another process's (vfio-user): if it is a display, its picture is there`,
      );
    }
    if (device?.screenshot === undefined) {
      throw new DxpuError(
        'invalid_argument',
        `slot ${slot} holds no display (${device?.identity.kind}): name one with a virtio-gpu or a ` +
          'bochs-display',
      );
    }
    const picture = device.screenshot();
    if (picture !== undefined) return picture;
    throw new DxpuError(
      'failed_precondition',
      `the display in slot ${slot} shows nothing: no driver has set a mode`,
    );
  }

  settle(): void {
    this.#turns.settle();
  }

  stop(reason: string): void {
    this.#inSlots.stop(this.#clock.now());
    this.links.stop(this.#clock.now(), reason);
    this.#turns.stop();
  }

  slotStatuses(): BoxSlotStatus[] {
    return [...this.#devices].map(([slot, device]) => ({
      slot,
      state: this.proxy.slotState(slot),
      generation: this.#rowOf(slot)?.generation,
      reason: this.#statusReasonOf(slot),
      ...device.identity,
      counters: reportCounters(this.proxy.counters(slot)),
    }));
  }

  #rowOf(slot: number): BoxRow | undefined {
    return this.proxy.rows.find((one) => one.slot === slot && one.valid && one.used);
  }

  #statusReasonOf(slot: number): string | undefined {
    const reason = this.#reasonOf(slot);
    const row = this.#rowOf(slot);
    switch (this.proxy.slotState(slot)) {
      case 'contained':
        return withWayOut(reason ?? '', row?.generation ?? 0, this.#options.isManaged === true);
      case 'quarantined':
        // A device that is away comes back by itself.
        return this.#outageOf(slot) ?? `${reason}; restart the box`;
      case 'ready': {
        const host = row?.host ?? '';
        return this.links.sessionId(host) === 0 ? `host ${host} is not connected` : undefined;
      }
      default:
        return this.#outageOf(slot);
    }
  }

  #outageOf(slot: number): string | undefined {
    return this.#devices.get(slot)?.outage?.reason;
  }

  /** Why a slot is contained or quarantined. */
  #reasonOf(slot: number): string | undefined {
    switch (this.proxy.slotState(slot)) {
      case 'contained':
        return this.#reasons.of(slot, this.#rowOf(slot)?.generation ?? 0) ?? 'its session ended';
      case 'quarantined':
        return this.#outageOf(slot) ?? this.#reasons.of(slot, QUARANTINED) ?? 'its scrub failed';
      default:
        return undefined;
    }
  }

  /** What `dxpu reload` says of the table. */
  tableReport(): TableReport {
    const contained = this.slotStatuses()
      .filter(({ state }) => state === 'contained' || state === 'quarantined')
      .map(({ slot, state, reason }) => ({ slot, reason: reason ?? state }));
    return { rows: this.proxy.rows.length, contained };
  }

  linkReports(): LinkReport[] {
    return [...this.links.counters()].map(([host, counters]) => {
      const sessionId = this.links.sessionId(host);
      const state = sessionId === 0 ? 'down' : 'up';
      return reportLink({ peer: `host ${host}`, state, sessionId }, counters);
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
