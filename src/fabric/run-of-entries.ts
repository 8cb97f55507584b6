/** Finds runs of memory writes (pcie/write-run.ts) among the entries of a frame that has been checked. */
import { FlowClass } from '#pcie/tlp';
import { MAX_RUN_TLPS } from '#pcie/write-run';
import { ENTRY_HEADER_BYTES, EntryKind, entryLengthAt } from './frame.ts';

const POSTED_TLP = (EntryKind.TLP << 8) | FlowClass.POSTED;
// DW 0 of a TLP (2.2.1): all of Fmt and Type but the bit for 64-bit addresses, TH, TD, EP; then Length.
const KIND_AND_FLAGS = 0xdf01c000 | 0;
const MEMORY_WRITE = 0x40000000;
const WITH_64_BITS = 0x20000000;
const LENGTH_DW = 0x3ff;
// DW 1 (2.2.7): both byte enables.
const BYTE_ENABLES = 0xff;

/**
 * How many of the `entries` entries from `at` of `view` on are a run: TLPs of one slot and generation,
 * memory writes of whole double words, without hints, digest or poison, the same in DW 0 and DW 1,
 * each within its 4 KiB and at the address behind the one before. 1 for what is no such write.
 */
export function runOfEntries(view: DataView, at: number, entries: number): number {
  const word = view.getInt32(at);
  if (entries < 2 || word >>> 16 !== POSTED_TLP) return 1;
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
  const most = entries < MAX_RUN_TLPS ? entries : MAX_RUN_TLPS;
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
