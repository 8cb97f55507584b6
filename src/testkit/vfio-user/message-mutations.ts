/** Recorded messages made hostile: contents, lengths, counts and order. All of it from a seed. */
import type { Prng } from '#base/prng';
import { FLAG_ERROR, FLAG_NO_REPLY, HEADER_BYTES, viewOf } from '#vfio-user/message';
import type { RecordedMessage } from './corpus.ts';

/** Mutated lengths stay below this, so that most of the time goes into messages. */
const LONGEST_BYTES = 16_384;
/** What lengths, counts, offsets and indices are wrong at. */
const EDGES = [
  0, 1, 2, 3, 7, 8, 0xff, 0x1000, 0xffff, 0x10_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe,
  0xffff_ffff,
];

/** Changes one to three things of a copy. The length in the header mostly fits afterwards. */
export function mutated(prng: Prng, message: Uint8Array): Uint8Array {
  let bytes = Uint8Array.from(message);
  for (let changes = 1 + prng.below(3); changes > 0; changes--) bytes = changed(prng, bytes);
  if (prng.below(60) !== 0) viewOf(bytes).setUint32(4, bytes.length, true);
  return bytes;
}

function changed(prng: Prng, bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const view = viewOf(bytes);
  const at = prng.below(bytes.length);
  // Fields are of 32 or 64 bits, behind a header of 16 bytes.
  const fields = Math.floor((bytes.length - HEADER_BYTES) / 4);
  const field = HEADER_BYTES + 4 * prng.below(Math.max(1, Math.min(fields, 12)));
  switch (prng.below(8)) {
    case 0:
      bytes[at] = (bytes[at] ?? 0) ^ (1 << prng.below(8));
      break;
    case 1:
      bytes.fill(prng.pick([0, 0xff]), at, at + prng.pick([1, 2, 4, 8]));
      break;
    case 2:
      if (field + 4 <= bytes.length) view.setUint32(field, prng.pick(EDGES), true);
      break;
    case 3:
      if (field + 4 <= bytes.length) {
        view.setUint32(field, view.getUint32(field, true) + prng.pick([-4096, -1, 1, 4096]), true);
      }
      break;
    case 4: {
      // Another type ends the session: seldom.
      const flag = prng.below(6) === 0 ? prng.pick([1, 2]) : prng.pick([FLAG_NO_REPLY, FLAG_ERROR]);
      view.setUint32(8, view.getUint32(8, true) ^ flag, true);
      break;
    }
    case 5:
      view.setUint16(2, prng.below(20), true);
      break;
    case 6:
      return bytes.slice(0, Math.max(HEADER_BYTES, at));
    default: {
      const longer = new Uint8Array(Math.min(LONGEST_BYTES, bytes.length + prng.below(64)));
      longer.set(bytes.subarray(0, longer.length));
      return longer;
    }
  }
  return bytes;
}

/**
 * The messages in another order: here and there one is left out, comes twice, or before the one ahead of it, or
 * one of `others` comes in between. The first, which is VERSION, mostly stays the first.
 */
export function disordered(
  prng: Prng,
  messages: readonly RecordedMessage[],
  others: readonly RecordedMessage[],
): RecordedMessage[] {
  const result = messages.filter(() => prng.below(30) !== 0);
  const keeps = prng.below(10) === 0 ? 0 : 1;
  for (let at = keeps; at < result.length; at++) {
    const one = result[at] as RecordedMessage;
    const last = result[at - 1];
    if (prng.below(20) === 0 && last !== undefined && at > keeps) {
      result[at] = last;
      result[at - 1] = one;
    }
    if (prng.below(20) === 0) result.splice(at++, 0, one);
    if (prng.below(15) === 0) result.splice(at++, 0, prng.pick(others));
  }
  return result;
}
