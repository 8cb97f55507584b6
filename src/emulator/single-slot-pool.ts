/** A pool of one host and one box: the device in the box's slot 0 is bound to the host's slot 0. */
import type { HostLink } from '#fabric/host-link';
import type { VirtualPath, VirtualPathOptions } from '#fabric/virtual-network';
import type { SoftHostOptions } from '#host/root-complex';
import type { VirtualPortOptions } from '#host/virtual-port';
import type { Device } from '#pcie/device';
import type { VirtualHost } from './virtual-host.ts';
import { VirtualPool } from './virtual-pool.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;

export interface SingleSlotOptions {
  readonly device: Device;
  readonly port: VirtualPortOptions;
  readonly soft?: Omit<SoftHostOptions, 'ports'>;
  readonly path: VirtualPathOptions;
  /** The host may lag behind the pool's clock, once `lagNs` of its own is set. */
  readonly hostMayLag?: boolean;
  readonly seed?: number;
}

export interface SingleSlotPool {
  readonly pool: VirtualPool;
  readonly host: VirtualHost;
  readonly link: HostLink;
  readonly path: VirtualPath;
  readonly boxId: string;
}

/** A virtual port for a device with registers below 4 GiB and memory of `memoryBytes` above. */
export function portFor(memoryBytes: number): VirtualPortOptions {
  return {
    secondaryBus: 1,
    nonPrefetchableBase: 0xe000_0000,
    nonPrefetchableBytes: 16 * MIB,
    prefetchableBase: 64 * GIB,
    prefetchableBytes: memoryBytes,
  };
}

/** Tables are set and the link is started: the function appears as virtual time passes. */
export function singleSlotPool(options: SingleSlotOptions): SingleSlotPool {
  const { device, port, soft = {}, hostMayLag = false, seed = 1 } = options;
  const { maxPayloadBytes } = soft;
  const pool = new VirtualPool(seed);
  const box = pool.startBox({ id: 'b', devices: new Map([[0, device]]) });
  const host = pool.startHost(
    {
      id: 'h',
      soft: { ...soft, ports: [port] },
      ...(maxPayloadBytes === undefined ? {} : { proxy: { maxPayloadBytes } }),
    },
    hostMayLag,
  );
  const row = { used: true, path: 'p', generation: 1, slot: 0 };
  box.setTable([{ ...row, valid: true, host: host.id }]);
  host.setTable([
    {
      ...row,
      virtualSlot: 0,
      secondaryBus: port.secondaryBus,
      nonPrefetchable: rangeOf(port.nonPrefetchableBase, port.nonPrefetchableBytes),
      prefetchable: rangeOf(port.prefetchableBase, port.prefetchableBytes),
      box: box.id,
    },
  ]);
  const path = pool.addPath(options.path, host);
  const link = pool.link(host.id, box.id, [path]);
  return { pool, host, link, path, boxId: box.id };
}

function rangeOf(base: number, bytes: number): { base: number; limit: number } {
  return { base, limit: base + bytes - 1 };
}
