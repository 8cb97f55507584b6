/**
 * A host in real time: root complex, host proxy and a link to each box (`HostLinks`), and the software that
 * uses the functions: the soft host's own, or a VM. `HostNode` owns them, `NodeTurns` drives them; `HostPlane`
 * is what its agent sees.
 */
import { assertDefined } from '#base/assert';
import type { Clock } from '#base/clock';
import { DxpuError } from '#base/errors';
import { formatBdf, type Nanos } from '#base/units';
import type { StartableTransport } from '#fabric/fault-transport';
import { HostProxy } from '#fabric/host-proxy';
import type { LinkOptions, LinkTap } from '#fabric/link-options';
import type { HostRow } from '#fabric/mapping-table';
import type { TableError } from '#fabric/table-check';
import { HotPlug } from '#host/hot-plug';
import type { PciFunction } from '#host/pci-function';
import { SoftHost, type SoftHostOptions } from '#host/root-complex';
import { runTask } from '#host/run-task';
import type { Task } from '#host/task';
import type { LinkReport } from './counter-report.ts';
import { HostLinks } from './host-links.ts';
import { HostPlane } from './host-plane.ts';
import { type HostSlotStatus, HostSlotStatuses } from './host-slot-status.ts';
import type { PathToBox } from './link-to-box.ts';
import type { Logger } from './logger.ts';
import { NodeTurns } from './node-turns.ts';
import { type TableReport, SlotReasons } from './slot-reasons.ts';
import { type SlotSoftware, SoftSlots, type UsedFunction } from './slot-software.ts';
import { Taps } from './taps.ts';
import { type VmPlace, VmSlots } from './vm-slots.ts';

export interface HostNodeOptions {
  readonly id: string;
  readonly softHost: Pick<
    SoftHostOptions,
    'ports' | 'memory' | 'maxPayloadBytes' | 'maxReadRequestBytes'
  >;
  readonly linkOptions?: Partial<LinkOptions>;
  readonly clock: Clock;
  readonly log: Logger;
  /** A VM uses the functions, in place of this host's own software. */
  readonly vm?: VmPlace;
  /** Opens a connection over a path. Its promise's error ends up in the link. */
  readonly connect: (path: PathToBox) => Promise<StartableTransport>;
  readonly newSessionId: () => number;
  /** A manager orders rows, peers and functions, through `plane`. Default: tables and paths are set. */
  readonly isManaged?: boolean;
  /** Something changed that a manager may want to know; called at the end of a turn. */
  readonly onChanged?: (now: Nanos) => void;
}

export class HostNode {
  readonly soft: SoftHost;
  readonly proxy: HostProxy;
  readonly plane: HostPlane;
  readonly taps: Taps;
  readonly #options: HostNodeOptions;
  readonly #clock: Clock;
  readonly #turns: NodeTurns;
  readonly #links: HostLinks;
  readonly #reasons = new SlotReasons();
  readonly #software: SlotSoftware;
  readonly #hotPlug: HotPlug | undefined;
  readonly #statuses: HostSlotStatuses;
  readonly #vm: VmSlots | undefined;

  constructor(options: HostNodeOptions) {
    const { clock, log, isManaged = false, vm } = options;
    this.#options = options;
    this.#clock = clock;
    this.soft = new SoftHost({ ...options.softHost, onDeadline: () => this.#turns.rearm() });
    const { soft } = this;
    this.#hotPlug = vm === undefined ? this.#startHotPlug() : undefined;
    this.proxy = new HostProxy({
      hostId: options.id,
      rootSide: vm === undefined ? soft : VmSlots.rootSide(soft, () => this.#vmSlots()),
      holdsFunctions: isManaged,
      ownMemory: vm !== undefined,
      onEvent: (_now, event) => {
        const { kind, ...facts } = event;
        if (kind === 'slot-down') {
          this.#reasons.note(event.virtualSlot, event.generation, event.reason);
        }
        log[kind === 'slot-up' ? 'info' : 'warn'](facts, kind.replace('-', ' '));
        this.#turns.changed();
      },
    });
    this.soft.attach(this.proxy);
    this.#vm =
      vm === undefined
        ? undefined
        : new VmSlots({
            ...vm,
            soft,
            proxy: this.proxy,
            clock,
            log,
            onChanged: () => this.#turns.changed(),
            onRouting: (now) => this.#routingChanged(now),
            settle: () => this.settle(),
          });
    this.#software = this.#vm ?? new SoftSlots(soft, this.hotPlug);
    this.#links = new HostLinks({
      hostId: options.id,
      user: this.proxy,
      clock,
      log,
      linkOptions: options.linkOptions ?? {},
      newSessionId: options.newSessionId,
      connect: options.connect,
      settle: () => this.settle(),
      onChanged: () => this.#turns.changed(),
    });
    this.#statuses = new HostSlotStatuses({
      hostId: options.id,
      isManaged,
      soft,
      software: this.#software,
      proxy: this.proxy,
      links: this.#links,
      reasons: this.#reasons,
      isLeaving: (slot) => this.plane.isLeaving(slot),
    });
    this.plane = new HostPlane({
      soft,
      software: this.#software,
      proxy: this.proxy,
      links: this.#links,
      reasonOf: (slot) => this.#statuses.linkReasonOf(slot),
      onChanged: () => this.#turns.changed(),
    });
    this.taps = new Taps({ outgoing: 'down', install: (tap) => this.#installTap(tap) });
    this.#turns = new NodeTurns({
      clock,
      machines: [this.soft, this.#links],
      flush: (now) => this.proxy.flush(now),
      onChanged: (now) => options.onChanged?.(now),
    });
  }

