/**
 * How long transfers are cut into TLPs: by MRRS (reads), MPS (writes and completions), RCB
 * (completions) and the 4 KiB rule (2.2.7, 2.3.1.1). Every function says how many bytes the next TLP
 * takes; call again with the address advanced until nothing remains. Nothing is allocated.
 *
 * Limits are in bytes and powers of two: MRRS and MPS 128 to 4096, RCB 64 or 128.
 */
import { setTlpAddress, TlpKind, type Tlp } from './tlp.ts';

const PAGE_BYTES = 4096;

function requestChunk(address: number, remaining: number, limit: number): number {
  // The limit counts whole double words, so a start inside one gives its first bytes away.
  const inLimit = limit - (address & 3);
  const inPage = PAGE_BYTES - (address & (PAGE_BYTES - 1));
  const chunk = inLimit < inPage ? inLimit : inPage;
  return remaining < chunk ? remaining : chunk;
}

/** Bytes of the next memory read request: at most MRRS in whole DW, never crossing 4 KiB. */
export function readChunk(address: number, remaining: number, mrrs: number): number {
  return requestChunk(address, remaining, mrrs);
}

/** Bytes of the next memory write request: at most MPS in whole DW, never crossing 4 KiB. */
export function writeChunk(address: number, remaining: number, mps: number): number {
  return requestChunk(address, remaining, mps);
}

/**
 * Bytes of the next completion of a memory read that has `remaining` bytes left from `address`: all
 * of them if MPS allows, otherwise as many as end at a multiple of RCB. A completer that always asks
 * here never splits a request that lies within one RCB block.
 */
export function completionChunk(
  address: number,
  remaining: number,
  mps: number,
  rcb: number,
): number {
  const limit = mps - (address & 3);
  if (remaining <= limit) return remaining;
  return limit - ((address + limit) & (rcb - 1));
}

/**
 * Makes `tlp` a memory read of `bytes` bytes from `address`, byte-accurate by its byte enables; 0 bytes
 * is a zero-length read of the double word there. Attributes, TC and flags are cleared. The range must
 * fit one request (`readChunk`).
 */
export function setMemoryRead(
  tlp: Tlp,
  address: number,
  bytes: number,
  requesterId: number,
  tag: number,
): void {
  setTlpAddress(tlp, address, TlpKind.MRd32, TlpKind.MRd64);
  setMemoryRange(tlp, address, bytes);
  tlp.requesterId = requesterId;
  tlp.tag = tag;
  tlp.payloadBytes = 0;
}

/**
 * Makes `tlp` a memory write of `bytes` bytes to `address`, with tag 0; 0 bytes is a zero-length
 * write. `payloadBytes` is set, `payload` and `payloadOffset` are the caller's: whole double words,
 * the first byte at `address % 4` of them. The range must fit one request (`writeChunk`).
 */
export function setMemoryWrite(
  tlp: Tlp,
  address: number,
  bytes: number,
  requesterId: number,
): void {
  setTlpAddress(tlp, address, TlpKind.MWr32, TlpKind.MWr64);
  setMemoryRange(tlp, address, bytes);
  tlp.requesterId = requesterId;
  tlp.tag = 0;
  tlp.payloadBytes = tlp.lengthDw * 4;
}

/** Length and byte enables of a contiguous range; everything a request may carry besides is cleared. */
function setMemoryRange(tlp: Tlp, address: number, bytes: number): void {
  tlp.trafficClass = 0;
  tlp.attributes = 0;
  tlp.addressType = 0;
  tlp.hints = false;
  tlp.processingHint = 0;
  tlp.poisoned = false;
  tlp.digest = false;
  tlp.lastBe = 0;
  if (bytes === 0) {
    tlp.lengthDw = 1;
    tlp.firstBe = 0;
    return;
  }
  const start = address & 3;
  const end = start + bytes;
  const lengthDw = (end + 3) >>> 2;
  const first = (0xf << start) & 0xf;
  const last = 0xf >> (3 - ((end - 1) & 3));
  tlp.lengthDw = lengthDw;
  if (lengthDw === 1) {
    tlp.firstBe = first & last;
  } else {
    tlp.firstBe = first;
    tlp.lastBe = last;
  }
}
