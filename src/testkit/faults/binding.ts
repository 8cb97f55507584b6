import type { Work } from './probe-driver.ts';

/** Which box slot is to be behind which virtual slot, as the operator of a fault world wants it. */
export interface Binding {
  readonly kind: 'accel' | 'probe' | 'hostile';
  readonly box: string;
  readonly slot: number;
  host: string;
  virtualSlot: number;
  generation: number;
  readonly work: Work;
}
