/**
 * What a remote function asks of host memory, as DMA messages: each becomes TLPs of the DMA engine, with its
 * tags and limits. A read is answered when all of it is there, a write once the last of it has left. What is
 * sent upstream besides has its place behind the writes that came before it (`after`).
 */
import { Barrier } from '#base/barrier';
import type { Nanos } from '#base/units';
import type { DevicePort } from '#pcie/device';
import { DmaEngine, type DmaLimits } from '#pcie/endpoint-dma';
import { type DmaClient, DmaStatus } from '#pcie/endpoint-transfer';
import type { Tlp } from '#pcie/tlp';
import type { DmaReadAccess, DmaTarget, DmaWriteAccess } from '#vfio-user/client-memory';
import { Errno } from '#vfio-user/refusal';

/** As an endpoint of ours has by default; the host's tag enables bound it further. */
const TAGS = 256;
const COMPLETION_TIMEOUT_NS = 4e9;
/**
 * Transfers kept at once, with their bytes. More than a session lets be unanswered (`maxPendingDma`): what has
 * been answered by its time limit is kept on, for as long as the host takes nothing.
 */
export const MAX_KEPT_TRANSFERS = 128;

interface Transfer {
  readonly done: (now: Nanos) => void;
  readonly fail: (now: Nanos, errno: number) => void;
  /** Of a write. */
  readonly serial: number | undefined;
}

export class RemoteDma implements DmaTarget, DmaClient {
  readonly #engine: DmaEngine;
  readonly #writes = new Barrier();
  readonly #out = new Map<number, Transfer>();
  #cookie = 0;

  constructor() {
    this.#engine = new DmaEngine({
      channels: 1,
      tags: TAGS,
      completionTimeoutNs: COMPLETION_TIMEOUT_NS,
      // The function's error registers are in its own hands.
      onError: () => {},
    });
  }

  get limits(): DmaLimits {
    return this.#engine.limits;
  }

  plug(port: DevicePort): void {
    this.#engine.plug(port);
  }

  read(now: Nanos, access: DmaReadAccess): void {
    if (this.#refuses(now, access)) return;
    const { address, count } = access;
    const bytes = new Uint8Array(count);
    const done = (then: Nanos): void => access.complete(then, bytes);
    const fail = (then: Nanos, errno: number): void => access.fail(then, errno);
    const cookie = this.#open({ done, fail, serial: undefined });
    this.#engine.read(now, 0, address, bytes, 0, count, this, cookie);
  }

  write(now: Nanos, access: DmaWriteAccess): void {
    if (this.#refuses(now, access)) return;
    const { address, count } = access;
    const done = (then: Nanos): void => access.done(then);
    const fail = (then: Nanos, errno: number): void => access.fail(then, errno);
    const cookie = this.#open({ done, fail, serial: this.#writes.begin() });
    this.#engine.write(now, 0, address, access.bytes.slice(0, count), 0, count, this, cookie);
  }

  /** A DWORD write, as a message interrupt is; behind the writes before it. */
  writeWord(now: Nanos, address: number, value: number): void {
    const ended = (): void => {};
    const cookie = this.#open({ done: ended, fail: ended, serial: this.#writes.begin() });
    this.#engine.writeSmall(now, 0, address, value, 0, 4, this, cookie);
  }

  dmaDone(now: Nanos, cookie: number, status: DmaStatus): void {
    const transfer = this.#out.get(cookie);
    if (transfer === undefined) return;
    this.#out.delete(cookie);
    if (status === DmaStatus.OK) transfer.done(now);
    else transfer.fail(now, status === DmaStatus.TIMEOUT ? Errno.ETIMEDOUT : Errno.EFAULT);
    if (transfer.serial !== undefined) this.#writes.ended(now, transfer.serial);
  }

  /** Calls `run` once all writes so far have left, in order. */
  after(now: Nanos, run: (now: Nanos) => void): void {
    if (this.#writes.isOpen) run(now);
    else this.#writes.wait(run);
  }

  /** The host has taken bus mastering away: what has not left never will. */
  stop(now: Nanos): void {
    this.#engine.abort(0);
    const stopped = [...this.#out.values()];
    this.#out.clear();
    for (const { fail, serial } of stopped) {
      fail(now, Errno.EPERM);
      if (serial !== undefined) this.#writes.ended(now, serial);
    }
  }

  /** Forgets everything, and what waits behind it; the function gets errors for answers. */
  reset(now: Nanos): void {
    this.limits.busMaster = false;
    this.#engine.reset();
    this.#writes.clear();
    const stopped = [...this.#out.values()];
    this.#out.clear();
    for (const { fail } of stopped) fail(now, Errno.ECONNRESET);
  }

  completion(now: Nanos, tlp: Tlp): boolean {
    return this.#engine.completion(now, tlp);
  }

  pump(now: Nanos): void {
    this.#engine.pump(now);
  }

  nextDeadlineNs(): number {
    return this.#engine.nextDeadlineNs();
  }

  tick(now: Nanos): void {
    this.#engine.tick(now);
  }

  /** Whether what is asked cannot be taken; then it is answered. */
  #refuses(now: Nanos, access: DmaReadAccess | DmaWriteAccess): boolean {
    const isFull = this.#out.size >= MAX_KEPT_TRANSFERS;
    if (this.limits.busMaster && !isFull) return false;
    access.fail(now, this.limits.busMaster ? Errno.EBUSY : Errno.EPERM);
    return true;
  }

  #open(transfer: Transfer): number {
    const cookie = ++this.#cookie;
    this.#out.set(cookie, transfer);
    return cookie;
  }
}
