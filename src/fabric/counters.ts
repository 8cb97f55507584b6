/** What a proxy counts, one record a slot. All numbers are since the proxy started. */

/** Towards the device, or towards the host. Indexes `SlotCounters.tlps`. */
export const Direction = { DOWN: 0, UP: 1 } as const;
export type Direction = (typeof Direction)[keyof typeof Direction];

/** Why a TLP from a box was refused (invariant 3), in the order the checks are made. */
export const REFUSAL_NAMES = [
  'malformed',
  'ecrc',
  'unsupported-kind',
  'stale',
  'address-type',
  'config-or-io',
  'message',
  'requester-id',
  'bus-master-off',
  'address-above-2^53',
  'peer-to-peer',
  'interrupt-range',
  'unregistered',
  'access',
  'misaligned-atomic',
  'poisoned',
  'memory-taken-back',
  'overrun',
] as const;
export type RefusalName = (typeof REFUSAL_NAMES)[number];

/** Indexes of `REFUSAL_NAMES`, and of `SlotCounters.refused`. */
export const Refusal = {
  MALFORMED: 0,
  ECRC: 1,
  UNSUPPORTED_KIND: 2,
  STALE: 3,
  ADDRESS_TYPE: 4,
  CONFIG_OR_IO: 5,
  MESSAGE: 6,
  REQUESTER_ID: 7,
  BUS_MASTER_OFF: 8,
  ADDRESS_ABOVE_2_53: 9,
  PEER_TO_PEER: 10,
  INTERRUPT_RANGE: 11,
  UNREGISTERED: 12,
  ACCESS: 13,
  MISALIGNED_ATOMIC: 14,
  POISONED: 15,
  MEMORY_TAKEN_BACK: 16,
  OVERRUN: 17,
} as const;
export type Refusal = (typeof Refusal)[keyof typeof Refusal];

const KINDS = 128;

export class SlotCounters {
  /** TLPs that passed, by direction and kind: `tlps[direction][kind]`. */
  readonly tlps: readonly [Float64Array, Float64Array] = [
    new Float64Array(KINDS),
    new Float64Array(KINDS),
  ];
  /** Payload bytes that passed, by direction. */
  readonly payloadBytes: readonly [number, number] | number[] = [0, 0];
  /** Interrupts raised (host proxy). */
  interrupts = 0;
  /** Stale by generation, row or peer (invariant 2): answered UR, or dropped. */
  staleNonPosted = 0;
  stalePosted = 0;
  staleCompletions = 0;
  /** Completions that answer nothing outstanding, or not as asked: dropped. */
  unexpectedCompletions = 0;
  /** Posted requests dropped because the link or the slot was down (invariant 6c). */
  droppedPosted = 0;
  /** Non-posted requests answered UR because the link or the slot was down (invariant 6c). */
  abortedNonPosted = 0;
  /** Refused by reason (host proxy), indexed by `Refusal`. */
  readonly refused = new Float64Array(REFUSAL_NAMES.length);
}
