/**
 * One client's session, as a synchronous state machine: events are method calls (`ChannelUser`, `tick`),
 * effects are calls on the `PeerPort`, the `FdOperations` and the device.
 *
 *     waiting for VERSION ── VERSION ──▶ serving ── closed · fault · disconnect ──▶ ended
 *
 * The session owns every descriptor it is given. `MemoryServer` has the memory and the transfers,
 * `IrqLines` the eventfds, `RegionServer` the accesses, `PendingRequests` what the client was asked. A
 * message that cannot be done is answered with an errno; one that shows that the peer does not speak the
 * protocol ends the session.
 */
import type { Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import type { DmaRegion } from './dma-map.ts';
import { encodeDmaUnmapReply } from './dma-mapping.ts';
import { closeAll, type FdOperations } from './fd-operations.ts';
import { GuestAccess } from './guest-access.ts';
import { IrqLines } from './irq-lines.ts';
import { decodeIrqSet } from './irq-set.ts';
import { MemoryServer } from './memory-server.ts';
import type { ChannelUser, PeerPort } from './message-channel.ts';
import {
  Command,
  commandName,
  emptyReply,
  errorReply,
  isCommand,
  isReply,
  type Message,
  messageSize,
  parseMessage,
  wantsReply,
} from './message.ts';
import { PendingRequests } from './pending-requests.ts';
import { answerQuery } from './query-server.ts';
import { Errno, Refusal } from './refusal.ts';
import { RegionServer } from './region-server.ts';
import { hidesMsix, type ServedDevice } from './served-device.ts';
import type { ServerCounters, ServerSettings } from './server-options.ts';
import {
  decodeVersion,
  DEFAULT_CAPABILITIES,
  encodeVersion,
  MAJOR,
  MAX_VERSION_BYTES,
  MINOR,
} from './version.ts';

/** Room for the fields around the data of the largest message. */
const OVERHEAD_BYTES = 4096;

export interface ServerSessionOptions {
  readonly device: ServedDevice;
  readonly port: PeerPort;
  readonly fds: FdOperations;
  readonly settings: ServerSettings;
  /** The next deadline may have come nearer. */
  readonly deadlineMoved: () => void;
  /** The session has ended; it has let go of all it had. Called once. */
  readonly onEnd: (reason: string) => void;
}

export class ServerSession implements ChannelUser, Timed {
  readonly #options: ServerSessionOptions;
  readonly #device: ServedDevice;
  readonly #port: PeerPort;
  readonly #settings: ServerSettings;
  readonly #memory: MemoryServer;
  readonly #irqs: IrqLines;
  readonly #pending: PendingRequests;
  readonly #guest: GuestAccess;
  readonly #regions: RegionServer;
  #state: 'waiting' | 'serving' | 'ended' = 'waiting';
  #messages = 0;
  #refused = 0;

  constructor(options: ServerSessionOptions) {
    this.#options = options;
    const { device, port, fds, settings } = options;
    this.#device = device;
    this.#port = port;
    this.#settings = settings;
    const counts = device.spec.irqs;
    this.#irqs = new IrqLines(fds, hidesMsix(device.spec) ? { ...counts, msix: 0 } : counts);
    this.#pending = new PendingRequests(settings.dmaTimeoutMs * 1e6);
    const onLie = (now: Nanos, refused: Refusal): void => this.#fault(now, refused.reason);
    const pending = this.#pending;
    this.#memory = new MemoryServer(device, settings, { fds, port, pending, onLie });
    this.#guest = new GuestAccess({
      memory: this.#memory,
      irqs: this.#irqs,
      isServing: () => this.#state === 'serving',
      disconnect: (now, reason) => this.disconnect(now, reason),
      deadlineMoved: options.deadlineMoved,
    });
    this.#regions = new RegionServer(device, port, settings);
    port.limitBytes = MAX_VERSION_BYTES;
  }

  get counters(): ServerCounters {
    const { expired, late } = this.#regions.accesses;
    return { messages: this.#messages, refused: this.#refused, expired, late };
  }

  /** The memory of the client, by ascending address. */
  memory(): Iterable<DmaRegion> {
    return this.#memory.map.regions();
  }

  /** A processor of a VM does nothing else while it reads. */
  endsTurn(bytes: Uint8Array): boolean {
    return bytes[2] === Command.REGION_READ && bytes[3] === 0;
  }

  message(now: Nanos, bytes: Uint8Array, fds: readonly number[], fdsLost: boolean): void {
    const message = parseMessage(bytes);
    this.#messages++;
    if (this.#state === 'ended') {
      closeAll(this.#options.fds, fds);
      return;
    }
    if (isReply(message)) {
      this.#reply(now, message, fds);
      return;
    }
    if (!isCommand(message)) {
      closeAll(this.#options.fds, fds);
      this.#fault(now, 'the client sent a message that is neither command nor reply');
      return;
    }
    const refused = this.#checkedCommand(now, message, fds, fdsLost);
    if (refused !== undefined) this.#refuse(now, message, refused);
    // The accesses of this message may be the first to fall due.
    this.#options.deadlineMoved();
  }

  badSize(now: Nanos, header: Uint8Array): void {
    const message = parseMessage(header);
    const size = messageSize(message.view, 0);
    const refused = new Refusal(Errno.EINVAL, `a message of ${size} bytes`);
    if (!isReply(message)) this.#refuse(now, message, refused);
  }

  closed(now: Nanos, reason: string): void {
    this.#end(now, reason);
  }

  turnEnd(now: Nanos): void {
    this.#device.turnEnd?.(now);
  }

  nextDeadlineNs(): number {
    return Math.min(this.#regions.accesses.nextDeadlineNs(), this.#pending.nextDeadlineNs());
  }

  tick(now: Nanos): void {
    this.#regions.accesses.tick(now);
    this.#pending.tick(now);
  }

  /** Ends the connection; `detached` follows within the call. */
  disconnect(now: Nanos, reason: string): void {
    if (this.#state === 'ended') return;
    this.#port.close();
    this.#end(now, reason);
  }

  #checkedCommand(
    now: Nanos,
    message: Message,
    fds: readonly number[],
    fdsLost: boolean,
  ): Refusal | undefined {
    const { command } = message;
    const takesFds = command === Command.DMA_MAP || command === Command.DEVICE_SET_IRQS;
    if (fdsLost || (fds.length > 0 && !takesFds)) {
      closeAll(this.#options.fds, fds);
      const what = fdsLost ? 'more descriptors than are taken' : 'descriptors it cannot have';
      return new Refusal(Errno.EINVAL, `${commandName(command)} came with ${what}`);
    }
    if ((command === Command.VERSION) !== (this.#state === 'waiting')) {
      closeAll(this.#options.fds, fds);
      return new Refusal(Errno.EINVAL, `${commandName(command)} out of turn`);
    }
    return this.#command(now, message, fds);
  }

  #command(now: Nanos, message: Message, fds: readonly number[]): Refusal | undefined {
    switch (message.command) {
      case Command.VERSION:
        return this.#version(now, message);
      case Command.DMA_MAP:
        return this.#answerUnless(message, this.#memory.add(now, message, fds));
      case Command.DMA_UNMAP: {
        const refused = this.#memory.remove(now, message);
        if (refused === undefined) this.#answer(message, encodeDmaUnmapReply(message));
        return refused;
      }
      case Command.DEVICE_SET_IRQS:
        return this.#setIrqs(message, fds);
      case Command.REGION_READ:
        return this.#regions.read(now, message);
      case Command.REGION_WRITE:
        return this.#regions.write(now, message);
      case Command.REGION_WRITE_MULTI:
        return this.#regions.writeMulti(now, message);
      case Command.DEVICE_RESET:
        return this.#regions.reset(now, message);
      default: {
        const answer = answerQuery(message, this.#device.spec, this.#irqs.total);
        if (answer instanceof Refusal) return answer;
        this.#answer(message, answer.reply, answer.fds);
        return undefined;
      }
    }
  }

  #version(now: Nanos, message: Message): Refusal | undefined {
    const version = decodeVersion(message);
    if (version instanceof Refusal) return version;
    if (version.major !== MAJOR) {
      return new Refusal(Errno.EINVAL, `version ${version.major}.${version.minor} is not spoken`);
    }
    const { maxMsgFds, maxDataXferBytes, maxDmaMaps } = this.#settings;
    const { capabilities } = version;
    this.#state = 'serving';
    this.#memory.engine.maxMessageBytes = Math.max(
      1,
      Math.min(maxDataXferBytes, capabilities.maxDataXferBytes),
    );
    this.#port.limitBytes = maxDataXferBytes + OVERHEAD_BYTES;
    const reply = encodeVersion(message.id, true, Math.min(version.minor, MINOR), {
      ...DEFAULT_CAPABILITIES,
      maxMsgFds,
      maxDataXferBytes,
      maxDmaMaps,
      // Only what the client has proposed itself.
      writeMultiple: capabilities.writeMultiple,
    });
    this.#answer(message, reply);
    this.#device.attached(now, this.#guest);
    return undefined;
  }

  #setIrqs(message: Message, fds: readonly number[]): Refusal | undefined {
    const set = decodeIrqSet(message, this.#irqs.total);
    if (set instanceof Refusal) {
      closeAll(this.#options.fds, fds);
      return set;
    }
    return this.#answerUnless(message, this.#irqs.apply(set, fds));
  }

  #reply(now: Nanos, message: Message, fds: readonly number[]): void {
    // No request of ours is answered with descriptors.
    closeAll(this.#options.fds, fds);
    const wrong = this.#pending.reply(now, message, []);
    if (wrong !== undefined) this.#fault(now, wrong.reason);
  }

  #answerUnless(request: Message, refused: Refusal | undefined): Refusal | undefined {
    if (refused === undefined) this.#answer(request, emptyReply(request));
    return refused;
  }

  #answer(request: Message, reply: Uint8Array, fds: readonly number[] = []): void {
    if (wantsReply(request)) this.#port.send(reply, fds);
  }

  #refuse(now: Nanos, message: Message, refused: Refusal): void {
    this.#refused++;
    this.#answer(message, errorReply(message, refused.errno));
    this.#settings.onRefused?.(now, message.command, refused);
    // Without a version nothing else can follow (specification, "VFIO_USER_VERSION").
    if (this.#state === 'waiting') this.#fault(now, refused.reason);
  }

  #fault(now: Nanos, reason: string): void {
    this.disconnect(now, `protocol fault: ${reason}`);
  }

  #end(now: Nanos, reason: string): void {
    if (this.#state === 'ended') return;
    const wasServing = this.#state === 'serving';
    this.#state = 'ended';
    this.#regions.accesses.abort();
    this.#memory.engine.abort(now, reason);
    this.#pending.abort(now, reason);
    this.#memory.removeAll(now);
    this.#irqs.close();
    if (wasServing) this.#device.detached(now, reason);
    this.#options.onEnd(reason);
  }
}
