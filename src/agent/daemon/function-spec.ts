/** What a function is to a vfio-user client. */
import { REGION_CONFIG } from '#vfio-user/region-info';
import type { DeviceSpec, RegionSpec } from '#vfio-user/served-device';

export interface FunctionFacts {
  readonly bars: readonly { readonly index: number; readonly sizeBytes: number }[];
  /** Size of its configuration space, and the first 256 bytes of it. */
  readonly configBytes: number;
  readonly config: Uint8Array;
  readonly hasPin: boolean;
  readonly msiVectors: number;
}

export function functionSpec(facts: FunctionFacts): DeviceSpec {
  const { bars, configBytes, config, hasPin, msiVectors } = facts;
  const region = (sizeBytes: number): RegionSpec => ({ sizeBytes, read: true, write: true });
  return {
    regions: new Map([
      ...bars.map(({ index, sizeBytes }) => [index, region(sizeBytes)] as const),
      [REGION_CONFIG, region(configBytes)],
    ]),
    irqs: { intx: hasPin ? 1 : 0, msi: msiVectors, msix: 0, err: 0, req: 0 },
    resettable: true,
    config,
  };
}
