/**
 * Region accesses and resets of one client: checks them against the device's spec, hands them to the
 * device, and answers when it does, or for it when it does not in time.
 */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import { HiddenMsix } from './hidden-msix.ts';
import type { PeerPort } from './message-channel.ts';
import {
  emptyReply,
  errorReply,
  type Message,
  refuseLength,
  type RequestName,
  requestName,
  wantsReply,
} from './message.ts';
import { PendingAccesses } from './pending-accesses.ts';
import { Errno, Refusal } from './refusal.ts';
import {
  decodeRegionAccess,
  decodeRegionWriteMulti,
  encodeRegionReadReply,
  encodeRegionWriteMultiReply,
  encodeRegionWriteReply,
  REGION_DATA,
  type RegionRange,
  type RegionWrite,
} from './region-access.ts';
import { REGION_CONFIG } from './region-info.ts';
import { hidesMsix, type RegionRead, type ServedDevice } from './served-device.ts';
import type { ServerSettings } from './server-options.ts';

/** Bytes are copied one by one up to the longest load of a CPU: a view of them takes longer to make. */
const LOAD_BYTES = 8;

/** What a device says of a write or a reset. */
interface Answers {
  readonly done: () => void;
  readonly fail: (now: Nanos, errno: number) => void;
}

const UNANSWERED: Answers = { done: () => {}, fail: () => {} };

export class RegionServer {
  readonly accesses: PendingAccesses;
  readonly #device: ServedDevice;
  readonly #port: PeerPort;
  readonly #settings: ServerSettings;
  readonly #hidden: HiddenMsix | undefined;

  constructor(device: ServedDevice, port: PeerPort, settings: ServerSettings) {
    this.#device = device;
    this.#port = port;
    this.#settings = settings;
    const { accessTimeoutMs, maxPendingAccesses } = settings;
    this.accesses = new PendingAccesses(accessTimeoutMs * 1e6, maxPendingAccesses);
    const { config } = device.spec;
    const hides = hidesMsix(device.spec) && config !== undefined;
    this.#hidden = hides ? HiddenMsix.find(config) : undefined;
  }

