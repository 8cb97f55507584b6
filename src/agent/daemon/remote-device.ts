/**
 * A device that another process serves over vfio-user, as the function of a box slot. It may be away at the
 * start and at any time after; what it says is checked, and what it does can harm its own slot alone.
 *
 *     absent ──▶ opening ──▶ ready ◀──▶ resetting
 *       ▲           │          │            │
 *       └───────────┴──────────┴────────────┘  died, said nothing in time, or what cannot be
 *
 * `RemoteDevice` owns the session and its end, and what outlives it: the DMA engine, and the function as it
 * was first seen. `RemoteResponder` deals with a host's TLPs while the device is there.
 */
import type { Clock } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import type { DeviceModel } from '#devices/device-model';
import { completeWithoutData } from '#pcie/completion';
import type { DeviceIdentity, DevicePort, Outage } from '#pcie/device';
import { isAnswered } from '#pcie/endpoint-errors';
import { CompletionStatus, FlowClass, resetTlp, Tlp, TlpKind } from '#pcie/tlp';
import type { DeviceDescription } from '#vfio-user/client-options';
import { ClientSession } from '#vfio-user/client-session';
import type { FdOperations } from '#vfio-user/fd-operations';
import type { ChannelUser, PeerPort } from '#vfio-user/message-channel';
import { RemoteDma } from './remote-dma.ts';
import { changeOf, type RemoteBar, type RemoteFunction } from './remote-function.ts';
import { isUntrue, openFunction, REMOTE_SETTINGS } from './remote-opening.ts';
import { RemoteResponder } from './remote-responder.ts';
import { RetryPause } from './retry-pause.ts';

/** Ways to the process that serves the device. */
export interface RemoteSocket {
  readonly fds: FdOperations;
  /** Throws `DxpuError` when nobody listens. Nothing comes before `start`. */
  open(): PeerPort & { start(user: ChannelUser): void };
}

export interface RemoteDeviceOptions {
  /** Its socket, to speak of it. */
  readonly path: string;
  readonly uuid: string;
  /** Default: vendor and device ID. */
  readonly model?: string | undefined;
  readonly clock: Clock;
  /** What it has caused outside of a call is to be sent, and `nextDeadlineNs` may have moved. */
  readonly onWork: () => void;
  /** `outage` has changed. */
  readonly onChanged: (now: Nanos) => void;
}

const FIRST_RETRY_NS = 100e6;
const LAST_RETRY_NS = 5e9;

export class RemoteDevice implements DeviceModel {
  readonly #options: RemoteDeviceOptions;
  readonly #dma = new RemoteDma();
  readonly #tlp = new Tlp();
  #socket: RemoteSocket | undefined;
  #port: DevicePort | undefined;
  #session: ClientSession | undefined;
  /** While the device is ready or being reset. */
  #responder: RemoteResponder | undefined;
  #isResetting = false;
  /** As it was first seen: another one does not take its place. */
  #function: RemoteFunction | undefined;
  #reason = 'nobody has connected to it yet';
  /** Somebody has sent it something since its last reset. */
  #isUsed = false;
  readonly #retry = new RetryPause(FIRST_RETRY_NS, LAST_RETRY_NS);
  /** Of `outage`, as last told. */
  #told: string | undefined;

  constructor(options: RemoteDeviceOptions) {
    this.#options = options;
  }

  get path(): string {
    return this.#options.path;
  }

  get identity(): DeviceIdentity {
    const { uuid, model } = this.#options;
    const sizes = this.bars.map(({ sizeBytes, prefetchable }) => (prefetchable ? sizeBytes : 0));
    return {
      kind: 'vfio-user',
      model: model ?? this.#function?.ids ?? 'vfio-user',
      memoryBytes: Math.max(0, ...sizes),
      uuid,
    };
  }

  /** None before the device was there for the first time. */
  get bars(): readonly RemoteBar[] {
    return this.#function?.bars ?? [];
  }

  /** Whether it was ever there. */
  get isKnown(): boolean {
    return this.#function !== undefined;
  }

