/** Finds runs (pcie/tlp-run.ts) among the entries of a frame that has been checked. */
import { FlowClass } from '#pcie/tlp';
import { MAX_RUN_TLPS } from '#pcie/tlp-run';
import { ENTRY_HEADER_BYTES, EntryKind, entryLengthAt } from './frame.ts';

const POSTED_TLP = (EntryKind.TLP << 8) | FlowClass.POSTED;
const COMPLETION_TLP = (EntryKind.TLP << 8) | FlowClass.COMPLETION;
// DW 0 of a TLP (2.2.1): all of Fmt and Type but the bit for 64-bit addresses, TH, TD, EP; then Length.
const KIND_AND_FLAGS = 0xdf01c000 | 0;
const MEMORY_WRITE = 0x40000000;
const WITH_64_BITS = 0x20000000;
const LENGTH_DW = 0x3ff;
// DW 1 (2.2.7): both byte enables.
const BYTE_ENABLES = 0xff;
// Of a completion (2.2.9): DW 0 without the bit for 64-bit addresses left out.
const ALL_OF_KIND_AND_FLAGS = 0xff01c000 | 0;
const COMPLETION_WITH_DATA = 0x4a000000;
// DW 1: completion status and BCM; then Byte Count. DW 2: where in a double word the data begins.
const STATUS_AND_BCM = 0xf000;
const BYTE_COUNT = 0xfff;
const FIRST_BYTE = 3;
const HEADER_BYTES = 12;

/** How many of the `entries` entries from `at` of `view` on are a run; 1 for what begins none. */
export function runOfEntries(view: DataView, at: number, entries: number): number {
  if (entries < 2) return 1;
  const most = entries < MAX_RUN_TLPS ? entries : MAX_RUN_TLPS;
  switch (view.getInt32(at) >>> 16) {
    case POSTED_TLP:
      return runOfWrites(view, at, most);
    case COMPLETION_TLP:
      return runOfParts(view, at, most);
    default:
      return 1;
  }
}

/**
 * TLPs of one slot and generation, completions with data, of status SC, without digest or poison, of
 * a multiple of 128 bytes that begins with a double word, the same in DW 0 and DW 2 and in DW 1 but for
 * the byte count, which is what the one before has left, and more than the payload: of the last of a
 * request something comes.
 */
function runOfParts(view: DataView, at: number, most: number): number {
  const word = view.getInt32(at);
  const sizes = view.getInt32(at + 4);
  const generation = view.getInt32(at + 8);
  const tlp = at + ENTRY_HEADER_BYTES;
  const dw0 = view.getInt32(tlp);
  let dw1 = view.getInt32(tlp + 4);
  const dw2 = view.getInt32(tlp + 8);
  if ((dw0 & ALL_OF_KIND_AND_FLAGS) !== COMPLETION_WITH_DATA) return 1;
  if ((dw1 & STATUS_AND_BCM) !== 0 || (dw2 & FIRST_BYTE) !== 0) return 1;
  const payloadBytes = (dw0 & LENGTH_DW) << 2;
  const length = HEADER_BYTES + payloadBytes;
  if (payloadBytes === 0 || (payloadBytes & 127) !== 0 || length !== entryLengthAt(view, at))
    return 1;
  const stride = ENTRY_HEADER_BYTES + length;
  // 4096 is written as 0.
  let left = (dw1 & BYTE_COUNT) === 0 ? 4096 : dw1 & BYTE_COUNT;
  let count = 0;
  let next = at;
  while (left > payloadBytes) {
    count++;
    if (count === most) break;
    next += stride;
    left -= payloadBytes;
    dw1 = (dw1 & ~BYTE_COUNT) | left;
    const isNext =
      view.getInt32(next) === word &&
      view.getInt32(next + 4) === sizes &&
      view.getInt32(next + 8) === generation &&
      view.getInt32(next + ENTRY_HEADER_BYTES) === dw0 &&
      view.getInt32(next + ENTRY_HEADER_BYTES + 4) === dw1 &&
      view.getInt32(next + ENTRY_HEADER_BYTES + 8) === dw2;
    if (!isNext) break;
  }
  return count === 0 ? 1 : count;
}

/**
 * TLPs of one slot and generation, memory writes of whole double words, without hints, digest or poison,
 * the same in DW 0 and DW 1, each within its 4 KiB and at the address behind the one before.
 */
function runOfWrites(view: DataView, at: number, most: number): number {
  const word = view.getInt32(at);
  const sizes = view.getInt32(at + 4);
  const generation = view.getInt32(at + 8);
  const tlp = at + ENTRY_HEADER_BYTES;
  const dw0 = view.getInt32(tlp);
  const dw1 = view.getInt32(tlp + 4);
  if ((dw0 & KIND_AND_FLAGS) !== MEMORY_WRITE || (dw1 & BYTE_ENABLES) !== BYTE_ENABLES) return 1;
  const headerBytes = (dw0 & WITH_64_BITS) === 0 ? 12 : 16;
  const payloadBytes = (dw0 & LENGTH_DW) << 2;
  const length = entryLengthAt(view, at);
  // A length of 1024 double words is written as 0, and not taken for a run.
  if (payloadBytes < 8 || headerBytes + payloadBytes !== length) return 1;
  const lowAt = ENTRY_HEADER_BYTES + headerBytes - 4;
  const stride = ENTRY_HEADER_BYTES + length;
  const high = view.getInt32(tlp + 8);
  let low = view.getInt32(at + lowAt);
  let count = 0;
  let next = at;
  for (;;) {
    if ((low & 4095) + payloadBytes > 4096) break;
    count++;
    if (count === most) break;
    next += stride;
    low = (low + payloadBytes) | 0;
    const isNext =
      // Carries into the upper half of the address end it.
      low >>> 0 >= payloadBytes &&
      view.getInt32(next) === word &&
      view.getInt32(next + 4) === sizes &&
      view.getInt32(next + 8) === generation &&
      view.getInt32(next + ENTRY_HEADER_BYTES) === dw0 &&
      view.getInt32(next + ENTRY_HEADER_BYTES + 4) === dw1 &&
      (headerBytes === 12 || view.getInt32(next + ENTRY_HEADER_BYTES + 8) === high) &&
      view.getInt32(next + lowAt) === low;
    if (!isNext) break;
  }
  return count === 0 ? 1 : count;
}
