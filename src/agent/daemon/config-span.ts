/** A span of configuration space in whole registers: clients access any bytes, requests one register. */

/** The registers a span touches. */
export function registersOf(offset: number, count: number): number[] {
  const first = offset & ~3;
  const registers = Math.ceil((offset + count - first) / 4);
  return Array.from({ length: registers }, (_, index) => first + 4 * index);
}

export interface RegisterWrite {
  readonly register: number;
  readonly value: number;
  /** Bit n: byte n is written. */
  readonly byteEnables: number;
}

/** What writing `count` of `bytes` at `offset` writes of each register. */
export function registerWrites(offset: number, bytes: Uint8Array, count: number): RegisterWrite[] {
  return registersOf(offset, count).map((register) => {
    let value = 0;
    let byteEnables = 0;
    for (let lane = 0; lane < 4; lane++) {
      const at = register + lane - offset;
      if (at < 0 || at >= count) continue;
      value |= (bytes[at] as number) << (8 * lane);
      byteEnables |= 1 << lane;
    }
    return { register, value: value >>> 0, byteEnables };
  });
}
