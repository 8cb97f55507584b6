/** The signature of the manager's RPC server; the body follows. */
import type { TlsCredentials } from '#identity/tls-identity';
import type { ManagerLog, Shell } from '../shell/shell.ts';

export interface ManagerServerOptions {
  readonly shell: Shell;
  /** Of kind `manager`. */
  readonly credentials: TlsCredentials;
  /** Port 0 takes a free one. */
  readonly listen: readonly { readonly host: string; readonly port: number }[];
  readonly log: ManagerLog;
  readonly version: string;
}

export interface ManagerServer {
  /** `address:port` of each. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
  /** Takes no more connections and ends those there are. */
  close(): void;
}
