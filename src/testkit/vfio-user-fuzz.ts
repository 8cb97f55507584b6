/**
 * Mutated messages against a live server session and a live client session, without sockets but with
 * real descriptors. A finding is an exception, a descriptor too many, an answer that is no message, or a
 * change of guest memory that nobody was lent.
 */
import { closeSync } from 'node:fs';
import { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import { ArrayMemory } from '#vfio-user/client-memory';
import { DEFAULT_CLIENT_OPTIONS } from '#vfio-user/client-options';
import { ClientSession } from '#vfio-user/client-session';
import { encodeDeviceInfoRequest } from '#vfio-user/device-info';
import { encodeDmaRead, encodeDmaWrite } from '#vfio-user/dma-access';
import { encodeDmaMap, encodeDmaUnmap } from '#vfio-user/dma-mapping';
import { encodeIrqInfoRequest } from '#vfio-user/irq-info';
import { encodeIrqSet } from '#vfio-user/irq-set';
import { HEADER_BYTES, isReply, messageSize, newMessage, viewOf } from '#vfio-user/message';
import {
  encodeRegionRead,
  encodeRegionWrite,
  encodeRegionWriteMulti,
} from '#vfio-user/region-access';
import { encodeRegionInfoRequest } from '#vfio-user/region-info';
import { createMemoryFile, systemFds } from '#vfio-user/system-fds';
import { DEFAULT_CAPABILITIES, encodeVersion } from '#vfio-user/version';
import { ExampleDevice } from './vfio-user-device.ts';
import { mutated } from './vfio-user/message-mutations.ts';
import { duplicateFd, openFds, RecordingPort, SessionRig } from './vfio-user-rig.ts';

export interface VfioUserFuzzResult {
  readonly messages: number;
  /** Answered without an error. */
  readonly accepted: number;
  readonly refused: number;
  /** Sessions that came to their end. */
  readonly sessionsEnded: number;
}

const GUEST_BYTES = 1 << 16;
const CANARY = 0xc7;

/** Throws an error that names the seed and the message when something is found. */
export function fuzzVfioUser(seed: number, count: number): VfioUserFuzzResult {
  const prng = new Prng(seed);
  const fds = openFds();
  const server = new ServerTarget(prng);
  const client = new ClientTarget();
  for (let index = 0; index < count; index++) {
    const valid = validMessage(prng);
    const message = prng.below(3) === 0 ? valid : mutated(prng, valid);
    try {
      if (prng.below(4) === 0) client.give(message);
      else server.give(message);
    } catch (error) {
      const hex = Buffer.from(message).toString('hex');
      throw new Error(`seed ${seed}, message ${index}: ${hex}`, { cause: error });
    }
  }
  server.close();
  client.close();
  if (openFds() !== fds) {
    throw new Error(`seed ${seed}: ${openFds() - fds} descriptors are left open`);
  }
  return {
    messages: count,
    accepted: server.accepted,
    refused: server.refused,
    sessionsEnded: server.ended + client.ended,
  };
}

/** One message through a new session after VERSION; for inputs of other programs. */
export function giveVfioUserMessages(input: Uint8Array): void {
  const server = new ServerTarget(new Prng(1));
  for (let at = 0; at + HEADER_BYTES <= input.length; ) {
    const size = messageSize(viewOf(input), at);
    const end = size < HEADER_BYTES ? input.length : Math.min(input.length, at + size);
    server.give(Uint8Array.from(input.subarray(at, end)));
    at = end;
  }
  server.close();
}

class ServerTarget {
  accepted = 0;
  refused = 0;
  ended = 0;
  readonly #prng: Prng;
  #rig!: SessionRig;
  #device!: ExampleDevice;
  /** What the device could reach, were it let: the page lent, between two that never are. */
  readonly #file = createMemoryFile('guest', 3 * 4096, true);
  readonly #canary = systemFds.map(this.#file, 0, 3 * 4096, true);
  #since = 0;

  constructor(prng: Prng) {
    this.#prng = prng;
    this.#canaryBytes().fill(CANARY);
    this.#restart();
  }

  give(message: Uint8Array): void {
    const rig = this.#rig;
    if (this.#prng.below(64) === 0) rig.at(rig.now / 1e6 + this.#prng.below(6000));
    if (messageSize(viewOf(message), 0) !== message.length || message.length < HEADER_BYTES) {
      // As the assembler would.
      rig.session.badSize(rig.now as Nanos, message.subarray(0, HEADER_BYTES));
      this.ended++;
      rig.end();
    } else {
      rig.give(message, this.#fds(message));
    }
    this.#checkAnswers();
    if (rig.ends.length > 0 || this.#since++ > 2000) this.#restart();
  }

  close(): void {
    this.#rig.end();
    this.#checkCanary();
    if ('windows' in this.#canary) this.#canary.release();
    closeSync(this.#file);
  }

  #restart(): void {
    if (this.#since > 0) {
      this.#rig.end();
      this.ended++;
      this.#checkCanary();
    }
    this.#since = 1;
    const memory = this.#device?.memory ?? new Uint8Array(1 << 20);
    this.#device = new ExampleDevice({ msix: 'hide', memory });
    this.#rig = new SessionRig(this.#device, { maxPendingAccesses: 64 }).hello();
    this.#device.config.write(4, 6, 1);
    const lent = { address: 0x1000, sizeBytes: 4096, fileOffset: 4096 };
    const map = encodeDmaMap(1, { ...lent, readable: true, writable: true });
    this.#rig.give(map, [duplicateFd(this.#file)]);
    this.#rig.port.sent.length = 0;
    this.#rig.refusals.length = 0;
  }

  /** Now and then descriptors, some of the right kind. */
  #fds(message: Uint8Array): number[] {
    const command = viewOf(message).getUint16(2, true);
    const takes = command === 2 || command === 8;
    if (this.#prng.below(takes ? 2 : 40) !== 0) return [];
    return Array.from({ length: 1 + this.#prng.below(3) }, () =>
      this.#prng.below(2) === 0
        ? systemFds.createEventFd().fd
        : createMemoryFile('fuzz', 8192, this.#prng.below(2) === 0),
    );
  }

  #checkAnswers(): void {
    for (const { message } of this.#rig.port.sent.splice(0)) {
      if (messageSize(message.view, 0) !== message.bytes.length) {
        throw new Error(`an answer of ${message.bytes.length} bytes states another length`);
      }
      if (isReply(message) && (message.flags & 0x20) === 0) this.accepted++;
      else this.refused++;
    }
  }

  #canaryBytes(): Uint8Array {
    if (!('windows' in this.#canary)) throw new Error(this.#canary.reason);
    return this.#canary.windows[0] as Uint8Array;
  }

  #checkCanary(): void {
    const bytes = this.#canaryBytes();
    for (const at of [0, 4095, 2 * 4096, 3 * 4096 - 1]) {
      if (bytes[at] !== CANARY) throw new Error(`memory that was not lent has changed at ${at}`);
    }
  }
}

class ClientTarget {
  ended = 0;
  readonly #memory = new Uint8Array(GUEST_BYTES).fill(CANARY);
  #session!: ClientSession;
  #port!: RecordingPort;
  #isOver = true;

  give(message: Uint8Array): void {
    if (this.#isOver) this.#restart();
    if (messageSize(viewOf(message), 0) !== message.length || message.length < HEADER_BYTES) return;
    const fds =
      viewOf(message).getUint16(0, true) % 16 === 0 ? [createMemoryFile('c', 8, true)] : [];
    this.#session.message(0 as Nanos, message, fds, false);
    this.#port.sent.length = 0;
    if (this.#memory[0] !== CANARY || this.#memory[GUEST_BYTES - 1] !== CANARY) {
      throw new Error('memory that was not lent has changed');
    }
  }

  close(): void {
    if (!this.#isOver) this.#session.disconnect(0 as Nanos, 'over');
  }

  #restart(): void {
    this.#isOver = false;
    this.#port = new RecordingPort();
    this.#session = new ClientSession({
      port: this.#port,
      fds: systemFds,
      memory: new ArrayMemory(this.#memory),
      settings: DEFAULT_CLIENT_OPTIONS,
      onReady: () => {},
      onEnd: () => {
        this.#isOver = true;
        this.ended++;
      },
      deadlineMoved: () => {},
    });
    this.#session.start(0 as Nanos);
    const lent = { address: 0x1000, sizeBytes: 0x1000, fileOffset: 0 };
    const request = { ...lent, readable: true, writable: true };
    this.#session.mapMemory(0 as Nanos, request, undefined, () => {});
  }
}

function validMessage(prng: Prng): Uint8Array {
  const id = prng.below(8);
  const address = 0x1000 * prng.below(4) + prng.below(64);
  const pages = { address: 0x1000 * prng.below(16), sizeBytes: 0x1000 * (1 + prng.below(3)) };
  const range = { region: prng.below(9), offset: prng.below(64), count: 1 + prng.below(16) };
  const bytes = Uint8Array.from({ length: range.count }, () => prng.below(256));
  switch (prng.below(15)) {
    case 0:
      return encodeVersion(id, prng.below(2) === 0, 0, DEFAULT_CAPABILITIES);
    case 1:
      return encodeDmaMap(id, { ...pages, fileOffset: 0, readable: true, writable: true });
    case 2:
      return encodeDmaUnmap(id, { all: false, ...pages });
    case 3:
      return encodeDeviceInfoRequest(id);
    case 4:
      return encodeRegionInfoRequest(id, prng.below(10), 64);
    case 5:
      return encodeIrqInfoRequest(id, prng.below(6));
    case 6: {
      const data = prng.pick(['none', 'eventfd'] as const);
      const action = prng.pick(['mask', 'unmask', 'trigger'] as const);
      return encodeIrqSet(id, {
        index: prng.below(5),
        start: 0,
        count: prng.below(3),
        data,
        action,
      });
    }
    case 7:
      return encodeRegionRead(id, range);
    case 8:
      return encodeRegionWrite(id, { ...range, bytes });
    case 9:
      return encodeRegionWriteMulti(id, [
        { ...range, count: 4, bytes: bytes.length < 4 ? new Uint8Array(4) : bytes },
      ]);
    case 10:
      return encodeDmaRead(id, address, range.count);
    case 11:
      return encodeDmaWrite(id, address, bytes, 0, range.count);
    case 12:
      return doorbell(prng, id, address);
    case 13:
      return newMessage(id, prng.below(20), prng.pick([0, 1, 0x21]), prng.below(48));
    default:
      return newMessage(id, 13, 0, 0);
  }
}

/** Sets up the DMA engine of the device, a register at a time, and starts it. */
function doorbell(prng: Prng, id: number, address: number): Uint8Array {
  const [offset, value] = prng.pick([
    [8, address],
    [0xc, 0],
    [0x10, 1 + prng.below(8192)],
    [0x14, prng.below(4096)],
    [0x18, 1 + prng.below(2)],
  ] as const);
  const bytes = new Uint8Array(Uint32Array.of(value).buffer);
  return encodeRegionWrite(id, { region: 0, offset, count: 4, bytes });
}
