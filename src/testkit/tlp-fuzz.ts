/**
 * Mutated TLPs against the decoder. Any exception is a finding; so is a result that depends on bytes
 * outside the packet, a payload window that leaves it, and an accepted TLP that does not encode to
 * itself again.
 */
import { Prng } from '#base/prng';
import { resetTlp, Tlp, TLP_KIND_NAMES } from '#pcie/tlp';
import {
  decodeTlp,
  encodedTlpBytes,
  encodeTlp,
  MAX_TLP_BYTES,
  TLP_DECODE_NAMES,
  TlpDecode,
} from '#pcie/tlp-codec';
import { fc } from './properties.ts';
import { tlpArbitrary } from './tlp-arbitrary.ts';

export interface TlpFuzzResult {
  readonly tlps: number;
  readonly accepted: number;
  /** How often each `TlpDecode` came out, by its name. */
  readonly outcomes: Readonly<Record<string, number>>;
}

const TEMPLATES = 400;
const MARGIN_BYTES = 64;

const FIELD_NAMES = Object.keys(new Tlp()).filter(
  (name) => name !== 'payload' && name !== 'payloadOffset',
) as (keyof Tlp)[];

function differentField(a: Tlp, b: Tlp): string {
  for (const name of FIELD_NAMES) if (a[name] !== b[name]) return name;
  return '';
}

/** Changes some of the `length` bytes at the start of `bytes`; returns the new length. */
function mutate(prng: Prng, bytes: Uint8Array, length: number): number {
  let size = length;
  const edits = prng.between(1, 4);
  for (let edit = 0; edit < edits; edit++) {
    const header = Math.min(size, 16);
    switch (prng.below(8)) {
      case 0:
      case 1: // one bit of the header
        if (header > 0) flip(prng, bytes, prng.below(header));
        break;
      case 2: // one byte of the header
        if (header > 0) bytes[prng.below(header)] = prng.uint32();
        break;
      case 3: // another kind
        bytes[0] = prng.uint32();
        break;
      case 4: // a lying length field, or TD
        if (size > 3) bytes[prng.chance(0.5) ? 3 : 2] = prng.uint32();
        break;
      case 5: // cut short
        size = prng.below(size + 1);
        break;
      case 6: // something behind it
        size = Math.min(MAX_TLP_BYTES, size + (prng.chance(0.7) ? 4 : prng.between(1, 9)));
        break;
      default: // one bit anywhere
        if (size > 0) flip(prng, bytes, prng.below(size));
        break;
    }
  }
  return size;
}

function flip(prng: Prng, bytes: Uint8Array, at: number): void {
  bytes[at] = (bytes[at] as number) ^ (1 << prng.below(8));
}

/** The same packet in two surroundings and at two alignments must give the same. */
class TwinDecoder {
  readonly first = new Tlp();
  readonly #second = new Tlp();
  readonly #a = new Uint8Array(MAX_TLP_BYTES + 3 * MARGIN_BYTES).fill(0xff);
  #offset = 0;

  decode(prng: Prng, packet: Uint8Array, length: number): TlpDecode {
    const a = this.#a;
    const offset = MARGIN_BYTES + prng.below(4);
    this.#offset = offset;
    a.fill(prng.uint32(), offset - 32, offset);
    a.fill(prng.uint32(), offset + length, offset + length + MARGIN_BYTES);
    a.set(packet.subarray(0, length), offset);
    resetTlp(this.first);
    const outcome = decodeTlp(a, offset, length, this.first);

    // Alone in its buffer: not a byte before or behind it.
    const b = packet.slice(0, length);
    resetTlp(this.#second);
    const outcomeAlone = decodeTlp(b, 0, length, this.#second);
    if (outcome !== outcomeAlone) {
      throw new Error(`surroundings turn ${outcomeAlone} into ${outcome}`);
    }
    const field = differentField(this.first, this.#second);
    if (field !== '') throw new Error(`surroundings change ${field}`);
    return outcome;
  }

  checkWindow(length: number): void {
    const { payloadOffset, payloadBytes } = this.first;
    if (payloadBytes === 0) return;
    const start = payloadOffset - this.#offset;
    if (start < 12 || start + payloadBytes > length)
      throw new Error('the payload leaves the packet');
  }
}

/** Decodes `count` mutated TLPs. Throws an error that names the seed and the bytes of a finding. */
export function fuzzTlps(seed: number, count: number): TlpFuzzResult {
  const prng = new Prng(seed);
  const templates = fc
    .sample(tlpArbitrary, { seed: prng.uint32() | 0, numRuns: TEMPLATES })
    .map((tlp) => {
      const bytes = new Uint8Array(encodedTlpBytes(tlp));
      encodeTlp(tlp, bytes, 0);
      return bytes;
    });
  const twins = new TwinDecoder();
  const packet = new Uint8Array(MAX_TLP_BYTES);
  const again = new Uint8Array(MAX_TLP_BYTES);
  const reread = new Tlp();
  const outcomes: Record<string, number> = {};
  let accepted = 0;
  for (let index = 0; index < count; index++) {
    const template = prng.pick(templates);
    packet.set(template);
    const length = mutate(prng, packet, template.length);
    try {
      const outcome = twins.decode(prng, packet, length);
      const name = TLP_DECODE_NAMES[outcome] as string;
      outcomes[name] = (outcomes[name] ?? 0) + 1;
      twins.checkWindow(length);
      if (outcome !== TlpDecode.OK) continue;
      accepted++;
      if (TLP_KIND_NAMES[twins.first.kind] === undefined)
        throw new Error('accepted an unknown kind');
      // Reserved bits may differ in the bytes, so it is the fields that must come back.
      const size = encodeTlp(twins.first, again, 0);
      if (size !== length) throw new Error(`encodes to ${size} bytes`);
      resetTlp(reread);
      if (decodeTlp(again, 0, size, reread) !== TlpDecode.OK) throw new Error('encodes to rubbish');
      const field = differentField(twins.first, reread);
      if (field !== '') throw new Error(`encoding changes ${field}`);
    } catch (cause) {
      const hex = Buffer.from(packet.subarray(0, length)).toString('hex');
      throw new Error(`fuzz seed ${seed}, TLP ${index}: ${String(cause)}; bytes ${hex}`, { cause });
    }
  }
  return { tlps: count, accepted, outcomes };
}
