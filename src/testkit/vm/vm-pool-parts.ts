/** What the pool of `vm-pool.ts` consists of, and what it says of it. */
import { plainOf } from '#cli/pool-plain';
import { type Binding, BindingSchema } from '#proto/generated/dxpu/pool/v1/pool_pb';

/** Where each kind is. */
export const PLACES = {
  'virtio-gpu': { box: 'b1', slot: 0, model: 'virtio-gpu' },
  accel: { box: 'b1', slot: 1, model: 'dxpu-accel' },
  'second-accel': { box: 'b1', slot: 2, model: 'second-accel' },
  'bochs-display': { box: 'b2', slot: 0, model: 'bochs-display' },
  'other-accel': { box: 'b2', slot: 1, model: 'other-accel' },
  /** What a process of its own serves. */
  'remote-accel': { box: 'b2', slot: 2, model: 'remote-accel' },
} as const;
export type Kind = keyof typeof PLACES;

/**
 * Of the displays. Each pixel of a bochs-display is an MMIO write of its own, which an emulated processor makes
 * some ten thousand a second of.
 */
export const SIZES = {
  'virtio-gpu': { width: 1024, height: 768 },
  'bochs-display': { width: 320, height: 240 },
} as const;
export type Display = keyof typeof SIZES;

/** Beside the configurations. */
export const REMOTE_SOCKET = 'remote.sock';

export const DEVICES = {
  b1: [
    '{ slot: 0, kind: virtio-gpu }',
    '{ slot: 1, kind: accel, memory: 64MiB }',
    '{ slot: 2, kind: accel, model: second-accel, memory: 64MiB }',
  ],
  b2: [
    `{ slot: 0, kind: bochs-display, width: ${SIZES['bochs-display'].width}, height: ${SIZES['bochs-display'].height} }`,
    '{ slot: 1, kind: accel, model: other-accel, memory: 64MiB }',
    `{ slot: 2, kind: vfio-user, model: remote-accel, socket: ${REMOTE_SOCKET} }`,
  ],
} as const;

export interface BindingRecord {
  readonly id: string;
  readonly state: string;
  readonly hostSlot: number;
  readonly generation: number;
  readonly box: string;
  readonly failure?: { readonly reason: string; readonly message: string };
  readonly attachment?: {
    readonly bdf: string;
    readonly bars: readonly {
      readonly index: number;
      readonly address: number;
      readonly sizeBytes: number;
    }[];
  };
}

export interface GpuRecord {
  readonly state: string;
  readonly reason: string;
}

/** As commands print it. */
export const bindingRecord = (one: Binding): BindingRecord =>
  plainOf(BindingSchema, one) as unknown as BindingRecord;

export function found<T>(map: ReadonlyMap<string, T>, key: string): T {
  const value = map.get(key);
  if (value === undefined) throw new Error(`the pool has no ${key}`);
  return value;
}
