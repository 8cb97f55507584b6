/**
 * What an emulation runs on: a soft host and one reference accelerator behind a PCIe link, natively
 * (no proxies, no network) or pooled (both proxies and the link between them over a virtual network).
 *
 * Times. The PCIe link of the profile has, each way, a latency such that a DMA read of 64 bytes on idle
 * lines takes `nativeRttNs`, serialisation included: this stands for everything between the device's
 * link and the host's memory on a native host. Pooled, the network comes on top, so that the same read
 * takes `nativeRttNs + addedRttNs`; an added round trip less than what the frames of that read take
 * on a network of the profile's rate cannot be had, and the least there is is used instead.
 */
import { type Timed, TimerDriver } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import { type AcceleratorOptions, createAccelerator } from '#devices/accel';
import { MAX_CHANNELS } from '#devices/accel-registers';
import type { LinkTap } from '#fabric/link-options';
import type { VirtualPath } from '#fabric/virtual-network';
import { HotPlug } from '#host/hot-plug';
import { SoftHost, type SoftHostOptions } from '#host/root-complex';
import type { Outcome, Task, TaskScope } from '#host/task';
import type { Device } from '#pcie/device';
import { MAX_OUTSTANDING_READS } from '#pcie/endpoint-reads';
import type { LinkProfile } from '#pcie/link-profile';
import { PcieWire } from '#pcie/wire';
import { linkBytesPerNs, linkLatencyNs, smallReadFramesNs } from './device-link.ts';
import { NativeRoot } from './native-root.ts';
import { portFor, singleSlotPool } from './single-slot-pool.ts';
import { TlpProbe } from './tlp-probe.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const UUID = '00000000-0000-4000-8000-000000000001';

/** Options of the accelerator that an emulation may set. */
export type EmulatedDevice = Pick<
  AcceleratorOptions,
  'channels' | 'prefetchCommands' | 'fetchCommands' | 'fetchesInFlight' | 'sharedCopyEngines'
>;

/** What an emulated accelerator is where nothing else is said. */
export const USUAL_DEVICE = {
  channels: MAX_CHANNELS,
  prefetchCommands: 64,
  fetchesInFlight: 2,
  sharedCopyEngines: true,
} as const satisfies EmulatedDevice;

export interface SystemOptions {
  readonly profile: LinkProfile;
  readonly device?: EmulatedDevice;
  /** Device memory: a power of two from 1 MiB to 2 GiB. Default 64 MiB. */
  readonly deviceBytes?: number;
  /** Host memory for copies, beside what the rings need. Default 64 MiB. */
  readonly hostBytes?: number;
  readonly seed?: number;
  readonly watch?: SystemWatch;
  /**
   * Pooled, and while it runs, the host may lag this far behind the clock, if the network lets it. Changes
   * nothing but how fast the emulation is. By default as far as is worth it, and not at all while somebody
   * sees both what the device and what the host does.
   */
  readonly lagNs?: number;
}

/** Who looks at a system. Nothing of it changes by that. */
export interface SystemWatch {
  /** Told of each command of the device when it is done, and of each fetch when it has come. */
  readonly onCommand?: AcceleratorOptions['onCommand'];
  readonly onFetch?: AcceleratorOptions['onFetch'];
  /** Puts an observer between the device and its link: gives what the link shall talk to. */
  readonly device?: (device: Device) => Device;
  /** The tap of the host's end of the fabric link, from its start on; nothing natively. */
  readonly onTlp?: LinkTap;
}

/** In which some fifty TLPs of a steady copy pass. */
const LAG_NS = 1000;

/** A ring of 4096 entries; and what is left for longer ones and fences. */
const RING_BYTES = MIB / 4;
const SPARE_BYTES = MIB;

export interface EmulatedSystem {
  readonly clock: VirtualClock;
  readonly soft: SoftHost;
  readonly hotPlug: HotPlug;
  readonly probe: TlpProbe;
  readonly deviceMemory: Uint8Array;
  /** Of the network, if there is one. */
  readonly network: EmulatedNetwork | undefined;
  run<T>(task: Task<T>, done: (now: Nanos, outcome: Outcome<T>) => void, scope?: TaskScope): void;
  /** After something was done to the soft host from outside. */
  settle(): void;
  /**
   * Before anything is looked at, or done to the soft host: the device may be behind the clock (`PcieWire`),
   * and the host, if it lags.
   */
  catchUp(): void;
  /** From now on the host may lag behind the clock, or not. At first it does not. */
  letLag(isAllowed: boolean): void;
}

export interface EmulatedNetwork {
  readonly path: VirtualPath;
  /** Frames as they were sent, headers and retransmissions included: from the box, and from the host. */
  readonly frameBytesUp: number;
  readonly frameBytesDown: number;
  /** The box process dies: its sessions end. */
  killBox(): void;
}

