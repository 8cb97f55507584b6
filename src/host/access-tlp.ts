/** The TLPs an access becomes. */
import { copyBytes } from '#base/copy-bytes';
import { setMemoryWrite, writeChunk } from '#pcie/split';
import { resetTlp, type Tlp, TlpKind } from '#pcie/tlp';
import { type Access, AccessKind } from './cpu-access.ts';

/** The root complex itself, which makes the requests. */
export const ROOT_COMPLEX_ID = 0;

/** Room for the largest payload that is not whole double words of the caller's buffer. */
export const STAGING_BYTES = 4096 + 8;

/** Bytes of the access that its next write request carries. */
export function nextWriteBytes(access: Access, maxPayloadBytes: number): number {
  return writeChunk(access.address + access.issued, access.bytes - access.issued, maxPayloadBytes);
}

/** The same in whole double words. */
export function paddedBytes(access: Access, bytes: number): number {
  return (((access.address + access.issued) & 3) + bytes + 3) & ~3;
}

/** Makes `tlp` the next write request of an access, with `bytes` from `nextWriteBytes`. */
export function setWriteRequest(
  tlp: Tlp,
  access: Access,
  bytes: number,
  staging: Uint8Array,
): void {
  const address = access.address + access.issued;
  const payloadBytes = paddedBytes(access, bytes);
  setMemoryWrite(tlp, address, bytes, ROOT_COMPLEX_ID);
  if (bytes === payloadBytes) {
    tlp.payload = access.buffer;
    tlp.payloadOffset = access.issued;
    return;
  }
  // Disabled bytes carry zeros, not what an earlier write left here.
  staging.fill(0, 0, 4);
  staging.fill(0, payloadBytes - 4, payloadBytes);
  copyBytes(staging, address & 3, access.buffer, access.issued, bytes);
  tlp.payload = staging;
  tlp.payloadOffset = 0;
}

/** Makes `tlp` the type 1 config request of an access. */
export function setConfigRequest(tlp: Tlp, access: Access, tag: number): void {
  resetTlp(tlp);
  tlp.lengthDw = 1;
  tlp.firstBe = access.byteEnables;
  tlp.requesterId = ROOT_COMPLEX_ID;
  tlp.tag = tag;
  tlp.completerId = access.bdf;
  tlp.register = access.register;
  tlp.kind = TlpKind.CfgRd1;
  if (access.kind === AccessKind.CONFIG_READ) return;
  tlp.kind = TlpKind.CfgWr1;
  tlp.payload = access.scratch;
  tlp.payloadOffset = 0;
  tlp.payloadBytes = 4;
}
