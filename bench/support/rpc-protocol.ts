/** What the RPC benchmark and its manager's process say to each other. */
import type { TlsCredentials } from '#identity/tls-identity';
import type { Sizes } from './store-agents.ts';

export type ToRpcManager =
  | {
      readonly op: 'start';
      readonly folder: string;
      readonly credentials: TlsCredentials;
      readonly sizes: Sizes;
    }
  /** Agents keep still, or go on. */
  | { readonly op: 'hold' | 'release' };

export interface RpcAnswer {
  readonly error?: string;
  readonly port?: number;
  readonly hosts?: readonly string[];
}
