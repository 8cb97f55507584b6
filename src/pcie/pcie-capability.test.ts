import { describe, expect, it } from 'vitest';
import { ENDPOINT_PCIE } from '#testkit/endpoint-pcie';
import { ConfigSpace } from './config-space.ts';
import {
  DEVCTL2_10_BIT_TAG_REQUESTER_ENABLE,
  DEVCTL_EXTENDED_TAG_ENABLE,
  DEVICE_CONTROL,
  DEVICE_CONTROL_2,
  DEVSTA_UNSUPPORTED_REQUEST_DETECTED,
  LINK_CONTROL,
  PcieCapability,
  type PcieCapabilityOptions,
  PortType,
} from './pcie-capability.ts';

const ALL_BYTES = 15;
const ENDPOINT: PcieCapabilityOptions = { ...ENDPOINT_PCIE, generation: 4 };

function capability(options: PcieCapabilityOptions): { config: ConfigSpace; cap: PcieCapability } {
  const config = new ConfigSpace({ vendorId: 1, deviceId: 1, revisionId: 0, classCode: 0 });
  return { config, cap: new PcieCapability(config, options) };
}

describe('PcieCapability', () => {
  it('starts with 128-byte payloads, 512-byte reads, RCB 64, 8-bit tags', () => {
    const { cap } = capability(ENDPOINT);
    expect([
      cap.maxPayloadBytes,
      cap.maxReadRequestBytes,
      cap.readCompletionBoundaryBytes,
      cap.tagBits,
      cap.relaxedOrderingEnabled,
      cap.noSnoopEnabled,
      cap.idoRequestEnabled,
      cap.idoCompletionEnabled,
    ]).toEqual([128, 512, 64, 8, true, true, false, false]);
  });

  it('follows every encoding of MPS and MRRS, MPS no further than it supports', () => {
    const { config, cap } = capability(ENDPOINT);
    const sizes = [0, 1, 2, 3, 4, 5].map((field) => {
      config.write(cap.offset + DEVICE_CONTROL, (field << 12) | (field << 5), ALL_BYTES);
      return [cap.maxReadRequestBytes, cap.maxPayloadBytes];
    });
    expect(sizes).toEqual([
      [128, 128],
      [256, 256],
      [512, 512],
      [1024, 512],
      [2048, 512],
      [4096, 512],
    ]);
  });

  it('has 5, 8 or 10 tag bits as software enables them', () => {
    const { config, cap } = capability(ENDPOINT);
    config.write(cap.offset + DEVICE_CONTROL, 0, ALL_BYTES);
    expect(cap.tagBits).toBe(5);
    config.write(cap.offset + DEVICE_CONTROL, DEVCTL_EXTENDED_TAG_ENABLE, ALL_BYTES);
    expect(cap.tagBits).toBe(8);
    config.write(cap.offset + DEVICE_CONTROL_2, DEVCTL2_10_BIT_TAG_REQUESTER_ENABLE, ALL_BYTES);
    expect(cap.tagBits).toBe(10);
  });

  it('cannot be given tags it does not support', () => {
    const { config, cap } = capability({
      ...ENDPOINT,
      extendedTag: false,
      tenBitTagRequester: false,
    });
    config.write(cap.offset + DEVICE_CONTROL, 0xffff, ALL_BYTES);
    config.write(cap.offset + DEVICE_CONTROL_2, 0xffff, ALL_BYTES);
    expect(cap.tagBits).toBe(5);
  });

  it('shows errors until software clears them, and transactions as long as they are pending', () => {
    const { config, cap } = capability(ENDPOINT);
    const status = (): number => config.read32(cap.offset + DEVICE_CONTROL) >>> 16;
    cap.setDeviceStatus(DEVSTA_UNSUPPORTED_REQUEST_DETECTED);
    cap.setTransactionsPending(true);
    expect(status()).toBe(0x28);
    config.write(cap.offset + DEVICE_CONTROL, 0xffff_0000, 0b1100);
    expect(status()).toBe(0x20);
    cap.setTransactionsPending(false);
    expect(status()).toBe(0);
  });

  it('a device may be told RCB 128, a port may not', () => {
    const endpoint = capability(ENDPOINT);
    endpoint.config.write(endpoint.cap.offset + LINK_CONTROL, 8, ALL_BYTES);
    expect(endpoint.cap.readCompletionBoundaryBytes).toBe(128);
    const port = capability({ ...ENDPOINT, portType: PortType.DOWNSTREAM });
    port.config.write(port.cap.offset + LINK_CONTROL, 8, ALL_BYTES);
    expect(port.cap.readCompletionBoundaryBytes).toBe(64);
  });
});
