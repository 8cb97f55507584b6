/**
 * A server of ours against what QEMU sends, made hostile: recorded sessions with our device models, their messages
 * mutated, cut, doubled and out of order, with descriptors too many or none. A finding is an exception, an answer
 * that nobody asked for, a request never answered, a descriptor too many, or guest memory reached that is not lent.
 */
import type { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import { ServedModel } from '#agent/daemon/served-model';
import { createDeviceModel, type DeviceKind } from '#devices/device-models';
import { encodeDmaReadReply, encodeDmaWriteReply } from '#vfio-user/dma-access';
import {
  Command,
  HEADER_BYTES,
  isCommand,
  isReply,
  messageSize,
  parseMessage,
  viewOf,
  wantsReply,
} from '#vfio-user/message';
import { createMemoryFile, systemFds } from '#vfio-user/system-fds';
import { SessionRig } from '../vfio-user-rig.ts';
import type { RecordedMessage, RecordedSession } from './corpus.ts';
import { LentMemory } from './lent-memory.ts';
import { disordered, mutated } from './message-mutations.ts';
import { WatchedDevice } from './watched-device.ts';

const UUID = '00000000-0000-4000-8000-000000000001';
/** Smaller than when the sessions were recorded: clearing memory takes time. */
const MEMORY_BYTES = 2 ** 20;
const MODELS = {
  accel: { uuid: UUID, memoryBytes: MEMORY_BYTES },
  'virtio-gpu': { uuid: UUID },
  'bochs-display': { uuid: UUID, memoryBytes: 4 * MEMORY_BYTES, width: 320, height: 240 },
} as const;
/** More than any access takes: what is not answered by then never is. */
const ALL_ANSWERED_NS = 10e9;

export class RequestFuzz {
  accepted = 0;
  refused = 0;
  ended = 0;
  /** The message that was given last. */
  last: Uint8Array = new Uint8Array(0);
  readonly #prng: Prng;
  readonly #corpus: readonly RecordedSession[];
  readonly #all: readonly RecordedMessage[];
  readonly #fileBytes: number;

  constructor(prng: Prng, corpus: readonly RecordedSession[]) {
    this.#prng = prng;
    this.#corpus = corpus;
    this.#all = corpus.flatMap(({ messages }) => messages).filter(({ from }) => from === 'client');
    this.#fileBytes = Math.max(...this.#all.map(endOfFile));
  }

  /** One session, of at most `count` messages; returns how many were given. */
  run(count: number): number {
    const recorded = this.#prng.pick(this.#corpus);
    const messages = recorded.messages.filter(({ from }) => from === 'client');
    const session = new FuzzedSession(this.#prng, recorded.device as DeviceKind, this.#fileBytes);
    let given = 0;
    for (const { bytes, fds } of disordered(this.#prng, messages, this.#all)) {
      if (given === count || session.isOver) break;
      this.last = bytes;
      if (this.#prng.below(given === 0 ? 10 : 3) === 0) this.last = mutated(this.#prng, bytes);
      session.give(this.last, fds);
      given++;
    }
    session.end();
    this.accepted += session.accepted;
    this.refused += session.refused;
    this.ended++;
    return given;
  }
}

/** Of the file, as far as a recorded DMA_MAP needs it. */
function endOfFile({ fds, bytes }: RecordedMessage): number {
  const view = viewOf(bytes);
  if (fds === 0 || view.getUint16(2, true) !== Command.DMA_MAP) return 0;
  return Number(view.getBigUint64(24, true) + view.getBigUint64(40, true));
}

class FuzzedSession {
  accepted = 0;
  refused = 0;
  readonly #prng: Prng;
  readonly #clock = new VirtualClock();
  readonly #lent: LentMemory;
  readonly #model: ServedModel;
  readonly #device: WatchedDevice;
  readonly #rig: SessionRig;
  /** Requests that want an answer and have none, by id and command. */
  readonly #open = new Map<string, number>();
  #isOver = false;

  constructor(prng: Prng, kind: DeviceKind, fileBytes: number) {
    this.#prng = prng;
    this.#lent = new LentMemory(fileBytes);
    const options = MODELS[kind];
    const model = createDeviceModel({ kind, options }, () => {});
    this.#model = new ServedModel({ model, clock: this.#clock });
    this.#device = new WatchedDevice(this.#model, this.#lent);
    this.#rig = new SessionRig(this.#device, { maxPendingAccesses: 64 });
  }

  get isOver(): boolean {
    return this.#isOver || this.#rig.ends.length > 0;
  }

  give(bytes: Uint8Array, recordedFds: number): void {
    const prng = this.#prng;
    if (prng.below(32) === 0) this.#pass(prng.pick([1e3, 1e6, 1e9, 6e9]));
    if (messageSize(viewOf(bytes), 0) !== bytes.length) {
      // As the assembler would.
      this.#rig.session.badSize(this.#clock.now(), bytes.subarray(0, HEADER_BYTES));
      this.#isOver = true;
      return;
    }
    this.#deliver(bytes, this.#fds(recordedFds));
    if (this.isOver) return;
    this.#model.tick(this.#clock.now());
    this.#takeAnswers();
    if (prng.below(8) === 0) this.#probe();
  }

  #deliver(bytes: Uint8Array, fds: readonly number[]): void {
    const refusals = this.#rig.refusals.length;
    const message = parseMessage(bytes);
    if (isCommand(message) && wantsReply(message)) {
      const key = `${message.id} ${message.command}`;
      this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
    }
    this.#rig.give(bytes, fds);
    if (this.isOver || this.#rig.refusals.length > refusals) return;
    this.#lent.accepted(message, fds.length);
  }

  /** Whatever is under way comes to its end, and nothing is left of the session. */
  end(): void {
    if (!this.isOver) {
      this.#pass(ALL_ANSWERED_NS);
      const [open] = this.#open.keys();
      if (open !== undefined && !this.isOver)
        throw new Error(`never answered: id and command ${open}`);
    }
    this.#rig.end();
    this.#model.stop();
    this.#lent.end();
  }

  #pass(ns: number): void {
    this.#clock.runUntil(this.#clock.now() + ns);
    this.#rig.at(this.#clock.now() / 1e6);
    this.#takeAnswers();
  }

  /** Mostly as many as were recorded, of a file; or others. */
  #fds(recorded: number): number[] {
    const prng = this.#prng;
    const count = prng.below(12) === 0 ? prng.below(4) : recorded;
    return Array.from({ length: count }, () => {
      if (prng.below(10) !== 0) return this.#lent.descriptor();
      if (prng.below(2) === 0) return systemFds.createEventFd().fd;
      return createMemoryFile('other', 8192, prng.below(2) === 0);
    });
  }

  #takeAnswers(): void {
    for (const { message } of this.#rig.port.sent.splice(0)) {
      if (messageSize(message.view, 0) !== message.bytes.length) {
        throw new Error(`an answer of ${message.bytes.length} bytes states another length`);
      }
      if (!isReply(message)) {
        this.#answer(message.id, message.command, message.view);
        continue;
      }
      const key = `${message.id} ${message.command}`;
      const open = this.#open.get(key) ?? 0;
      if (open === 0) throw new Error(`an answer nobody asked for: id and command ${key}`);
      if (open === 1) this.#open.delete(key);
      else this.#open.set(key, open - 1);
      if ((message.flags & 0x20) === 0) this.accepted++;
      else this.refused++;
    }
  }

  /** The server asks for memory without descriptors: mostly it gets it. */
  #answer(id: number, command: number, view: DataView): void {
    const prng = this.#prng;
    if (prng.below(8) === 0) return;
    const address = Number(view.getBigUint64(16, true));
    const count = Number(view.getBigUint64(24, true));
    let reply =
      command === Command.DMA_READ
        ? encodeDmaReadReply(id, { address, count })
        : encodeDmaWriteReply(id, { address, count });
    if (prng.below(8) === 0) reply = mutated(prng, reply);
    if (messageSize(viewOf(reply), 0) === reply.length && !this.isOver) this.#deliver(reply, []);
  }

  /** What the device might do to the guest's memory around where something begins or ends. */
  #probe(): void {
    const prng = this.#prng;
    const { client } = this.#device;
    const address = Math.max(0, this.#lent.edge((of) => prng.pick(of)) + prng.below(128) - 64);
    const bytes = new Uint8Array(1 + prng.below(96)).fill(1 + prng.below(255));
    const now = this.#clock.now() as Nanos;
    const transfer = { address, bytes, at: 0, count: bytes.length, done: () => {} };
    if (prng.below(2) === 0) {
      client?.dmaRead(now, transfer);
      return;
    }
    const how = this.#lent.allows(true, address, bytes.length);
    client?.dmaWrite(now, transfer);
    if (client === undefined || how !== 'file') return;
    for (const at of [address, address + bytes.length - 1]) {
      if (this.#lent.byteAt(at) !== bytes[0])
        throw new Error(`0x${at.toString(16)} was not written`);
    }
  }
}