  /** Of a host whose own software uses the functions; fails with `failed_precondition` where a VM does. */
  get hotPlug(): HotPlug {
    if (this.#hotPlug !== undefined) return this.#hotPlug;
    throw new DxpuError(
      'failed_precondition',
      'the functions of this host are used by its VM: look in the guest, with lspci',
    );
  }

  /**
   * Keeps links to exactly the boxes these lead to. A link that is up stays up when its box has other
   * paths now; one to a box that is no more among them ends, and its slots are contained.
   */
  setPaths(paths: readonly PathToBox[]): void {
    this.#links.setPaths(this.#clock.now(), paths);
    this.settle();
  }

  /** Puts a table in force; with errors nothing has changed. */
  setTable(rows: readonly HostRow[]): TableError[] {
    const errors = this.proxy.setTable(this.#clock.now(), this.#routed(rows));
    if (errors.length === 0) this.settle();
    return errors;
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

  /** Keeps the function of a slot from being unbound, but by surprise, until the result is called. */
  hold(slot: number): () => void {
    const release = this.plane.hold(this.#clock.now(), slot);
    this.settle();
    return () => {
      release(this.#clock.now());
      this.settle();
    };
  }

  /** A link knows the slots of its box, a capture the virtual slots. */
  #installTap(tap: LinkTap | undefined): void {
    this.#links.setTaps((box) =>
      tap === undefined
        ? undefined
        : (now, direction, slot, bytes, offset, length) => {
            const row = this.proxy.rows.find((one) => one.box === box && one.slot === slot);
            if (row !== undefined) tap(now, direction, row.virtualSlot, bytes, offset, length);
          },
    );
  }

  #vmSlots(): VmSlots {
    return assertDefined(this.#vm, 'a host with a VM');
  }

  #startHotPlug(): HotPlug {
    const { log } = this.#options;
    return new HotPlug(this.soft, {
      added: (_now, fn) => {
        log.info({ slot: fn.virtualSlot, bdf: formatBdf(fn.bdf) }, 'function added');
        this.#turns.changed();
      },
      removed: (_now, fn, surprise) => {
        log.warn({ slot: fn.virtualSlot, surprise }, 'function removed');
        this.#turns.changed();
      },
      problem: (_now, slot, problem) => {
        log.error({ slot, problem: problem.kind }, problem.message);
        this.#turns.changed();
      },
    });
  }

  /** The guest has other buses or windows: the rows in force follow. */
  #routingChanged(now: Nanos): void {
    const errors = this.proxy.setTable(now, this.#routed(this.proxy.rows));
    for (const { message } of errors) this.#options.log.error({}, message);
    this.#turns.changed();
  }

  /** With the buses and windows a guest has set. */
  #routed(rows: readonly HostRow[]): readonly HostRow[] {
    if (this.#vm === undefined) return rows;
    return rows.map((row) => ({ ...row, ...this.soft.ports[row.virtualSlot]?.routing }));
  }

  settle(): void {
    this.#turns.settle();
  }

  /** Returns once a VM has taken in what it is being given, in time: it would not survive `stop` meanwhile. */
  async untilTakenIn(withinNs: number): Promise<void> {
    await this.#vm?.allAdded(withinNs);
  }

  stop(reason: string): void {
    this.#vm?.stop();
    this.#links.stop(this.#clock.now(), reason);
    this.#turns.stop();
  }

  /** The function of a slot as its user sees it. */
  usedFunctionAt(slot: number): UsedFunction | undefined {
    return this.#software.functionAt(slot);
  }

  /** The function of a slot, or an error that says what is there instead. */
  functionAt(slot: number): PciFunction {
    this.checkSlot(slot);
    const fn = this.hotPlug.functionAt(slot);
    if (fn !== undefined) return fn;
    const problem = this.hotPlug.problemAt(slot);
    const state = this.proxy.slotState(slot);
    const reason = this.#statuses.reasonOf(slot);
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

  slotStatuses(): HostSlotStatus[] {
    return this.#statuses.all();
  }

  /** What `dxpu reload` says of the table. */
  tableReport(): TableReport {
    const contained = this.slotStatuses()
      .filter(({ state }) => state === 'contained')
      .map(({ slot, state, reason }) => ({ slot, reason: reason ?? state }));
    return { rows: this.proxy.rows.length, contained };
  }

  linkReports(): LinkReport[] {
    return this.#links.linkReports();
  }
}
