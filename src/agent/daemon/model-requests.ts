/** Requests to a served model: configuration and memory, with tags until their completions have come. */
import { copyBytes } from '#base/copy-bytes';
import type { Nanos } from '#base/units';
import { readChunk, setMemoryRead, setMemoryWrite, writeChunk } from '#pcie/split';
import { CompletionStatus, resetTlp, Tlp, TlpKind } from '#pcie/tlp';
import { registersOf, type RegisterWrite } from './config-span.ts';

/** The function's place below the root port: bus 1, device 0. */
const BDF = 0x0100;
const ROOT_PORT = 0;
const MAX_TAGS = 1024;
/** What every device takes. */
const WRITE_BYTES = 128;
const READ_BYTES = 4096;

type Ended = (now: Nanos) => void;

/** An access that goes as one or more requests. */
interface Access {
  left: number;
  readonly ended: Ended;
}

interface Pending {
  readonly access: Access;
  /** Where the data goes: `end` is where the request's share ends. */
  readonly bytes: Uint8Array | undefined;
  at: number;
  readonly end: number;
  /** Bytes of the completion before those that count. */
  readonly skip: number;
}

export class ModelRequests {
  readonly #receive: (now: Nanos, tlp: Tlp) => void;
  readonly #pending = new Map<number, Pending>();
  readonly #word = new Uint8Array(4);
  readonly #block = new Uint8Array(WRITE_BYTES + 4);
  #tag = 0;

  constructor(receive: (now: Nanos, tlp: Tlp) => void) {
    this.#receive = receive;
  }

  /** Reads `bytes.length` bytes; all ones where the model refuses. False: too much at once. */
  readMemory(now: Nanos, address: number, bytes: Uint8Array, ended: Ended): boolean {
    const parts: [number, number][] = [];
    for (let at = 0; at < bytes.length; ) {
      const part = readChunk(address + at, bytes.length - at, READ_BYTES);
      parts.push([at, part]);
      at += part;
    }
    if (this.#pending.size + parts.length > MAX_TAGS) return false;
    const access: Access = { left: parts.length, ended };
    for (const [at, part] of parts) {
      const tag = this.#open({ access, bytes, at, end: at + part, skip: 0 });
      const tlp = new Tlp();
      setMemoryRead(tlp, address + at, part, ROOT_PORT, tag);
      this.#receive(now, tlp);
    }
    return true;
  }

  /** Posted. */
  writeMemory(now: Nanos, address: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const part = writeChunk(address + at, bytes.length - at, WRITE_BYTES);
      const tlp = new Tlp();
      setMemoryWrite(tlp, address + at, part, ROOT_PORT);
      this.#block.fill(0);
      copyBytes(this.#block, (address + at) & 3, bytes, at, part);
      tlp.payload = this.#block;
      this.#receive(now, tlp);
      at += part;
    }
  }

  /** Reads any span of configuration space. False: too much at once. */
  readConfig(now: Nanos, offset: number, bytes: Uint8Array, ended: Ended): boolean {
    const end = offset + bytes.length;
    const registers = registersOf(offset, bytes.length);
    if (this.#pending.size + registers.length > MAX_TAGS) return false;
    const access: Access = { left: registers.length, ended };
    for (const register of registers) {
      const from = Math.max(register, offset);
      const to = Math.min(register + 4, end);
      const pending = { access, bytes, at: from - offset, end: to - offset, skip: from - register };
      const tag = this.#open(pending);
      this.#receive(now, configRequest(TlpKind.CfgRd0, register, 15, tag));
    }
    return true;
  }

  /** False: too much at once. */
  writeConfig(now: Nanos, writes: readonly RegisterWrite[], ended: Ended): boolean {
    if (this.#pending.size + writes.length > MAX_TAGS) return false;
    const access: Access = { left: writes.length, ended };
    for (const { register, value, byteEnables } of writes) {
      const tag = this.#open({ access, bytes: undefined, at: 0, end: 0, skip: 0 });
      const tlp = configRequest(TlpKind.CfgWr0, register, byteEnables, tag);
      new DataView(this.#word.buffer).setUint32(0, value, true);
      tlp.payload = this.#word;
      tlp.payloadBytes = 4;
      this.#receive(now, tlp);
    }
    if (writes.length === 0) ended(now);
    return true;
  }

  /** A completion of the model; one that answers nothing is dropped. */
  completion(now: Nanos, tlp: Tlp): void {
    const pending = this.#pending.get(tlp.tag);
    if (pending === undefined) return;
    const { bytes, end } = pending;
    if (tlp.status !== CompletionStatus.SC) {
      bytes?.fill(0xff, pending.at, end);
      pending.at = end;
    } else if (bytes !== undefined) {
      const skip = pending.skip + (tlp.lowerAddress & 3);
      const part = Math.min(end - pending.at, tlp.payloadBytes - skip);
      if (part > 0) copyBytes(bytes, pending.at, tlp.payload, tlp.payloadOffset + skip, part);
      pending.at += Math.max(part, 0);
    }
    if (pending.at < end) return;
    this.#pending.delete(tlp.tag);
    this.#ended(now, pending.access);
  }

  /** The model is reset: what was asked of it before reads as all ones. */
  abandon(now: Nanos): void {
    const open = [...this.#pending.values()];
    this.#pending.clear();
    for (const { bytes, at, end, access } of open) {
      bytes?.fill(0xff, at, end);
      this.#ended(now, access);
    }
  }

  #ended(now: Nanos, access: Access): void {
    access.left--;
    if (access.left === 0) access.ended(now);
  }

  #open(pending: Pending): number {
    while (this.#pending.has(this.#tag)) this.#tag = (this.#tag + 1) % MAX_TAGS;
    this.#pending.set(this.#tag, pending);
    return this.#tag;
  }
}

function configRequest(
  kind: typeof TlpKind.CfgRd0 | typeof TlpKind.CfgWr0,
  register: number,
  firstBe: number,
  tag: number,
): Tlp {
  const tlp = new Tlp();
  resetTlp(tlp);
  tlp.kind = kind;
  tlp.lengthDw = 1;
  tlp.requesterId = ROOT_PORT;
  tlp.tag = tag;
  tlp.firstBe = firstBe;
  tlp.completerId = BDF;
  tlp.register = register;
  return tlp;
}
