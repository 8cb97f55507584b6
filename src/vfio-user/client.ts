/**
 * A vfio-user client: connects to a device that another process serves. The shell around
 * `ClientSession`, whose methods with callbacks are for hot paths; these here return promises, which
 * reject with a `DxpuError` that has the peer's errno in its details.
 */
import { type Clock, RealClock, TimerDriver } from '#base/clock';
import { DxpuError, type DxpuErrorCode } from '#base/errors';
import type { DmaTarget } from './client-memory.ts';
import {
  type ClientOptions,
  type ClientSettings,
  DEFAULT_CLIENT_OPTIONS,
  type DeviceDescription,
} from './client-options.ts';
import { ClientSession } from './client-session.ts';
import type { DmaMapRequest } from './dma-mapping.ts';
import type { FdOperations, MappedMemory } from './fd-operations.ts';
import type { OnIrq } from './irq-receiver.ts';
import { koffiTransport } from './koffi-socket.ts';
import { MessageChannel } from './message-channel.ts';
import { type Done, Errno, errnoText, Refusal } from './refusal.ts';
import { systemFds } from './system-fds.ts';
import type { UnixFdTransport } from './unix-fd-socket.ts';
import { MAX_VERSION_BYTES } from './version.ts';

export interface VfioUserClientOptions extends ClientOptions {
  readonly path: string;
  /** What is behind the addresses of memory that is lent without a descriptor. */
  readonly memory: DmaTarget;
  /** The device is gone; only after it was there. */
  readonly onEnd?: (reason: string) => void;
  readonly clock?: Clock;
  readonly transport?: UnixFdTransport;
  readonly fds?: FdOperations;
}

/** Messages that wait for a server that does not read: more, and it is given up. */
const CLOSE_ABOVE_BYTES = 64 * 2 ** 20;

export class VfioUserClient {
  readonly session: ClientSession;
  readonly device: DeviceDescription;
  readonly #clock: Clock;
  readonly #fds: FdOperations;

  private constructor(
    session: ClientSession,
    device: DeviceDescription,
    clock: Clock,
    fds: FdOperations,
  ) {
    this.session = session;
    this.device = device;
    this.#clock = clock;
    this.#fds = fds;
  }

  /**
   * Resolves once the device has been described. Rejects with a `DxpuError`: `not_found` or
   * `unavailable` when nobody listens, otherwise the reason the session ended for.
   */
  static connect(options: VfioUserClientOptions): Promise<VfioUserClient> {
    const clock = options.clock ?? new RealClock();
    const fds = options.fds ?? systemFds;
    const settings = withDefaults(options);
    return new Promise((resolve, reject) => {
      const socket = (options.transport ?? koffiTransport).connect(options.path);
      const channel = new MessageChannel(socket, clock, {
        fds,
        limitBytes: MAX_VERSION_BYTES,
        maxFds: settings.maxMsgFds,
        // A device whose memory is here must not wait for us to read while we wait for it.
        holdAboveBytes: Infinity,
        closeAboveBytes: CLOSE_ABOVE_BYTES,
      });
      let isReady = false;
      const session: ClientSession = new ClientSession({
        port: channel,
        fds,
        memory: options.memory,
        settings,
        deadlineMoved: () => timer.update(),
        onReady: (_now, device) => {
          isReady = true;
          resolve(new VfioUserClient(session, device, clock, fds));
        },
        onEnd: (_now, reason) => {
          timer.stop();
          if (isReady) options.onEnd?.(reason);
          else reject(new DxpuError('unavailable', `${options.path}: ${reason}`));
        },
      });
      const timer = new TimerDriver(clock, session);
      channel.start(session);
      session.start(clock.now());
    });
  }

