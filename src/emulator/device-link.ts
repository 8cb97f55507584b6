/**
 * Times on the emulated device's PCIe link, by arithmetic. The device sends 64-bit addresses and no ECRC,
 * whatever a profile says.
 */
import { ENTRY_HEADER_BYTES, SESSION_HEADER_BYTES } from '#fabric/frame';
import {
  completionOverheadBytes,
  DEFAULT_PCIE_LINK,
  readRequestWireBytes,
  tlpLayerGbps,
  writeOverheadBytes,
} from '#pcie/bandwidth';
import type { LinkProfile } from '#pcie/link-profile';

/** Of a read, and of a completion and a write beside their payloads: framing and headers. */
export const READ_WIRE_BYTES = readRequestWireBytes(DEFAULT_PCIE_LINK);
export const COMPLETION_WIRE_BYTES = completionOverheadBytes(DEFAULT_PCIE_LINK);
export const WRITE_WIRE_BYTES = writeOverheadBytes(DEFAULT_PCIE_LINK);

/** What a round trip is said of. */
const SMALL_READ_BYTES = 64;
/** Frame and entry headers of a read of that size and of its completion, and the TLPs themselves. */
const SMALL_READ_FRAMES_BYTES =
  2 * (SESSION_HEADER_BYTES + ENTRY_HEADER_BYTES) + 16 + 12 + SMALL_READ_BYTES;

/** What each direction carries. */
export function linkBytesPerNs(profile: LinkProfile): number {
  return tlpLayerGbps(profile) / 8;
}

/** One way of the device's link and what is behind it, ns, beside the time of the TLP itself. */
export function linkLatencyNs(profile: LinkProfile): number {
  return Math.max(
    0,
    (profile.nativeRttNs - readBytes(profile, SMALL_READ_BYTES) / linkBytesPerNs(profile)) / 2,
  );
}

/** What a DMA read of one request takes natively on idle lines, ns. */
export function nativeReadNs(profile: LinkProfile, bytes: number): number {
  return 2 * linkLatencyNs(profile) + readBytes(profile, bytes) / linkBytesPerNs(profile);
}

/** What the frames of a small read and its answer take to go out on the network, ns. */
export function smallReadFramesNs(profile: LinkProfile): number {
  return (SMALL_READ_FRAMES_BYTES * 8) / profile.networkGbps;
}

/** On the wire, both ways. */
function readBytes(profile: LinkProfile, bytes: number): number {
  return READ_WIRE_BYTES + Math.ceil(bytes / profile.mpsBytes) * COMPLETION_WIRE_BYTES + bytes;
}
