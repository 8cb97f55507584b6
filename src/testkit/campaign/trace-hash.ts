/** A running hash of everything that happens in a world: equal traces, equal hash (invariant 8). */

const DOUBLE = new Float64Array(1);
const HALVES = new Uint32Array(DOUBLE.buffer);

export class TraceHash {
  #a = 0x9e3779b9;
  #b = 0x85ebca6b;

  word(value: number): void {
    this.#a = Math.imul(this.#a ^ value, 0x01000193);
    this.#b = (Math.imul(this.#b + value, 0xc2b2ae35) ^ (this.#a >>> 13)) | 0;
  }

  /** Any number, times included. */
  number(value: number): void {
    DOUBLE[0] = value;
    this.word(HALVES[0] as number);
    this.word(HALVES[1] as number);
  }

  text(value: string): void {
    for (let index = 0; index < value.length; index++) this.word(value.charCodeAt(index));
  }

  /** 16 hexadecimal digits. */
  get digest(): string {
    const hex = (word: number): string => (word >>> 0).toString(16).padStart(8, '0');
    return hex(this.#a) + hex(this.#b);
  }
}

/** FNV-1a, byte by byte. */
export function hashBytes(bytes: Uint8Array, offset: number, length: number): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < length; index++) {
    hash = Math.imul(hash ^ (bytes[offset + index] as number), 0x01000193);
  }
  return hash >>> 0;
}
