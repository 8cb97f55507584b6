/**
 * What comes from a host to a remote function, for the time of one session with its server: config requests
 * become accesses of its configuration region, memory requests accesses of the region of a BAR, in the order
 * they come; writes to memory are posted there too.
 *
 * Who owns what: `RemoteRegisters` knows what the host has programmed, `RemoteRequests` what it waits for,
 * `RemoteInterrupts` what the function signals. `RemoteDma` is the device's and outlives the session.
 */
import type { Nanos } from '#base/units';
import { COMMAND } from '#pcie/config-space';
import { enabledRuns } from '#pcie/enabled-runs';
import { isAnswered } from '#pcie/endpoint-errors';
import { MSI_ENABLE } from '#pcie/msi';
import { hasSafeAddress, type Tlp, TlpKind, tlpAddress } from '#pcie/tlp';
import type { ClientSession } from '#vfio-user/client-session';
import { Errno, Refusal } from '#vfio-user/refusal';
import { REGION_CONFIG } from '#vfio-user/region-info';
import { readLittleEndian32 } from '#fabric/config-shadow';
import type { RemoteDma } from './remote-dma.ts';
import type { RemoteFunction } from './remote-function.ts';
import { RemoteInterrupts } from './remote-interrupts.ts';
import { RemoteRegisters } from './remote-registers.ts';
import { type OpenRequest, RemoteRequests } from './remote-requests.ts';

const MESSAGE_PME_TURN_OFF = 0x19;
const MESSAGE_PME_TO_ACK = 0x1b;
/** Gathered and routed to the root complex (table 2-18). */
const ROUTE_GATHERED = 5;

export interface RemoteResponderOptions {
  readonly session: ClientSession;
  readonly fn: RemoteFunction;
  readonly dma: RemoteDma;
  readonly now: () => Nanos;
  readonly send: (now: Nanos, tlp: Tlp) => void;
  readonly sendMessage: (now: Nanos, code: number, routing: number) => boolean;
  readonly onWork: () => void;
  readonly onFault: (now: Nanos, reason: string) => void;
}

export class RemoteResponder {
  readonly registers: RemoteRegisters;
  readonly #options: RemoteResponderOptions;
  readonly #requests: RemoteRequests;
  readonly #interrupts: RemoteInterrupts;
  /** As last read, for whoever looks without a TLP. */
  readonly #seen: DataView;
  /** PME_TO_Ack could not be sent yet. */
  #acknowledges = false;

