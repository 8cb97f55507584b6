/**
 * The client of `PoolService`, for the CLI and for programs of others (`dxpu/client`).
 *
 * A call that failed with `unavailable` or `deadline_exceeded` may have been done or not. Repeat it with
 * the same request id: it acts once, whatever happened the first time.
 */
import { type Client, createClient } from '@connectrpc/connect';
import type { PemTexts } from '#identity/tls-identity';
import { PoolService } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { connectManager } from '#proto/manager-connection';
import { fromRpcError } from '#proto/rpc-error';

export interface PoolClientOptions {
  /** Of the manager. */
  readonly host: string;
  readonly port: number;
  /** Of kind `user`: the texts, not the names of files. */
  readonly credentials: PemTexts;
  /** Where given, the manager must be this one. */
  readonly manager?: string;
  /** How long the connection may take to open; 5 s by default. */
  readonly openWithinMs?: number;
}

/**
 * Messages are those of `dxpu/pool-contract` (64-bit numbers are bigint). Every
 * failure is a `DxpuError` with the code and details it had in the manager; a demand that is not met is
 * `resource_exhausted` with `details.refusal`, a `Refusal` of the same module.
 */
export interface PoolClient {
  readonly pool: Client<typeof PoolService>;
  /** Ends the connection; calls under way fail with `cancelled`. */
  close(): void;
}

/** Connects at the first call, and again when the connection was lost. */
export function connectPool(options: PoolClientOptions): PoolClient {
  const connection = connectManager(options);
  const raw = createClient(PoolService, connection.transport);
  const pool = Object.fromEntries(
    PoolService.methods.map((method) => {
      const call = raw[method.localName as keyof typeof raw] as AnyCall;
      return [method.localName, method.methodKind === 'unary' ? unary(call) : streaming(call)];
    }),
  );
  return { pool: pool as unknown as Client<typeof PoolService>, close: () => connection.close() };
}

/** What the methods of a client have in common. */
type AnyCall = (...parameters: readonly unknown[]) => unknown;

function unary(call: AnyCall): AnyCall {
  return async (...parameters) => {
    try {
      return await call(...parameters);
    } catch (error) {
      throw fromRpcError(error);
    }
  };
}

function streaming(call: AnyCall): AnyCall {
  return async function* (...parameters) {
    try {
      yield* call(...parameters) as AsyncIterable<unknown>;
    } catch (error) {
      throw fromRpcError(error);
    }
  };
}
