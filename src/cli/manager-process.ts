/** The signatures of `dxpu manager`; the bodies follow. */
import type { Clock } from '#base/clock';
import type { DxpuError } from '#base/errors';
import type { TlsCredentials } from '#identity/tls-identity';
import type { ManagerServer } from '#manager/rpc/manager-server';
import type { ManagerLog, Shell } from '#manager/shell/shell';
import type { Store } from '#manager/store/store';
import type { ProxyProcessOptions } from './proxy-process.ts';

/** `runManager(options)` returns once it serves, as `runBox` does. */
export type RunManager = (options: ProxyProcessOptions) => Promise<void>;

export interface ManagerParts {
  readonly store: Store;
  readonly credentials: TlsCredentials;
  readonly listen: readonly { readonly host: string; readonly port: number }[];
  readonly clock: Clock;
  readonly log: ManagerLog;
  /** Called once; the process must end. */
  readonly onFatal: (error: DxpuError) => void;
}

export interface RunningManager {
  readonly shell: Shell;
  readonly server: ManagerServer;
  /** Commits what is pending, closes server and store. */
  stop(reason: string): void;
}

/** `startManager(parts)`: core, shell and server over an open store. */
export type StartManager = (parts: ManagerParts) => Promise<RunningManager>;
