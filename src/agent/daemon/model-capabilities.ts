import type { DeviceModel } from '#devices/device-model';

const CAPABILITIES_POINTER = 0x34;
/** As many as fit the 192 bytes behind the header, 4 bytes each. */
const MAX_CAPABILITIES = 48;

/** The offset of a capability of a model, 0 when it has none of this ID. */
export function findCapability(model: Pick<DeviceModel, 'readConfig'>, id: number): number {
  let offset = model.readConfig(CAPABILITIES_POINTER) & 0xfc;
  for (let seen = 0; offset !== 0 && seen < MAX_CAPABILITIES; seen++) {
    const header = model.readConfig(offset);
    if ((header & 0xff) === id) return offset;
    offset = (header >>> 8) & 0xfc;
  }
  return 0;
}
