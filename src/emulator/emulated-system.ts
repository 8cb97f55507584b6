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
import type { VirtualPath } from '#fabric/virtual-network';
import { HotPlug } from '#host/hot-plug';
import { SoftHost, type SoftHostOptions } from '#host/root-complex';
import type { Outcome, Task, TaskScope } from '#host/task';
import { tlpLayerGbps } from '#pcie/bandwidth';
import type { LinkProfile } from '#pcie/link-profile';
import { PcieWire } from '#pcie/wire';
import { NativeRoot } from './native-root.ts';
import { TlpProbe } from './tlp-probe.ts';
import { VirtualPool } from './virtual-pool.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const UUID = '00000000-0000-4000-8000-000000000001';

/** Of PCIe 5.0 2.2.1 and 2.2.9 with 64-bit addresses and framing: a read, and a completion without data. */
const READ_WIRE_BYTES = 24;
const COMPLETION_WIRE_BYTES = 20;
const SMALL_READ_BYTES = 64;
/** Of frame.ts: frame and entry headers; and the TLPs' own headers. */
const SMALL_READ_FRAME_BYTES = 40 + 12 + 16;
const SMALL_READ_ANSWER_BYTES = 40 + 12 + 12 + SMALL_READ_BYTES;

/** Options of the accelerator that an emulation may set. */
export type EmulatedDevice = Pick<
  AcceleratorOptions,
  'channels' | 'prefetchCommands' | 'fetchCommands' | 'fetchesInFlight' | 'sharedCopyEngines'
>;

export interface SystemOptions {
  readonly profile: LinkProfile;
  readonly device?: EmulatedDevice;
  /** Device memory: a power of two from 1 MiB to 2 GiB. Default 64 MiB. */
  readonly deviceBytes?: number;
  /** Host memory for copies, beside what the rings need. Default 64 MiB. */
  readonly hostBytes?: number;
  readonly seed?: number;
  /** Told of each command of the device when it is done. */
  readonly onCommand?: AcceleratorOptions['onCommand'];
}

/** A ring of 4096 entries; and what is left for longer ones and fences. */
const RING_BYTES = MIB / 4;
const SPARE_BYTES = MIB;

export interface EmulatedSystem {
  readonly clock: VirtualClock;
  readonly soft: SoftHost;
  readonly hotPlug: HotPlug;
  readonly probe: TlpProbe;
  readonly deviceMemory: Uint8Array;
  /** Bytes a ns that each direction of the device's link carries. */
  readonly linkBytesPerNs: number;
  /** Of the network, if there is one. */
  readonly network: EmulatedNetwork | undefined;
  run<T>(task: Task<T>, done: (now: Nanos, outcome: Outcome<T>) => void, scope?: TaskScope): void;
  /** After something was done to the soft host from outside. */
  settle(): void;
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
  const soft = new SoftHost(softOptions(options, parts.deviceBytes));
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
    linkBytesPerNs: parts.bytesPerNs,
    network: undefined,
    settle,
    run: (task, done, scope) => {
      soft.tasks.run(clock.now(), task, done, scope);
      settle();
    },
  };
}

/** The same behind both proxies. */
export function pooledSystem(options: SystemOptions): EmulatedSystem {
  const { profile, seed = 1 } = options;
  const parts = deviceOf(options);
  const pool = new VirtualPool(seed);
  pool.startBox({ id: 'b', devices: new Map([[0, parts.wire]]) });
  const host = pool.startHost({
    id: 'h',
    soft: softOptions(options, parts.deviceBytes),
    proxy: { maxPayloadBytes: profile.mpsBytes },
  });
  const row = { used: true, path: 'p', generation: 1, slot: 0 };
  pool.box('b').setTable([{ ...row, valid: true, host: 'h' }]);
  const [port] = portsOf(parts.deviceBytes);
  host.setTable([
    {
      ...row,
      virtualSlot: 0,
      secondaryBus: port.secondaryBus,
      nonPrefetchable: rangeOf(port.nonPrefetchableBase, port.nonPrefetchableBytes),
      prefetchable: rangeOf(port.prefetchableBase, port.prefetchableBytes),
      box: 'b',
    },
  ]);
  const path = pool.addPath({
    rttNs: Math.max(0, profile.addedRttNs - smallReadFramesNs(profile)),
    ...(profile.networkGbps === Infinity
      ? {}
      : { rateToListener: profile.networkGbps * 1e9, rateToDialer: profile.networkGbps * 1e9 }),
  });
  const link = pool.link('h', 'b', [path]);
  return {
    clock: pool.clock,
    soft: host.soft,
    hotPlug: host.hotPlug,
    probe: parts.probe,
    deviceMemory: parts.memory,
    linkBytesPerNs: parts.bytesPerNs,
    network: {
      path,
      get frameBytesUp() {
        return link.counters.in.frameBytes;
      },
      get frameBytesDown() {
        return link.counters.out.frameBytes;
      },
      killBox: () => pool.killBox('b'),
    },
    settle: () => host.settle(),
    run: (task, done, scope) => host.run(task, done, scope),
  };
}

