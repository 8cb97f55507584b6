/**
 * The client's end of a session, as a synchronous state machine like `ServerSession`.
 *
 *     start ──▶ VERSION ──▶ describing ── onReady ──▶ ready ── closed · fault · disconnect ──▶ ended
 *
 * `PendingRequests` has what was asked, `MemoryLending` what the device asks for; descriptors of regions
 * are the session's until it ends, eventfds `IrqReceiver`'s. A server that answers what cannot be ends
 * the session with the reason.
 */
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import { type DmaTarget, MemoryLending } from './client-memory.ts';
import type { ClientSettings, DeviceDescription } from './client-options.ts';
import { DeviceQuery } from './device-query.ts';
import { type DmaMapRequest, encodeDmaMap, encodeDmaUnmap } from './dma-mapping.ts';
import { closeAll, type FdOperations } from './fd-operations.ts';
import { IRQ_INTX } from './irq-info.ts';
import { IrqReceiver, type OnIrq } from './irq-receiver.ts';
import { encodeIrqSet, type IrqSet } from './irq-set.ts';
import type { ChannelUser, PeerPort } from './message-channel.ts';
import {
  Command,
  commandName,
  errorReply,
  isCommand,
  isReply,
  type Message,
  newMessage,
  parseMessage,
  TYPE_COMMAND,
  wantsReply,
} from './message.ts';
import { PendingRequests, type ReplyHandler } from './pending-requests.ts';
import { type Done, Errno, Refusal } from './refusal.ts';
import { type ReadDone, RegionClient, type SendRequest } from './region-client.ts';
import {
  type Capabilities,
  decodeVersion,
  DEFAULT_CAPABILITIES,
  encodeVersion,
  MAJOR,
  MAX_VERSION_BYTES,
  MINOR,
} from './version.ts';

/** Room for the fields around the data of the largest message, and for the areas of a region. */
const OVERHEAD_BYTES = 8192;

export interface ClientSessionOptions {
  readonly port: PeerPort;
  readonly fds: FdOperations;
  readonly memory: DmaTarget;
  readonly settings: ClientSettings;
  readonly onReady: (now: Nanos, device: DeviceDescription) => void;
  /** The session has ended, maybe before it was ready. Called once. */
  readonly onEnd: (now: Nanos, reason: string) => void;
  readonly deadlineMoved: () => void;
  /** After messages that came together. */
  readonly onTurnEnd?: (now: Nanos) => void;
}

export class ClientSession implements ChannelUser, Timed {
  readonly #options: ClientSessionOptions;
  readonly #port: PeerPort;
  readonly #pending: PendingRequests;
  readonly #lending: MemoryLending;
  readonly #irqs: IrqReceiver;
  readonly #regions: RegionClient;
  #peer: Capabilities = DEFAULT_CAPABILITIES;
  /** Descriptors of regions, by index. */
  readonly #regionFds = new Map<number, number>();
  #device: DeviceDescription | undefined;
  #ended = false;

