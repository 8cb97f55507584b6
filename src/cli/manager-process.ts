/** `dxpu manager`: the owner of the pool, as a process. */
import type { Logger } from '#agent/daemon/logger';
import { RepeatedLog } from '#agent/daemon/repeated-log';
import type { Clock } from '#base/clock';
import { DxpuError } from '#base/errors';
import { makeFolder } from '#base/make-folder';
import type { TlsCredentials } from '#identity/tls-identity';
import { PoolCore } from '#manager/domain/pool-core';
import type { PoolTimeouts } from '#manager/domain/pool-options';
import { type ManagerServer, startManagerServer } from '#manager/rpc/manager-server';
import type { FaultReport } from '#manager/rpc/peers';
import { ManagerShell } from '#manager/shell/manager-shell';
import type { Shell } from '#manager/shell/shell';
import { SqliteStore } from '#manager/store/sqlite-store';
import type { Store } from '#manager/store/store';
import {
  type DaemonOptions,
  type DaemonProcess,
  type DaemonStart,
  runDaemon,
} from './daemon-process.ts';
import { type ManagerConfig, readManagerConfig } from './manager-config.ts';
import { version } from './program-options.ts';

export const runManager = (options: DaemonOptions): Promise<void> =>
  runDaemon('manager', options, readManagerConfig, serveManager);

async function serveManager(start: DaemonStart<ManagerConfig>): Promise<DaemonProcess> {
  const { file, config, credentials, frame, end } = start;
  const { log, clock } = frame;
  makeStoreFolder(config.store);
  const store = await SqliteStore.open(config.store, { version: version() });
  const manager = await startManager({
    store,
    credentials,
    listen: config.listen,
    timeouts: config.timeouts,
    clock,
    log,
    onFatal: (error) => {
      log.error({ code: error.code, cause: String(error.cause) }, error.message);
      end('it cannot go on', 1);
    },
  });
  const listen = manager.server.addresses.map((one) => `${one.host}:${one.port}`);
  for (const where of listen) log.info(`listening on ${where}`);
  return {
    handlers: {
      status: async () => ({
        kind: 'manager',
        id: config.id,
        pid: process.pid,
        config: file,
        store: config.store,
        listen,
        uptimeS: process.uptime(),
        pool: await manager.shell.read((pool) => pool.status()),
        connections: connectionsByKind(manager.server.connections()),
      }),
    },
    stop: (reason) => manager.stop(reason),
  };
}

/** How many there are of hosts, boxes and users: of a large pool a list of them would be one, too. */
function connectionsByKind(connections: ReadonlyMap<string, number>): Record<string, number> {
  const counts: Record<string, number> = { host: 0, box: 0, user: 0 };
  for (const [name, count] of connections) {
    const [kind = ''] = name.split('/', 1);
    counts[kind] = (counts[kind] ?? 0) + count;
  }
  return counts;
}

function makeStoreFolder(folder: string): void {
  try {
    makeFolder(folder);
  } catch (error) {
    const { code, message, details } = DxpuError.from(error);
    throw new DxpuError(code, `no store at ${folder}: ${message}; choose another with store`, {
      details,
      cause: error,
    });
  }
}

export interface ManagerParts {
  /** Open, and closed by `stop` or when the start fails. */
  readonly store: Store;
  readonly credentials: TlsCredentials;
  readonly listen: readonly { readonly host: string; readonly port: number }[];
  readonly timeouts?: Partial<PoolTimeouts>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called once: the process must end. Nothing is answered any more. */
  readonly onFatal: (error: DxpuError) => void;
}

export interface RunningManager {
  readonly shell: Shell;
  readonly server: ManagerServer;
  /** Commits what is pending, says goodbye, closes server and store. */
  stop(reason: string): void;
}

/** Core, shell and server over an open store. */
export async function startManager(parts: ManagerParts): Promise<RunningManager> {
  const { store, clock, log, onFatal, timeouts } = parts;
  try {
    const shell = new ManagerShell({
      store,
      clock,
      log,
      onFatal,
      makePool: (start) =>
        new PoolCore({ ...start, ...(timeouts === undefined ? {} : { timeouts }) }),
    });
    const server = await startManagerServer({
      shell,
      credentials: parts.credentials,
      listen: parts.listen,
      report: faultReport(log),
      version: version(),
    });
    return {
      shell,
      server,
      stop: (reason) => {
        shell.stop(reason);
        server.close();
        store.close();
      },
    };
  } catch (error) {
    store.close();
    throw error;
  }
}

function faultReport(log: Logger): FaultReport {
  const repeated = new RepeatedLog(log);
  return {
    refused: (error) => {
      // Each connection has a port of its own: the reason alone makes two alike.
      const reason = DxpuError.from(error.cause).message;
      repeated.say('warn', error.details, error.message, reason);
    },
    fault: (thrown) => {
      const stack = thrown instanceof Error ? thrown.stack : undefined;
      repeated.say('error', { stack }, `a fault of the program: ${DxpuError.from(thrown).message}`);
    },
  };
}
