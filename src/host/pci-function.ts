/** What enumeration found out about a function, and set it to. */
import type { TaskScope } from './task.ts';

export interface PciBar {
  /** 0 to 5, of the lower half when 64 bit. */
  readonly index: number;
  readonly kind: 'mem32' | 'mem64';
  readonly prefetchable: boolean;
  readonly sizeBytes: number;
  readonly address: number;
}

export interface PciCapability {
  readonly id: number;
  /** Byte offset in config space. */
  readonly offset: number;
  /** In extended config space (from 0x100). */
  readonly extended: boolean;
  readonly version: number;
}

export interface PciMsi {
  readonly offset: number;
  readonly address: number;
  /** Data of vector 0; vector i sends `data + i`. */
  readonly data: number;
  /** Vectors enabled. */
  readonly vectors: number;
}

export interface PciFunction {
  readonly virtualSlot: number;
  readonly bdf: number;
  readonly vendorId: number;
  readonly deviceId: number;
  readonly subsystemVendorId: number;
  readonly subsystemId: number;
  /** Base class, subclass and programming interface, 24 bits. */
  readonly classCode: number;
  readonly revision: number;
  readonly bars: readonly PciBar[];
  readonly capabilities: readonly PciCapability[];
  readonly msi: PciMsi | undefined;
  readonly maxPayloadBytes: number;
  readonly maxReadRequestBytes: number;
  /** Ends, with an `unavailable` error, when the function is removed. */
  readonly scope: TaskScope;
}

/** Why a function was not set up. Nothing of it was enabled. */
export type EnumerationProblem =
  | { readonly kind: 'no-device'; readonly message: string }
  | { readonly kind: 'not-ready'; readonly message: string; readonly waitedNs: number }
  | { readonly kind: 'link-down'; readonly message: string }
  | { readonly kind: 'config-error'; readonly message: string }
  /** Config accesses timed out, each time it was tried. */
  | { readonly kind: 'no-answer'; readonly message: string }
  | {
      readonly kind: 'no-space';
      readonly message: string;
      readonly barIndex: number;
      readonly barBytes: number;
      readonly window: 'prefetchable' | 'non-prefetchable';
      readonly windowBytes: number;
    };
