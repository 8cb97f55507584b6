/**
 * A client of ours against what a server has answered QEMU, made hostile: replies mutated, doubled, left out and
 * out of order, and requests of the server's own in between. A finding is an exception, a call never answered, a
 * descriptor too many, or guest memory changed that is not lent.
 */
import type { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import { ArrayMemory } from '#vfio-user/client-memory';
import { DEFAULT_CLIENT_OPTIONS } from '#vfio-user/client-options';
import { ClientSession } from '#vfio-user/client-session';
import { encodeDmaRead, encodeDmaWrite } from '#vfio-user/dma-access';
import { IRQ_INTX, IRQ_MSI } from '#vfio-user/irq-info';
import {
  Command,
  emptyReply,
  isCommand,
  type Message,
  messageSize,
  TYPE_REPLY,
  viewOf,
  wantsReply,
} from '#vfio-user/message';
import { createMemoryFile, systemFds } from '#vfio-user/system-fds';
import { RecordingPort } from '../vfio-user-rig.ts';
import type { RecordedMessage, RecordedSession } from './corpus.ts';
import { mutated } from './message-mutations.ts';

const GUEST_BYTES = 1 << 16;
const CANARY = 0xc7;
const ALL_CANARIES = new Uint8Array(GUEST_BYTES).fill(CANARY);
/** The one part that is ever lent. */
const LENT = { address: 0x1000, sizeBytes: 0x1000, fileOffset: 0 };
const ALL_ANSWERED_NS = 10e9;
/** Where region and interrupt infos have theirs. */
const INDEX = 24;
const FLAGS = 20;
const REGION_MMAP = 4;

export class ReplyFuzz {
  ready = 0;
  ended = 0;
  /** The message that was given last. */
  last: Uint8Array = new Uint8Array(0);
  readonly #prng: Prng;
  readonly #corpus: readonly RecordedSession[];

  constructor(prng: Prng, corpus: readonly RecordedSession[]) {
    this.#prng = prng;
    this.#corpus = corpus;
  }

  /** One session, of at most `count` messages; returns how many were given. */
  run(count: number): number {
    const prng = this.#prng;
    const { messages } = prng.pick(this.#corpus);
    const session = new FuzzedClient(prng, messages);
    let given = 0;
    for (; given < count && !session.isOver; given++) {
      this.last = session.next();
      session.give(this.last);
    }
    session.end();
    if (session.isReady) this.ready++;
    this.ended++;
    return given;
  }
}

class FuzzedClient {
  isOver = false;
  isReady = false;
  readonly #prng: Prng;
  readonly #recorded: readonly RecordedMessage[];
  readonly #memory = ALL_CANARIES.slice();
  readonly #port = new RecordingPort();
  readonly #session: ClientSession;
  /** Requests of the client that were not answered yet. */
  readonly #requests: Message[] = [];
  #answered: Uint8Array | undefined;
  #open = 0;
  /** What is lent may have changed. */
  #wasWritable = false;
  #nowNs = 0;

  constructor(prng: Prng, recorded: readonly RecordedMessage[]) {
    this.#prng = prng;
    this.#recorded = recorded;
    this.#session = new ClientSession({
      port: this.#port,
      fds: systemFds,
      memory: new ArrayMemory(this.#memory),
      settings: DEFAULT_CLIENT_OPTIONS,
      onReady: () => {
        this.isReady = true;
      },
      onEnd: () => {
        this.isOver = true;
      },
      deadlineMoved: () => {},
    });
    this.#session.start(this.#now());
    this.#takeSent();
  }

  /** What the server says next. */
  next(): Uint8Array {
    const prng = this.#prng;
    if (this.#requests.length === 0 && this.isReady) this.#act();
    const chance = prng.below(100);
    if (chance === 0 && this.#answered !== undefined) return this.#answered;
    if (chance < 10) return this.#ownRequest();
    if (chance === 10) return prng.pick(this.#recorded).bytes;
    const place = prng.below(4) === 0 ? prng.below(Math.max(1, this.#requests.length)) : 0;
    const [request] = this.#requests.splice(place, 1);
    if (request === undefined) return this.#ownRequest();
    this.#answered = this.#replyTo(request);
    return prng.below(25) === 0 ? mutated(prng, this.#answered) : this.#answered;
  }

  give(bytes: Uint8Array): void {
    const prng = this.#prng;
    if (prng.below(64) === 0) this.#pass(prng.pick([1e6, 1e9, 6e9]));
    if (this.isOver || messageSize(viewOf(bytes), 0) !== bytes.length) return;
    // Regions that can be mapped come with one.
    const isRegion = viewOf(bytes).getUint16(2, true) === Command.DEVICE_GET_REGION_INFO;
    const fds = prng.below(isRegion ? 3 : 16) === 0 ? [createMemoryFile('reply', 8192, true)] : [];
    this.#session.message(this.#now(), bytes, fds, false);
    this.#takeSent();
  }

  /** Whatever is under way comes to its end, and nothing is left of the session. */
  end(): void {
    this.#pass(ALL_ANSWERED_NS);
    if (!this.isOver) this.#session.disconnect(this.#now(), 'over');
    if (this.#open > 0) throw new Error(`${this.#open} calls were never answered`);
    const { address, sizeBytes } = LENT;
    if (this.#wasWritable) this.#memory.fill(CANARY, address, address + sizeBytes);
    if (Buffer.compare(this.#memory, ALL_CANARIES) !== 0) {
      throw new Error('memory that was not lent has changed');
    }
  }

  #now(): Nanos {
    return this.#nowNs as Nanos;
  }

  #pass(ns: number): void {
    this.#nowNs += ns;
    this.#session.tick(this.#now());
    this.#takeSent();
  }

  #takeSent(): void {
    for (const { message } of this.#port.sent.splice(0)) {
      if (messageSize(message.view, 0) !== message.bytes.length) {
        throw new Error(`a message of ${message.bytes.length} bytes states another length`);
      }
      if (isCommand(message) && wantsReply(message)) this.#requests.push(message);
    }
  }

  /** As recorded, with what a reply repeats of its request. */
  #replyTo(request: Message): Uint8Array {
    const { command, view } = request;
    const isRead = command === Command.REGION_READ;
    const isInfo =
      command === Command.DEVICE_GET_REGION_INFO || command === Command.DEVICE_GET_IRQ_INFO;
    const answers = this.#recorded.filter(
      ({ from, bytes }) => from === 'server' && viewOf(bytes).getUint16(2, true) === command,
    );
    const index = isInfo ? view.getUint32(INDEX, true) : 0;
    const found =
      answers.find(({ bytes }) => isInfo && viewOf(bytes).getUint32(INDEX, true) === index) ??
      answers[0];
    if (found === undefined && !isRead) return emptyReply(request);
    const bytes = isRead
      ? new Uint8Array(new ArrayBuffer(32 + view.getUint32(28, true)))
      : Uint8Array.from(found?.bytes ?? []);
    if (isRead || command === Command.REGION_WRITE) bytes.set(request.bytes.subarray(0, 32));
    const reply = viewOf(bytes);
    // QEMU does not ask for all there are, and none of ours can be mapped.
    if (isInfo) reply.setUint32(INDEX, index, true);
    if (command === Command.DEVICE_GET_REGION_INFO && this.#prng.below(4) === 0) {
      reply.setUint32(FLAGS, reply.getUint32(FLAGS, true) | REGION_MMAP, true);
    }
    reply.setUint16(0, request.id, true);
    reply.setUint32(4, bytes.length, true);
    reply.setUint32(8, TYPE_REPLY, true);
    return bytes;
  }

  /** Of the device, for memory of the guest: lent or not. */
  #ownRequest(): Uint8Array {
    const prng = this.#prng;
    const address = prng.pick([0, 0xfff, 0x1000, 0x1fff, 0x2000, GUEST_BYTES - 1]) + prng.below(16);
    const count = 1 + prng.below(64);
    const request =
      prng.below(2) === 0
        ? encodeDmaRead(prng.below(8), address, count)
        : encodeDmaWrite(prng.below(8), address, new Uint8Array(count), 0, count);
    return prng.below(3) === 0 ? mutated(prng, request) : request;
  }

  /** Something a user of the client might want. */
  #act(): void {
    const prng = this.#prng;
    const session = this.#session;
    const now = this.#now();
    this.#open++;
    const done = (): void => {
      this.#open--;
    };
    const region = prng.below(9);
    switch (prng.below(8)) {
      case 0:
        session.readRegion(now, region, prng.below(4096), 1 + prng.below(64), done);
        break;
      case 1:
        session.writeRegion(now, region, prng.below(4096), new Uint8Array(4), done);
        break;
      case 2:
        session.writeRegion(now, region, prng.below(4096), new Uint8Array(4));
        done();
        break;
      case 3:
        session.reset(now, done);
        break;
      case 4:
        session.enableIrqs(now, prng.pick([IRQ_INTX, IRQ_MSI]), 1, () => {}, done);
        break;
      case 5:
        session.disableIrqs(now, prng.pick([IRQ_INTX, IRQ_MSI]), done);
        break;
      case 6: {
        const isWritable = prng.below(2) === 0;
        this.#wasWritable ||= isWritable;
        session.mapMemory(now, { ...LENT, readable: true, writable: isWritable }, undefined, done);
        break;
      }
      default:
        session.unmapMemory(now, LENT.address, LENT.sizeBytes, done);
    }
    this.#takeSent();
  }
}
