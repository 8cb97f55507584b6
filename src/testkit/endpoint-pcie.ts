/** The PCI Express capability of an endpoint with all that it can have, on a link of 16 lanes at 8 GT/s. */
import { type PcieCapabilityOptions, PortType } from '#pcie/pcie-capability';

export const ENDPOINT_PCIE: PcieCapabilityOptions = {
  portType: PortType.ENDPOINT,
  maxPayloadBytes: 512,
  extendedTag: true,
  tenBitTagCompleter: true,
  tenBitTagRequester: true,
  generation: 3,
  lanes: 16,
};