  constructor(options: ClientSessionOptions) {
    this.#options = options;
    const { port, fds, memory, settings } = options;
    this.#port = port;
    this.#pending = new PendingRequests(settings.requestTimeoutMs * 1e6);
    this.#lending = new MemoryLending(memory, port, {
      maxBytes: settings.maxDataXferBytes,
      timeoutMs: settings.dmaTimeoutMs,
      maxPending: settings.maxPendingDma,
    });
    this.#irqs = new IrqReceiver(fds, (now, set, sent, done) =>
      this.#setIrqs(now, set, sent, done),
    );
    const onLie = (now: Nanos, reason: string): void => this.#fault(now, reason);
    this.#regions = new RegionClient(port, this.#request, onLie);
    port.limitBytes = MAX_VERSION_BYTES;
  }

  get device(): DeviceDescription | undefined {
    return this.#device;
  }

  /** The largest `count` of one region access. */
  get maxAccessBytes(): number {
    return this.#regions.maxBytes;
  }

  /** The descriptor of a region that can be mapped; the session's. */
  regionFd(index: number): number | undefined {
    return this.#regionFds.get(index);
  }

  /** Asks for the version, then for all there is to know about the device. */
  start(now: Nanos): void {
    const { maxMsgFds, maxDataXferBytes } = this.#options.settings;
    const proposed = { ...DEFAULT_CAPABILITIES, maxMsgFds, maxDataXferBytes, writeMultiple: true };
    this.#request(
      now,
      Command.VERSION,
      (id) => encodeVersion(id, false, MINOR, proposed),
      (then, reply) => {
        const version = reply instanceof Refusal ? reply : decodeVersion(reply);
        if (version instanceof Refusal) {
          this.#fault(then, version.reason);
        } else if (version.major !== MAJOR || version.minor > MINOR) {
          this.#fault(then, `it answers version ${version.major}.${version.minor}`);
        } else {
          this.#describe(then, version.capabilities);
        }
      },
    );
  }

  readRegion(now: Nanos, region: number, offset: number, count: number, done: ReadDone): void {
    this.#regions.read(now, { region, offset, count }, done);
  }

  /** Without `done` it is posted: nobody is told how it went. `bytes` are copied. */
  writeRegion(now: Nanos, region: number, offset: number, bytes: Uint8Array, done?: Done): void {
    const range = { region, offset, count: bytes.length };
    if (done !== undefined) this.#regions.write(now, range, bytes, done);
    else if (!this.#ended) this.#regions.post(range, bytes);
  }

  reset(now: Nanos, done: Done): void {
    const encode = (id: number): Uint8Array =>
      newMessage(id, Command.DEVICE_RESET, TYPE_COMMAND, 0);
    this.#request(now, Command.DEVICE_RESET, encode, doneAs(done));
  }

  /**
   * Lends memory to the device: with `fd` (still the caller's) it maps it, otherwise it asks the
   * `DmaTarget`. What is lent must not overlap.
   */
  mapMemory(now: Nanos, request: DmaMapRequest, fd: number | undefined, done: Done): void {
    if (!this.#lending.lend(request)) {
      done(now, new Refusal(Errno.EEXIST, 'some of that memory is lent already'));
      return;
    }
    const encode = (id: number): Uint8Array => encodeDmaMap(id, request);
    const answered: ReplyHandler = (then, reply) => {
      if (reply instanceof Refusal) this.#lending.takeBack(request.address);
      doneAs(done)(then, reply, []);
    };
    this.#request(now, Command.DMA_MAP, encode, answered, fd === undefined ? [] : [fd]);
  }

  /** Takes memory back. From here on the `DmaTarget` is not asked for it; once `done`, nobody has it. */
  unmapMemory(now: Nanos, address: number, sizeBytes: number, done: Done): void {
    if (!this.#lending.takeBack(address)) {
      done(now, new Refusal(Errno.ENOENT, 'that memory is not lent'));
      return;
    }
    const encode = (id: number): Uint8Array =>
      encodeDmaUnmap(id, { all: false, address, sizeBytes });
    this.#request(now, Command.DMA_UNMAP, encode, doneAs(done));
  }

  /** Calls `onIrq(vector)` for each of the first `count` interrupts of type `index`. */
  enableIrqs(now: Nanos, index: number, count: number, onIrq: OnIrq, done: Done): void {
    this.#irqs.enable(now, index, count, this.#peer.maxMsgFds, onIrq, done);
  }

  disableIrqs(now: Nanos, index: number, done: Done): void {
    this.#irqs.disable(now, index, done);
  }

  /** Lets INTx fire again; it fires at once if the device still asserts it. */
  unmaskIntx(now: Nanos, done: Done): void {
    const set: IrqSet = { index: IRQ_INTX, start: 0, count: 1, data: 'none', action: 'unmask' };
    this.#setIrqs(now, set, [], done);
  }

  disconnect(now: Nanos, reason: string): void {
    if (this.#ended) return;
    this.#port.close();
    this.#end(now, reason);
  }

  message(now: Nanos, bytes: Uint8Array, fds: readonly number[], fdsLost: boolean): void {
    const message = parseMessage(bytes);
    if (this.#ended) {
      closeAll(this.#options.fds, fds);
    } else if (isReply(message)) {
      const takesFds = this.#pending.takesFds(message);
      if (!takesFds) closeAll(this.#options.fds, fds);
      const wrong = this.#pending.reply(now, message, takesFds ? fds : []);
      if (wrong !== undefined) this.#fault(now, wrong.reason);
      else if (fdsLost) this.#fault(now, 'it sends more descriptors than are taken');
    } else {
      closeAll(this.#options.fds, fds);
      if (isCommand(message)) this.#command(now, message, fds.length > 0);
      else this.#fault(now, 'it sent a message that is neither command nor reply');
    }
    this.#options.deadlineMoved();
  }

  badSize(): void {}

  closed(now: Nanos, reason: string): void {
    this.#end(now, reason);
  }

  turnEnd(now: Nanos): void {
    this.#options.onTurnEnd?.(now);
  }

  nextDeadlineNs(): number {
    return Math.min(this.#pending.nextDeadlineNs(), this.#lending.accesses.nextDeadlineNs());
  }

  tick(now: Nanos): void {
    this.#lending.accesses.tick(now);
    this.#pending.tick(now);
  }

  #describe(now: Nanos, capabilities: Capabilities): void {
    this.#peer = capabilities;
    const { maxDataXferBytes } = this.#options.settings;
    this.#regions.maxBytes = Math.min(capabilities.maxDataXferBytes, maxDataXferBytes);
    this.#port.limitBytes = maxDataXferBytes + OVERHEAD_BYTES;
    const query = new DeviceQuery({
      request: this.#request,
      keepFd: (index, fd) => this.#regionFds.set(index, fd),
      closeFds: (fds) => closeAll(this.#options.fds, fds),
      done: (then, found) => {
        if (found instanceof Refusal) {
          this.#fault(then, found.reason);
          return;
        }
        this.#device = { ...found, writeMultiple: capabilities.writeMultiple };
        this.#options.onReady(then, this.#device);
      },
    });
    query.start(now);
  }

  #setIrqs(now: Nanos, set: IrqSet, fds: readonly number[], done: Done): void {
    const encode = (id: number): Uint8Array => encodeIrqSet(id, set);
    this.#request(now, Command.DEVICE_SET_IRQS, encode, doneAs(done), fds);
  }

  readonly #request: SendRequest = (now, command, encode, done, fds = [], takesFds = false) => {
    const id = this.#ended ? undefined : this.#pending.add(now, command, done, takesFds);
    if (id === undefined) {
      const reason = this.#ended ? 'the device is gone' : 'the device answers nothing';
      done(now, new Refusal(this.#ended ? Errno.ECONNRESET : Errno.EBUSY, reason), []);
      return;
    }
    this.#port.send(encode(id), fds);
    this.#options.deadlineMoved();
  };

  #command(now: Nanos, message: Message, hadFds: boolean): void {
    const { command } = message;
    const isDma = command === Command.DMA_READ || command === Command.DMA_WRITE;
    let refused: Refusal | undefined;
    if (!isDma) refused = new Refusal(Errno.EOPNOTSUPP, `${commandName(command)} to a client`);
    else if (hadFds) refused = new Refusal(Errno.EINVAL, 'a DMA message with descriptors');
    else refused = this.#lending.serve(now, message);
    if (refused === undefined) return;
    if (wantsReply(message)) this.#port.send(errorReply(message, refused.errno));
    this.#options.settings.onRefused?.(now, command, refused);
  }

  #fault(now: Nanos, reason: string): void {
    this.disconnect(now, `protocol fault: ${reason}`);
  }

  #end(now: Nanos, reason: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#lending.accesses.abort();
    this.#pending.abort(now, reason);
    this.#irqs.close();
    closeAll(this.#options.fds, this.#regionFds.values());
    this.#regionFds.clear();
    this.#options.onEnd(now, reason);
  }
}

/** A handler for a reply whose payload says nothing. */
function doneAs(done: Done): ReplyHandler {
  return (now, reply) => done(now, reply instanceof Refusal ? reply : undefined);
}
