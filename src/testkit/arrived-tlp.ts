import type { ArrivedTlp } from '#fabric/link-user';

/** A TLP that came by itself, in an array of its own. */
export function arrivedTlp(slot: number, generation: number, bytes: Uint8Array): ArrivedTlp {
  return { slot, generation, bytes, offset: 0, length: bytes.length };
}