  read(now: Nanos, message: Message): Refusal | undefined {
    const range = decodeRegionAccess(message, this.#settings.maxDataXferBytes);
    if (range instanceof Refusal) return range;
    const refused = this.#refuse(range, false);
    if (refused !== undefined) return refused;
    if (!wantsReply(message)) return new Refusal(Errno.EINVAL, 'a read that wants no reply');
    const hidden = range.region === REGION_CONFIG ? this.#hidden : undefined;
    const name = requestName(message);
    const read = new ServedRead(range, name, hidden, this.accesses, this.#port);
    read.key = this.accesses.add(now, () => read.expire());
    this.#device.read(now, read);
    return undefined;
  }

  write(now: Nanos, message: Message): Refusal | undefined {
    const range = decodeRegionAccess(message, this.#settings.maxDataXferBytes);
    if (range instanceof Refusal) return range;
    const refused = this.#refuse(range, true);
    if (refused !== undefined) return refused;
    const bytes = message.bytes.subarray(REGION_DATA, REGION_DATA + range.count);
    const name = requestName(message);
    const answer = (errno: number): void => {
      const reply = errno === 0 ? encodeRegionWriteReply(name.id, range) : errorReply(name, errno);
      this.#port.send(reply);
    };
    const { region, offset, count } = range;
    const write = { region, offset, count, bytes };
    this.#give(now, write, wantsReply(message) ? answer : undefined);
    return undefined;
  }

  /** All are checked before the first is done. The reply says that all have been handed over. */
  writeMulti(now: Nanos, message: Message): Refusal | undefined {
    const writes = decodeRegionWriteMulti(message);
    if (writes instanceof Refusal) return writes;
    for (const write of writes) {
      const refused = this.#refuse(write, true);
      if (refused !== undefined) return refused;
    }
    for (const write of writes) this.#give(now, write, undefined);
    if (wantsReply(message)) {
      this.#port.send(encodeRegionWriteMultiReply(message.id, writes.length));
    }
    return undefined;
  }

  reset(now: Nanos, message: Message): Refusal | undefined {
    const wrong = refuseLength(message, 0);
    if (wrong !== undefined) return wrong;
    if (!this.#device.spec.resettable) {
      return new Refusal(Errno.EOPNOTSUPP, 'the device takes no reset');
    }
    if (this.accesses.isFull) return new Refusal(Errno.EBUSY, 'too many accesses at once');
    const name = requestName(message);
    const answered = wantsReply(message);
    const answer = (errno: number): void => {
      if (!answered) return;
      this.#port.send(errno === 0 ? emptyReply(name) : errorReply(name, errno));
    };
    this.#device.reset(now, this.#answerable(now, answer, Errno.ETIMEDOUT));
    return undefined;
  }

  #refuse(range: RegionRange, isWrite: boolean): Refusal | undefined {
    const { region, offset, count } = range;
    const spec = this.#device.spec.regions.get(region);
    const sizeBytes = spec?.sizeBytes ?? 0;
    if (spec === undefined || offset < 0 || offset + count > sizeBytes) {
      const where = `${count} bytes at ${offset}`;
      return new Refusal(Errno.EINVAL, `${where} of region ${region}, which has ${sizeBytes}`);
    }
    if (isWrite ? !spec.write : !spec.read) {
      return new Refusal(Errno.EPERM, `region ${region} is not ${isWrite ? 'written' : 'read'}`);
    }
    if (this.accesses.isFull) return new Refusal(Errno.EBUSY, 'too many accesses at once');
    return undefined;
  }

  /** `answer` is called once: with an errno, or 0, also when the deadline passes first. */
  #give(now: Nanos, write: RegionWrite, answer: ((errno: number) => void) | undefined): void {
    if (
      write.region === REGION_CONFIG &&
      this.#hidden?.covers(write.offset, write.count) === true
    ) {
      answer?.(0);
      return;
    }
    const { region, offset, count, bytes } = write;
    const { done, fail } = answer === undefined ? UNANSWERED : this.#answerable(now, answer, 0);
    this.#device.write(now, { region, offset, count, bytes, done, fail });
  }

  /** Has `answer` called once: with what the device says, or at the deadline with `late`. */
  #answerable(now: Nanos, answer: (errno: number) => void, late: number): Answers {
    const key = this.accesses.add(now, () => answer(late));
    return {
      done: () => this.accesses.take(key) && answer(0),
      fail: (_now, errno) => this.accesses.take(key) && answer(errno),
    };
  }
}

/** A read that the device answers, or that is answered for it. A class: one is made for each load of a guest. */
class ServedRead implements RegionRead {
  readonly region: number;
  readonly offset: number;
  readonly count: number;
  /** Of `PendingAccesses`. */
  key = 0;
  readonly #name: RequestName;
  readonly #hidden: HiddenMsix | undefined;
  readonly #accesses: PendingAccesses;
  readonly #port: PeerPort;

  constructor(
    range: RegionRange,
    name: RequestName,
    hidden: HiddenMsix | undefined,
    accesses: PendingAccesses,
    port: PeerPort,
  ) {
    this.region = range.region;
    this.offset = range.offset;
    this.count = range.count;
    this.#name = name;
    this.#hidden = hidden;
    this.#accesses = accesses;
    this.#port = port;
  }

  complete(_now: Nanos, bytes: Uint8Array, at = 0): void {
    const { count } = this;
    assert(bytes.length - at >= count, 'as many bytes as were asked for');
    if (!this.#accesses.take(this.key)) return;
    const reply = encodeRegionReadReply(this.#name.id, this);
    if (count <= LOAD_BYTES) {
      for (let i = 0; i < count; i++) reply[REGION_DATA + i] = bytes[at + i] as number;
    } else {
      reply.set(bytes.subarray(at, at + count), REGION_DATA);
    }
    this.#hidden?.patch(this.offset, reply.subarray(REGION_DATA));
    this.#port.send(reply);
  }

  fail(_now: Nanos, errno: number): void {
    if (this.#accesses.take(this.key)) this.#port.send(errorReply(this.#name, errno));
  }

  /** Nobody answered in time: all ones. */
  expire(): void {
    this.#port.send(encodeRegionReadReply(this.#name.id, this).fill(0xff, REGION_DATA));
  }
}
