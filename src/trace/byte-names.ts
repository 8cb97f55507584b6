/** Names by their bytes, numbered in the order they come, so that a name is decoded once. */
export class ByteNames {
  /** 0 is free, otherwise the index of the name and 1; as many as a power of two. */
  #slots = new Uint32Array(256);
  readonly #hashes: number[] = [];
  readonly #bytes: Buffer[] = [];
  #kept = 0;

  get count(): number {
    return this.#bytes.length;
  }

  /** Bytes of all names together. */
  get keptBytes(): number {
    return this.#kept;
  }

  /**
   * The number of the name `bytes[start]` to `bytes[end - 1]`. A new one is copied, or where `mayAdd` is
   * false has the number -1.
   */
  index(bytes: Uint8Array, start: number, end: number, mayAdd = true): number {
    const hash = hashOf(bytes, start, end);
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (;;) {
      const index = (this.#slots[slot] as number) - 1;
      if (index < 0) break;
      if (this.#hashes[index] === hash && isSame(this.#bytes[index], bytes, start, end)) {
        return index;
      }
      slot = (slot + 1) & mask;
    }
    if (!mayAdd) return -1;
    const index = this.#bytes.push(Buffer.from(bytes.subarray(start, end))) - 1;
    this.#hashes.push(hash);
    this.#kept += end - start;
    this.#slots[slot] = index + 1;
    if (2 * (index + 1) > this.#slots.length) this.#grow();
    return index;
  }

  /** Text between the quotes of JSON, with its escapes undone; bad UTF-8 becomes U+FFFD. */
  text(index: number): string {
    const text = this.#bytes[index]?.toString('utf8') ?? '';
    if (!text.includes('\\')) return text;
    try {
      return String(JSON.parse(`"${text}"`));
    } catch {
      return text;
    }
  }

  #grow(): void {
    const slots = new Uint32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (const [index, hash] of this.#hashes.entries()) {
      let slot = hash & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = index + 1;
    }
    this.#slots = slots;
  }
}

/** Of all bytes: names often differ in one digit in their middle. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let i = start; i < end; i += 1) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

function isSame(known: Buffer | undefined, bytes: Uint8Array, start: number, end: number): boolean {
  if (known === undefined || known.length !== end - start) return false;
  // Not Buffer.compare: its call costs more than most names are long.
  for (let i = 0; i < known.length; i += 1) if (known[i] !== bytes[start + i]) return false;
  return true;
}
