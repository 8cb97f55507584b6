/** What the benchmark's parent and its two processes say to each other. */
import type { TlsCredentials } from '#identity/tls-identity';

export const TRANSPORTS = ['tcp', 'tls'] as const;
export type TransportName = (typeof TRANSPORTS)[number];

/** Sizes the accelerator is set to: payload and read request. */
export const SIZES = [
  { name: 'MPS 512, MRRS 4096', mps: 512, mrrs: 4096 },
  { name: 'MPS 128, MRRS 128', mps: 128, mrrs: 128 },
] as const;

/** Bytes of the frames of one MMIO read and of its answer: session header, entry, MRd 32, CplD. */
export const MMIO_REQUEST_BYTES = 40 + 12 + 12;
export const MMIO_ANSWER_BYTES = 40 + 12 + 12 + 4;

export const STREAM_WRITE_BYTES = 64 * 1024;

/** Ports the box side listens on: raw echo and stream, and a fabric link per size. */
export interface Ports {
  readonly raw: Record<TransportName, number>;
  readonly fabric: Record<TransportName, number[]>;
}

export type Kind =
  | 'echo'
  | 'mmio-read'
  | 'raw-to-box'
  | 'raw-to-host'
  | 'mmio-write'
  | 'dma-read'
  | 'dma-write';

/** Asks for the CPU time the process has used so far. */
export type AskCpu = { readonly op: 'cpu' };

export type ToBox = AskCpu | { readonly op: 'start'; readonly credentials: TlsCredentials };

export type ToHost =
  | AskCpu
  | { readonly op: 'start'; readonly credentials: TlsCredentials; readonly ports: Ports }
  | {
      readonly op: 'measure';
      readonly kind: Kind;
      readonly transport: TransportName;
      /** Index in SIZES. */
      readonly size: number;
      /** Round trips, or bytes. */
      readonly amount: number;
    };

/**
 * Answer to `start` of the box, of the host, to `cpu`, and to `measure`: ns a round trip, or bytes a
 * second.
 */
export type Answer =
  | { readonly ports: Ports }
  | { readonly cpuNs: number }
  | { readonly ready: true }
  | { readonly value: number }
  | { readonly error: string };

/** Of this process, in user and system mode together. */
export function cpuNs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}
