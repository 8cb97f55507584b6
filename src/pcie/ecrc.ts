/**
 * The end-to-end CRC of PCIe 5.0 base 2.7.1: polynomial 04C1_1DB7h, seed all ones, each byte taken
 * from bit 0 to bit 7, the result complemented and mapped into the digest bit-reversed per byte. The
 * variant bits, bit 0 of Type and EP, count as 1 whatever they are, for a switch may change them.
 */

// Bits go in lowest first, so the register is kept mirrored: x^31 in bit 0. The digest's mapping
// (result bit 31 to bit 24, … bit 24 to bit 31, and so for each byte) then is plain byte order.
const MIRRORED_POLYNOMIAL = 0xedb88320;

/** TABLES[k][b]: the register after byte b and k zero bytes. */
const TABLES: readonly Int32Array[] = buildTables();
const [T0, T1, T2, T3, T4, T5, T6, T7] = TABLES as [
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
];

function buildTables(): Int32Array[] {
  const first = new Int32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let register = byte;
    for (let bit = 0; bit < 8; bit++) {
      register = (register >>> 1) ^ ((register & 1) === 1 ? MIRRORED_POLYNOMIAL : 0);
    }
    first[byte] = register;
  }
  const tables = [first];
  for (let k = 1; k < 8; k++) {
    const previous = tables[k - 1] as Int32Array;
    const next = new Int32Array(256);
    for (let byte = 0; byte < 256; byte++) {
      const register = previous[byte] as number;
      next[byte] = (register >>> 8) ^ (first[register & 255] as number);
    }
    tables.push(next);
  }
  return tables;
}

function word(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

/**
 * The TLP digest over header and payload, `length` bytes at `offset` (a multiple of 4, at least 12),
 * as an unsigned number whose most significant byte is the first one on the wire.
 */
export function computeEcrc(bytes: Uint8Array, offset: number, length: number): number {
  const end = offset + length;
  // The first word holds both variant bits: byte 0 bit 0, and byte 2 bit 6.
  let register = ~(word(bytes, offset) | 0x0040_0001);
  register = step(register);
  let at = offset + 4;
  for (; at + 8 <= end; at += 8) {
    register ^= word(bytes, at);
    const high = word(bytes, at + 4);
    register =
      (T7[register & 255] as number) ^
      (T6[(register >>> 8) & 255] as number) ^
      (T5[(register >>> 16) & 255] as number) ^
      (T4[register >>> 24] as number) ^
      (T3[high & 255] as number) ^
      (T2[(high >>> 8) & 255] as number) ^
      (T1[(high >>> 16) & 255] as number) ^
      (T0[high >>> 24] as number);
  }
  for (; at < end; at += 4) register = step(register ^ word(bytes, at));
  const result = ~register;
  return (
    (((result & 255) << 24) |
      ((result & 0xff00) << 8) |
      ((result >>> 8) & 0xff00) |
      (result >>> 24)) >>>
    0
  );
}

/** Shifts the four bytes in the register through. */
function step(register: number): number {
  return (
    (T3[register & 255] as number) ^
    (T2[(register >>> 8) & 255] as number) ^
    (T1[(register >>> 16) & 255] as number) ^
    (T0[register >>> 24] as number)
  );
}
