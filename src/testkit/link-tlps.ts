/** Small TLPs that carry a serial number, for tests that follow each through a link. */
import { CompletionStatus, FlowClass, resetTlp, setTlpAddress, Tlp, TlpKind } from '#pcie/tlp';
import { decodeTlp, TlpDecode } from '#pcie/tlp-codec';

const PAYLOAD = new Uint8Array(4096);
const VIEW = new DataView(PAYLOAD.buffer);

/** Posted: MWr; non-posted: MRd, or CAS32 if it has payload; completion: CplD, or Cpl without payload. */
export function serialTlp(
  flow: FlowClass,
  serial: number,
  payloadBytes: number,
  attributes: number,
  sourceId: number,
): Tlp {
  const tlp = new Tlp();
  resetTlp(tlp);
  tlp.attributes = attributes;
  VIEW.setUint32(0, serial);
  if (payloadBytes > 0) {
    tlp.payload = PAYLOAD;
    tlp.payloadBytes = payloadBytes;
    tlp.lengthDw = payloadBytes / 4;
  }
  if (flow === FlowClass.COMPLETION) {
    tlp.kind = payloadBytes > 0 ? TlpKind.CplD : TlpKind.Cpl;
    tlp.completerId = sourceId;
    tlp.status = payloadBytes > 0 ? CompletionStatus.SC : CompletionStatus.UR;
    tlp.byteCount = payloadBytes > 0 ? payloadBytes : 4;
    tlp.tag = serial & 0x3ff;
    tlp.requesterId = (serial >>> 10) & 0xffff;
    return tlp;
  }
  tlp.requesterId = sourceId;
  tlp.firstBe = 0xf;
  if (flow === FlowClass.POSTED) {
    setTlpAddress(tlp, 0x10000, TlpKind.MWr32, TlpKind.MWr64);
    tlp.lastBe = payloadBytes > 4 ? 0xf : 0;
    return tlp;
  }
  if (payloadBytes === 0) {
    // The serial number is the address.
    setTlpAddress(tlp, serial * 4, TlpKind.MRd32, TlpKind.MRd64);
    tlp.lengthDw = 1;
    return tlp;
  }
  setTlpAddress(tlp, 0x10000, TlpKind.CAS32, TlpKind.CAS64);
  tlp.payloadBytes = 8;
  tlp.lengthDw = 2;
  tlp.firstBe = 0;
  return tlp;
}

/** The serial number in the bytes of such a TLP, or −1 if they are no valid TLP. */
export function serialOf(bytes: Uint8Array): number {
  const tlp = new Tlp();
  if (decodeTlp(bytes, 0, bytes.length, tlp) !== TlpDecode.OK) return -1;
  switch (tlp.kind) {
    case TlpKind.MRd32:
    case TlpKind.MRd64:
      return (tlp.addressHi * 0x1_0000_0000 + tlp.addressLo) / 4;
    case TlpKind.Cpl:
      return (tlp.requesterId << 10) | tlp.tag;
    default:
      return new DataView(bytes.buffer, bytes.byteOffset).getUint32(tlp.payloadOffset);
  }
}