  /** The bytes, copied. Longer reads go as several, one after another. */
  async readRegion(region: number, offset: number, count: number): Promise<Uint8Array> {
    const all = new Uint8Array(count);
    for (let from = 0; from < count; ) {
      const part = Math.min(count - from, this.session.maxAccessBytes);
      await this.#promise((done) =>
        this.session.readRegion(this.#clock.now(), region, offset + from, part, (now, bytes) => {
          if (!(bytes instanceof Refusal)) all.set(bytes, from);
          done(now, bytes instanceof Refusal ? bytes : undefined);
        }),
      );
      from += part;
    }
    return all;
  }

  async writeRegion(region: number, offset: number, bytes: Uint8Array): Promise<void> {
    for (let from = 0; from < bytes.length; ) {
      const part = bytes.subarray(from, from + this.session.maxAccessBytes);
      await this.#promise((done) =>
        this.session.writeRegion(this.#clock.now(), region, offset + from, part, done),
      );
      from += part.length;
    }
  }

  reset(): Promise<void> {
    return this.#promise((done) => this.session.reset(this.#clock.now(), done));
  }

  /** Lends memory to the device; `fd` stays the caller's. */
  mapMemory(request: DmaMapRequest, fd?: number): Promise<void> {
    return this.#promise((done) => this.session.mapMemory(this.#clock.now(), request, fd, done));
  }

  unmapMemory(address: number, sizeBytes: number): Promise<void> {
    return this.#promise((done) =>
      this.session.unmapMemory(this.#clock.now(), address, sizeBytes, done),
    );
  }

  enableIrqs(index: number, count: number, onIrq: OnIrq): Promise<void> {
    return this.#promise((done) =>
      this.session.enableIrqs(this.#clock.now(), index, count, onIrq, done),
    );
  }

  disableIrqs(index: number): Promise<void> {
    return this.#promise((done) => this.session.disableIrqs(this.#clock.now(), index, done));
  }

  unmaskIntx(): Promise<void> {
    return this.#promise((done) => this.session.unmaskIntx(this.#clock.now(), done));
  }

  /**
   * Maps part of a region that the server shares. Throws `DxpuError` `failed_precondition` if it does
   * not, or if the part is not inside the region and its file.
   */
  mapRegion(index: number, offset: number, sizeBytes: number): MappedMemory {
    const fd = this.session.regionFd(index);
    const region = this.device.regions[index];
    if (fd === undefined || region === undefined || offset + sizeBytes > region.sizeBytes) {
      throw new DxpuError('failed_precondition', `region ${index} is not shared, or is shorter`);
    }
    const at = region.fileOffset + offset;
    const info = this.#fds.inspect(fd);
    if (info.kind !== 'memory' || at + sizeBytes > info.sizeBytes) {
      throw new DxpuError('failed_precondition', `the file of region ${index} is not as long`);
    }
    const mapped = this.#fds.map(fd, at, sizeBytes, region.write);
    if (mapped instanceof Refusal) throw new DxpuError('failed_precondition', mapped.reason);
    return mapped;
  }

  /** Ends the session; `onEnd` is called. */
  close(): void {
    this.session.disconnect(this.#clock.now(), 'closed here');
  }

  #promise(begin: (done: Done) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      begin((_now, refused) => {
        if (refused === undefined) resolve();
        else reject(errorOf(refused));
      });
    });
  }
}

const CODES: ReadonlyMap<number, DxpuErrorCode> = new Map([
  [Errno.EINVAL, 'invalid_argument'],
  [Errno.EPERM, 'permission_denied'],
  [Errno.EEXIST, 'already_exists'],
  [Errno.ENOENT, 'not_found'],
  [Errno.EOPNOTSUPP, 'unimplemented'],
  [Errno.EBUSY, 'resource_exhausted'],
  [Errno.ENOSPC, 'resource_exhausted'],
  [Errno.ETIMEDOUT, 'deadline_exceeded'],
  [Errno.ECONNRESET, 'unavailable'],
]);

function errorOf(refused: Refusal): DxpuError {
  const { errno, reason } = refused;
  return new DxpuError(CODES.get(errno) ?? 'unknown', `${reason}: ${errnoText(errno)}`, {
    details: { errno },
  });
}

function withDefaults(options: ClientOptions): ClientSettings {
  const defaults = DEFAULT_CLIENT_OPTIONS;
  return {
    requestTimeoutMs: options.requestTimeoutMs ?? defaults.requestTimeoutMs,
    dmaTimeoutMs: options.dmaTimeoutMs ?? defaults.dmaTimeoutMs,
    maxMsgFds: options.maxMsgFds ?? defaults.maxMsgFds,
    maxDataXferBytes: options.maxDataXferBytes ?? defaults.maxDataXferBytes,
    maxPendingDma: options.maxPendingDma ?? defaults.maxPendingDma,
    ...(options.onRefused === undefined ? {} : { onRefused: options.onRefused }),
  };
}