  constructor(options: RemoteResponderOptions) {
    const { fn, dma, send } = options;
    this.#options = options;
    this.registers = new RemoteRegisters(fn);
    this.#requests = new RemoteRequests({
      send,
      after: (now, run) => dma.after(now, run),
      completer: () => this.registers.bdf,
      maxPayloadBytes: () => dma.limits.maxPayloadBytes,
    });
    this.#interrupts = new RemoteInterrupts({ ...options, registers: this.registers });
    this.#seen = new DataView(fn.config.buffer.slice(0));
  }

  /** The function has been reset: nothing is programmed, INTx may fire. */
  begin(now: Nanos): void {
    this.registers.reset();
    this.registers.setLimits(this.#options.dma.limits);
    this.#interrupts.setUp(now);
  }

  /** Whoever used the function has gone: nothing of its doing goes on, and it is told to be still. */
  quiet(now: Nanos): void {
    const { session, dma, fn } = this.#options;
    this.#requests.clear();
    this.registers.reset();
    dma.reset(now);
    this.#interrupts.tearDown(now);
    this.#acknowledges = false;
    // Not by the reset alone: a server may leave its configuration space out of it, or take its time.
    const { msi } = fn;
    const writes: [number, number][] = [[COMMAND, 0]];
    if (msi !== undefined) writes.push([msi.offset + 2, (msi.control & ~MSI_ENABLE) >>> 16]);
    for (const [at, value] of writes) {
      const bytes = Uint8Array.of(value & 0xff, value >>> 8);
      session.writeRegion(now, REGION_CONFIG, at, bytes, (then, refused) => {
        if (refused !== undefined) this.#failed(then, 'its configuration space', refused);
      });
    }
  }

  /** Whoever waits is answered UR: there is no function any more. */
  abort(now: Nanos): void {
    this.#requests.abort(now);
  }

  readConfig(register: number): number {
    const own = this.registers.own(register);
    return own ?? this.#options.fn.view.show(register, this.#seen.getUint32(register, true));
  }

  receive(now: Nanos, tlp: Tlp): void {
    switch (tlp.kind) {
      case TlpKind.CfgRd0:
      case TlpKind.CfgWr0:
        // Function numbers other than 0 are not there (2.3.1); a poisoned write changes nothing (2.7.2.2).
        if ((tlp.completerId & 7) !== 0) this.#requests.refuse(now, tlp);
        else if (tlp.kind === TlpKind.CfgRd0) this.#readConfig(now, tlp);
        else if (tlp.poisoned) this.#requests.refuse(now, tlp);
        else this.#writeConfig(now, tlp);
        break;
      case TlpKind.MRd32:
      case TlpKind.MRd64:
        this.#readMemory(now, tlp);
        break;
      case TlpKind.MWr32:
      case TlpKind.MWr64:
        if (!tlp.poisoned) this.#writeMemory(now, tlp);
        break;
      case TlpKind.Msg:
        if (tlp.messageCode === MESSAGE_PME_TURN_OFF) this.#acknowledge(now);
        break;
      default:
        if (isAnswered(tlp)) this.#requests.refuse(now, tlp);
    }
  }

  resume(now: Nanos): void {
    if (this.#acknowledges) this.#acknowledge(now);
    this.#interrupts.show(now);
  }

  /** Power may be taken away once all functions have said so (5.3.3.2.1). */
  #acknowledge(now: Nanos): void {
    const { sendMessage } = this.#options;
    this.#acknowledges = !sendMessage(now, MESSAGE_PME_TO_ACK, ROUTE_GATHERED);
  }

  #readConfig(now: Nanos, tlp: Tlp): void {
    const { register } = tlp;
    const open = this.#requests.open(tlp, 1);
    const view = new DataView(open.bytes.buffer);
    const own = this.registers.own(register);
    if (own !== undefined) {
      view.setUint32(0, own, true);
      this.#requests.answered(now, open, true);
      return;
    }
    const { session, fn } = this.#options;
    session.readRegion(now, REGION_CONFIG, register, 4, (then, bytes) => {
      if (bytes instanceof Refusal) {
        this.#refused(then, open, 'a read of its configuration space', bytes);
        return;
      }
      const value = readLittleEndian32(bytes, 0);
      this.#seen.setUint32(register, value, true);
      view.setUint32(0, fn.view.show(register, value), true);
      this.#requests.answered(then, open, true);
    });
  }

  #writeConfig(now: Nanos, tlp: Tlp): void {
    const { session, dma } = this.#options;
    const { registers } = this;
    const { register, payload, payloadOffset } = tlp;
    const bytes = payload.slice(payloadOffset, payloadOffset + 4);
    registers.captureBdf(tlp.completerId);
    const hadMsi = registers.msiEnabled;
    const { isPassed, isReset } = registers.write(
      register,
      readLittleEndian32(bytes, 0),
      tlp.firstBe,
    );
    if (isReset || !registers.busMaster) dma.stop(now);
    registers.setLimits(dma.limits);
    // The server must have somewhere to signal before the function may.
    if (registers.msiEnabled && !hadMsi) this.#interrupts.setUp(now);
    const runs = isPassed ? enabledRuns(tlp) : [];
    const open = this.#requests.open(tlp, Math.max(1, runs.length));
    if (runs.length === 0) this.#requests.answered(now, open, true);
    for (const { from, to } of runs) {
      const part = bytes.subarray(from, to);
      session.writeRegion(now, REGION_CONFIG, register + from, part, (then, refused) => {
        if (refused === undefined) this.#requests.answered(then, open, true);
        else this.#refused(then, open, 'a write of its configuration space', refused);
      });
    }
    this.#interrupts.setUp(now);
    dma.pump(now);
  }

  #readMemory(now: Nanos, tlp: Tlp): void {
    const { session } = this.#options;
    const bar = this.#barOf(tlp);
    if (bar?.read !== true) {
      this.#requests.refuse(now, tlp);
      return;
    }
    const base = this.registers.matchedOffset;
    const runs = enabledRuns(tlp);
    const open = this.#requests.open(tlp, Math.max(1, runs.length));
    // A read of no bytes asks whether what was written before has arrived: so does any access behind it.
    const [region, parts] =
      runs.length === 0
        ? ([REGION_CONFIG, [{ from: -base, to: 4 - base }]] as const)
        : ([bar.index, runs] as const);
    for (const { from, to } of parts) {
      session.readRegion(now, region, base + from, to - from, (then, bytes) => {
        if (bytes instanceof Refusal) {
          this.#refused(then, open, `a read of BAR ${bar.index}`, bytes);
          return;
        }
        if (region === bar.index) open.bytes.set(bytes.subarray(0, to - from), from);
        this.#requests.answered(then, open, true);
        this.#interrupts.accessed(then);
      });
    }
  }

  #writeMemory(now: Nanos, tlp: Tlp): void {
    const bar = this.#barOf(tlp);
    if (bar?.write !== true) return;
    const { payload, payloadOffset } = tlp;
    const base = this.registers.matchedOffset;
    for (const { from, to } of enabledRuns(tlp)) {
      const bytes = payload.subarray(payloadOffset + from, payloadOffset + to);
      this.#options.session.writeRegion(now, bar.index, base + from, bytes);
    }
    this.#interrupts.accessed(now);
  }

  #barOf(tlp: Tlp): ReturnType<RemoteRegisters['match']> {
    if (tlp.addressType !== 0 || !hasSafeAddress(tlp)) return undefined;
    return this.registers.match(tlpAddress(tlp), 4 * tlp.lengthDw);
  }

  /** An error is for the host; no answer at all, or none that can be, ends the session. */
  #refused(now: Nanos, open: OpenRequest, what: string, refused: Refusal): void {
    this.#requests.answered(now, open, false);
    if (refused.errno === Errno.ETIMEDOUT || refused.errno === Errno.EBUSY) {
      this.#failed(now, what, refused);
    }
  }

  #failed(now: Nanos, what: string, refused: Refusal): void {
    this.#options.onFault(now, `${what}: ${refused.reason}`);
  }
}