/** `invalid_argument` when the device model cannot be what the profile says. */
export function nativeSystem(options: SystemOptions): EmulatedSystem {
  const { profile } = options;
  const parts = deviceOf(options);
  const clock = new VirtualClock();
  const soft = new SoftHost({ ...softOptions(options), ports: [portFor(parts.deviceBytes)] });
  const hotPlug = new HotPlug(soft);
  const root = new NativeRoot(soft, parts.wire, profile.mpsBytes);
  soft.attach(root);
  const driver = new TimerDriver(clock, together(soft, parts.wire));
  const settle = (): void => driver.update();
  root.start(clock.now());
  settle();
  return {
    clock,
    soft,
    hotPlug,
    probe: parts.probe,
    deviceMemory: parts.memory,
    network: undefined,
    settle,
    catchUp: () => parts.wire.catchUp(clock.now()),
    letLag: () => {},
    run: (task, done, scope) => {
      soft.tasks.run(clock.now(), task, done, scope);
      settle();
    },
  };
}

/** The same behind both proxies. */
export function pooledSystem(options: SystemOptions): EmulatedSystem {
  const { profile, seed = 1, watch = {} } = options;
  const parts = deviceOf(options);
  const rttNs = Math.max(0, profile.addedRttNs - smallReadFramesNs(profile));
  const isOrderSeen = watch.onTlp !== undefined || watch.device !== undefined;
  const { lagNs = isOrderSeen ? 0 : Math.min(LAG_NS, rttNs / 4) } = options;
  const { pool, host, path, link, boxId } = singleSlotPool({
    device: parts.wire,
    port: portFor(parts.deviceBytes),
    soft: softOptions(options),
    path: {
      rttNs,
      ...(profile.networkGbps === Infinity
        ? {}
        : { rateToListener: profile.networkGbps * 1e9, rateToDialer: profile.networkGbps * 1e9 }),
    },
    hostMayLag: lagNs > 0,
    seed,
  });
  // Nothing has passed yet: virtual time has not begun to run.
  link.tap = watch.onTlp;
  return {
    clock: pool.clock,
    soft: host.soft,
    hotPlug: host.hotPlug,
    probe: parts.probe,
    deviceMemory: parts.memory,
    network: {
      path,
      get frameBytesUp() {
        return link.counters.in.frameBytes;
      },
      get frameBytesDown() {
        return link.counters.out.frameBytes;
      },
      killBox: () => pool.killBox(boxId),
    },
    settle: () => host.settle(),
    catchUp: () => {
      host.clock.catchUp();
      parts.wire.catchUp(pool.clock.now());
    },
    letLag: (isAllowed) => {
      if (lagNs > 0) host.clock.lagNs = isAllowed ? lagNs : 0;
    },
    run: (task, done, scope) => host.run(task, done, scope),
  };
}

interface DeviceParts {
  readonly probe: TlpProbe;
  readonly wire: PcieWire;
  readonly memory: Uint8Array;
  readonly deviceBytes: number;
}

function deviceOf(options: SystemOptions): DeviceParts {
  const { profile, deviceBytes = 64 * MIB, watch = {} } = options;
  if (profile.tags > MAX_OUTSTANDING_READS) {
    throw new DxpuError(
      'invalid_argument',
      `link profile: tags is ${profile.tags}: an emulated device has at most ${MAX_OUTSTANDING_READS}; ` +
        '`dxpu predict` has no such limit',
      { details: { field: 'tags', value: profile.tags, most: MAX_OUTSTANDING_READS } },
    );
  }
  const accelerator = createAccelerator({
    ...USUAL_DEVICE,
    ...options.device,
    ...(watch.onCommand === undefined ? {} : { onCommand: watch.onCommand }),
    ...(watch.onFetch === undefined ? {} : { onFetch: watch.onFetch }),
    uuid: UUID,
    memoryBytes: deviceBytes,
    tags: profile.tags,
    maxPayloadBytes: profile.mpsBytes,
    maxReadRequestBytes: profile.mrrsBytes,
  });
  const probe = new TlpProbe(accelerator);
  const wire = new PcieWire({
    device: watch.device?.(probe) ?? probe,
    bytesPerNs: linkBytesPerNs(profile),
    latencyNs: linkLatencyNs(profile),
  });
  return { probe, wire, memory: accelerator.memory, deviceBytes };
}

function softOptions(options: SystemOptions): Omit<SoftHostOptions, 'ports'> {
  const { profile, hostBytes = 64 * MIB, device } = options;
  const ringBytes = (device?.channels ?? MAX_CHANNELS) * RING_BYTES + SPARE_BYTES;
  return {
    memory: [{ base: 4 * GIB, sizeBytes: ringBytes + hostBytes }],
    maxPayloadBytes: profile.mpsBytes,
    maxReadRequestBytes: profile.mrrsBytes,
  };
}

/** The host and the device's link as one machine: no event of either waits for the other's timer. */
function together(soft: SoftHost, wire: PcieWire): Timed {
  return {
    nextDeadlineNs: () => Math.min(soft.nextDeadlineNs(), wire.nextDeadlineNs()),
    tick: (now) => {
      if (soft.nextDeadlineNs() <= now) soft.tick(now);
      if (wire.nextDeadlineNs() <= now) wire.tick(now);
    },
  };
}
