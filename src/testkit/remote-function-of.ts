/** What a box makes of a function whose configuration space is as `build` leaves it; a refusal is thrown. */
import { remoteFunction, type RemoteFunction } from '#agent/daemon/remote-function';
import { CONFIG_SPACE_BYTES, ConfigSpace } from '#pcie/config-space';
import type { DeviceDescription } from '#vfio-user/client-options';

const IDENTITY = { vendorId: 0x1234, deviceId: 0x5678, revisionId: 1, classCode: 0x12_0000 };

export function remoteFunctionOf(
  build: (config: ConfigSpace) => void,
  description: Partial<DeviceDescription> = {},
): RemoteFunction {
  const config = new ConfigSpace(IDENTITY);
  build(config);
  const bytes = new Uint8Array(CONFIG_SPACE_BYTES);
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < bytes.length; at += 4) view.setUint32(at, config.read32(at), true);
  const fn = remoteFunction(
    { resettable: true, regions: [], irqs: [0, 0, 0, 0, 0], writeMultiple: false, ...description },
    bytes,
  );
  if (typeof fn === 'string') throw new Error(fn);
  return fn;
}
