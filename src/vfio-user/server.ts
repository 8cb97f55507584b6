/**
 * A vfio-user server for one device at one socket: what QEMU's `vfio-user-pci` and Cloud Hypervisor
 * connect to. The shell around `ServerSession`: socket, clock, one timer. One client at a time; others
 * are turned away until it has gone.
 */
import { type Clock, RealClock, TimerDriver } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { FdOperations } from './fd-operations.ts';
import { koffiTransport } from './koffi-socket.ts';
import { MessageChannel } from './message-channel.ts';
import type { ServedDevice } from './served-device.ts';
import {
  DEFAULT_SERVER_OPTIONS,
  type ServerCounters,
  type ServerOptions,
  type ServerSettings,
} from './server-options.ts';
import { ServerSession } from './server-session.ts';
import { systemFds } from './system-fds.ts';
import type { UnixFdListener, UnixFdSocket, UnixFdTransport } from './unix-fd-socket.ts';
import { MAX_FDS } from './unix-fd-socket.ts';
import { MAX_VERSION_BYTES } from './version.ts';

export interface VfioUserServerOptions extends ServerOptions {
  readonly path: string;
  readonly device: ServedDevice;
  /** A client has gone, or was turned away before VERSION. */
  readonly onEnd?: (reason: string) => void;
  readonly clock?: Clock;
  readonly transport?: UnixFdTransport;
  readonly fds?: FdOperations;
}

/** Replies that wait for a client that does not read: above the first no more is read of it. */
const HOLD_ABOVE_BYTES = 8 * 2 ** 20;
const CLOSE_ABOVE_BYTES = 512 * 2 ** 20;

export class VfioUserServer {
  readonly #options: VfioUserServerOptions;
  readonly #settings: ServerSettings;
  readonly #clock: Clock;
  readonly #listener: UnixFdListener;
  #session: ServerSession | undefined;
  #closed = false;
  /** Clients turned away because another was there. */
  turnedAway = 0;

  /**
   * Listens at once. Throws `DxpuError`: `invalid_argument` for an option or path that cannot be,
   * `already_exists` if somebody listens there.
   */
  constructor(options: VfioUserServerOptions) {
    this.#options = options;
    this.#settings = checkServerOptions(options);
    this.#clock = options.clock ?? new RealClock();
    const transport = options.transport ?? koffiTransport;
    this.#listener = transport.listen(options.path, (socket) => this.#connected(socket));
  }

  /** The session of the client that is there. */
  get session(): ServerSession | undefined {
    return this.#session;
  }

  /** Of the client that is there. */
  get counters(): ServerCounters | undefined {
    return this.#session?.counters;
  }

  /** Ends the session of the client that is there; another may come. */
  disconnect(reason: string): void {
    this.#session?.disconnect(this.#clock.now(), reason);
  }

  /** Ends the session and stops listening. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#listener.close();
    this.disconnect('the server closes');
  }

  #connected(socket: UnixFdSocket): void {
    if (this.#session !== undefined) {
      this.turnedAway++;
      socket.close();
      return;
    }
    const fds = this.#options.fds ?? systemFds;
    const channel = new MessageChannel(socket, this.#clock, {
      fds,
      limitBytes: MAX_VERSION_BYTES,
      maxFds: this.#settings.maxMsgFds,
      holdAboveBytes: HOLD_ABOVE_BYTES,
      closeAboveBytes: CLOSE_ABOVE_BYTES,
    });
    const session = new ServerSession({
      device: this.#options.device,
      port: channel,
      fds,
      settings: this.#settings,
      deadlineMoved: () => timer.update(),
      onEnd: (reason) => {
        timer.stop();
        this.#session = undefined;
        this.#options.onEnd?.(reason);
      },
    });
    const timer = new TimerDriver(this.#clock, session);
    this.#session = session;
    channel.start(session);
  }
}

type BoundedOption = keyof Omit<ServerOptions, 'unsealedMemory' | 'onRefused'>;

/** The least and the most of each, all integers. */
const BOUNDS: Readonly<Record<BoundedOption, readonly [least: number, most: number]>> = {
  accessTimeoutMs: [1, 3_600_000],
  dmaTimeoutMs: [1, 3_600_000],
  maxMsgFds: [1, MAX_FDS],
  maxDataXferBytes: [4096, 64 * 2 ** 20],
  maxDmaMaps: [1, 2 ** 24],
  maxMappedRegions: [0, 60_000],
  maxPendingAccesses: [1, 2 ** 20],
  maxDmaMessages: [1, 4096],
};

/** The options with their defaults. Throws `DxpuError` `invalid_argument`, naming the one that is wrong. */
export function checkServerOptions(options: ServerOptions): ServerSettings {
  const bounded: { -readonly [Name in BoundedOption]: number } = { ...DEFAULT_SERVER_OPTIONS };
  for (const name of Object.keys(BOUNDS) as BoundedOption[]) {
    const value = options[name] ?? bounded[name];
    const [least, most] = BOUNDS[name];
    if (!Number.isInteger(value) || value < least || value > most) {
      throw new DxpuError('invalid_argument', `${name} must be ${least} to ${most}: ${value}`);
    }
    bounded[name] = value;
  }
  const { unsealedMemory = DEFAULT_SERVER_OPTIONS.unsealedMemory, onRefused } = options;
  return { ...bounded, unsealedMemory, ...(onRefused === undefined ? {} : { onRefused }) };
}