  get outage(): Outage | undefined {
    const name = `the vfio-user device ${this.#options.path}`;
    if (this.#responder === undefined)
      return { kind: 'absent', reason: `${name}: ${this.#reason}` };
    return this.#isResetting ? { kind: 'resetting', reason: `${name} is being reset` } : undefined;
  }

  get bdf(): number {
    return this.#responder?.registers.bdf ?? 0;
  }

  readConfig(register: number): number {
    return this.#responder?.readConfig(register) ?? 0xffff_ffff;
  }

  /** From here on it connects, and connects again. */
  start(now: Nanos, socket: RemoteSocket): void {
    this.#socket = socket;
    this.#retry.atNs = now;
    this.#options.onWork();
  }

  /** There is no way to it on this machine. */
  giveUp(now: Nanos, reason: string): void {
    this.#socket = undefined;
    this.#retry.atNs = Infinity;
    this.#reason = reason;
    this.#session?.disconnect(now, reason);
    this.#tell(now);
  }

  plug(port: DevicePort): void {
    this.#port = port;
    this.#dma.plug(port);
  }

  receive(now: Nanos, tlp: Tlp): void {
    const responder = this.#responder;
    if (responder === undefined || this.#isResetting) {
      if (!isAnswered(tlp)) return;
      completeWithoutData(this.#tlp, tlp, 0, CompletionStatus.UR);
      this.#port?.send(now, this.#tlp);
      return;
    }
    this.#isUsed = true;
    if (tlp.kind === TlpKind.CplD || tlp.kind === TlpKind.Cpl) {
      if (tlp.requesterId === responder.registers.bdf) this.#dma.completion(now, tlp);
    } else {
      responder.receive(now, tlp);
    }
  }

  resume(now: Nanos): void {
    this.#responder?.resume(now);
    this.#dma.pump(now);
  }

  /** DEVICE_RESET is reset and scrub in one: until it is answered, `outage` says so. */
  reset(now: Nanos): void {
    const session = this.#session;
    const responder = this.#responder;
    if (session === undefined || responder === undefined || this.#isResetting || !this.#isUsed) {
      return;
    }
    this.#isResetting = true;
    this.#told = undefined;
    responder.quiet(now);
    session.reset(now, (then, refused) => {
      if (refused !== undefined) {
        session.disconnect(then, `it was not reset: ${refused.reason}`);
        return;
      }
      this.#isResetting = false;
      this.#isUsed = false;
      responder.begin(then);
      this.#tell(then);
    });
  }

  scrub(): void {}

  nextDeadlineNs(): number {
    const sessionNs = this.#session?.nextDeadlineNs() ?? this.#retry.atNs;
    return Math.min(sessionNs, this.#dma.nextDeadlineNs());
  }

  tick(now: Nanos): void {
    this.#session?.tick(now);
    this.#dma.tick(now);
    if (this.#session === undefined && now >= this.#retry.atNs) this.#connect(now);
  }

  stop(now: Nanos): void {
    this.giveUp(now, 'the box ends');
  }

  #connect(now: Nanos): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    this.#retry.atNs = Infinity;
    let port: ReturnType<RemoteSocket['open']>;
    try {
      port = socket.open();
    } catch (error) {
      // Why it went is worth more than that it is still away.
      if (!this.isKnown) this.#reason = DxpuError.from(error).message;
      this.#away(now);
      return;
    }
    const session: ClientSession = new ClientSession({
      port,
      fds: socket.fds,
      memory: this.#dma,
      settings: {
        ...REMOTE_SETTINGS,
        onRefused: (then, command, refused) => {
          if (isUntrue(command, refused)) session.disconnect(then, refused.reason);
        },
      },
      deadlineMoved: () => {},
      onReady: (then, description) => this.#described(then, session, description),
      onEnd: (then, reason) => this.#ended(then, session, reason),
      onTurnEnd: () => this.#options.onWork(),
    });
    this.#session = session;
    port.start(session);
    session.start(now);
  }

  #described(now: Nanos, session: ClientSession, description: DeviceDescription): void {
    openFunction(now, session, description, (then, found) => {
      if (typeof found === 'string') {
        session.disconnect(then, found);
        return;
      }
      this.#function ??= found;
      const change = changeOf(this.#function, found);
      if (change !== undefined) {
        session.disconnect(then, change);
        return;
      }
      this.#responder = new RemoteResponder({
        session,
        fn: found,
        dma: this.#dma,
        now: () => this.#options.clock.now(),
        send: (at, tlp) => this.#port?.send(at, tlp),
        sendMessage: (at, code, routing) => this.#sendMessage(at, code, routing),
        onWork: () => this.#options.onWork(),
        onFault: (at, why) => session.disconnect(at, why),
      });
      this.#isResetting = false;
      this.#isUsed = false;
      this.#retry.worked(then);
      this.#responder.begin(then);
      if (this.#session === session) this.#tell(then);
    });
  }

  #ended(now: Nanos, session: ClientSession, reason: string): void {
    if (this.#session !== session) return;
    this.#session = undefined;
    const responder = this.#responder;
    // Whoever waits is told before the slot is closed.
    responder?.abort(now);
    this.#responder = undefined;
    this.#isResetting = false;
    this.#dma.reset(now);
    if (this.#socket !== undefined) this.#reason = reason;
    this.#away(now);
  }

  #away(now: Nanos): void {
    if (this.#socket !== undefined) this.#retry.failed(now);
    this.#tell(now);
    // It may be in the middle of anything: whoever drives it hears of its deadline behind that.
    const { clock, onWork } = this.#options;
    clock.at(now, onWork);
  }

  #tell(now: Nanos): void {
    const { outage } = this;
    const words = outage === undefined ? '' : `${outage.kind}: ${outage.reason}`;
    if (words === this.#told) return;
    this.#told = words;
    this.#options.onChanged(now);
  }

  #sendMessage(now: Nanos, code: number, routing: number): boolean {
    const port = this.#port;
    if (port === undefined || !port.canSend(FlowClass.POSTED, 0)) return false;
    const message = this.#tlp;
    resetTlp(message);
    message.kind = TlpKind.Msg;
    message.messageCode = code;
    message.messageRouting = routing;
    message.requesterId = this.bdf;
    port.send(now, message);
    return true;
  }
}
