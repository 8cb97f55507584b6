/** The signature of the client of `PoolService`; the body follows. */
import type { Client } from '@connectrpc/connect';
import type { TlsCredentials } from '#identity/tls-identity';
import type { PoolService } from '#proto/generated/dxpu/pool/v1/pool_pb';

export interface PoolClientOptions {
  /** Of the manager. */
  readonly host: string;
  readonly port: number;
  /** Of kind `user`. */
  readonly credentials: TlsCredentials;
  /** Where given, the manager must be this one. */
  readonly manager?: string;
}

/**
 * Messages are those of `#proto/generated/dxpu/pool/v1/pool_pb` (64-bit numbers are bigint). Every
 * failure is a `DxpuError` with the code and details it had in the manager; a demand that is not met is
 * `resource_exhausted` with `details.refusal`, a `Refusal` of the same module.
 */
export interface PoolClient {
  readonly pool: Client<typeof PoolService>;
  /** Ends the connection; calls under way fail with `cancelled`. */
  close(): void;
}

/** Connects at the first call, and again when the connection was lost. */
export type ConnectPool = (options: PoolClientOptions) => PoolClient;