/** What the frames of a read of 64 bytes and its answer take to go out, ns. */
export function smallReadFramesNs(profile: LinkProfile): number {
  return ((SMALL_READ_FRAME_BYTES + SMALL_READ_ANSWER_BYTES) * 8) / profile.networkGbps;
}

/** One way of the device's link and what is behind it, ns, beside the time of the TLP itself. */
export function linkLatencyNs(profile: LinkProfile): number {
  const bytes = READ_WIRE_BYTES + COMPLETION_WIRE_BYTES + SMALL_READ_BYTES;
  return Math.max(0, (profile.nativeRttNs - bytes / linkBytesPerNs(profile)) / 2);
}

export function linkBytesPerNs(profile: LinkProfile): number {
  return tlpLayerGbps(profile) / 8;
}

interface DeviceParts {
  readonly probe: TlpProbe;
  readonly wire: PcieWire;
  readonly memory: Uint8Array;
  readonly bytesPerNs: number;
  readonly deviceBytes: number;
}

const MOST_TAGS = 768;
const MOST_CHANNELS = 16;

function deviceOf(options: SystemOptions): DeviceParts {
  const { profile, deviceBytes = 64 * MIB } = options;
  if (profile.tags > MOST_TAGS) {
    throw new DxpuError(
      'invalid_argument',
      `link profile: tags is ${profile.tags}: an emulated device has at most ${MOST_TAGS}; ` +
        '`dxpu predict` has no such limit',
      { details: { field: 'tags', value: profile.tags, most: MOST_TAGS } },
    );
  }
  const accelerator = createAccelerator({
    channels: MOST_CHANNELS,
    prefetchCommands: 64,
    fetchesInFlight: 2,
    sharedCopyEngines: true,
    ...options.device,
    ...(options.onCommand === undefined ? {} : { onCommand: options.onCommand }),
    uuid: UUID,
    memoryBytes: deviceBytes,
    tags: profile.tags,
    maxPayloadBytes: profile.mpsBytes,
    maxReadRequestBytes: profile.mrrsBytes,
  });
  const probe = new TlpProbe(accelerator);
  const bytesPerNs = linkBytesPerNs(profile);
  const wire = new PcieWire({ device: probe, bytesPerNs, latencyNs: linkLatencyNs(profile) });
  return { probe, wire, memory: accelerator.memory, bytesPerNs, deviceBytes };
}

function portsOf(deviceBytes: number): readonly [SoftHostOptions['ports'][number]] {
  return [
    {
      secondaryBus: 1,
      nonPrefetchableBase: 0xe000_0000,
      nonPrefetchableBytes: 16 * MIB,
      prefetchableBase: 64 * GIB,
      prefetchableBytes: deviceBytes,
    },
  ];
}

function softOptions(options: SystemOptions, deviceBytes: number): SoftHostOptions {
  const { profile, hostBytes = 64 * MIB, device } = options;
  const ringBytes = (device?.channels ?? MOST_CHANNELS) * RING_BYTES + SPARE_BYTES;
  return {
    ports: portsOf(deviceBytes),
    memory: [{ base: 4 * GIB, sizeBytes: ringBytes + hostBytes }],
    maxPayloadBytes: profile.mpsBytes,
    maxReadRequestBytes: profile.mrrsBytes,
  };
}

function rangeOf(base: number, bytes: number): { base: number; limit: number } {
  return { base, limit: base + bytes - 1 };
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
