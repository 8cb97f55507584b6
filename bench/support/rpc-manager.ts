/** The manager's process of the RPC benchmark: a whole manager with its server, its agents inside. */
import { RealClock } from '#base/clock';
import { createLog } from '#cli/log';
import { type RunningManager, startManager } from '#cli/manager-process';
import { SqliteStore } from '#manager/store/sqlite-store';
import type { RpcAnswer, ToRpcManager } from './rpc-protocol.ts';
import { InstantAgents } from './store-agents.ts';

/** No deadline of a binding passes during a block, however long agents are held. */
const TIMEOUT_MS = 24 * 3_600_000;

let manager: RunningManager | undefined;
let agents: InstantAgents | undefined;

async function serve(message: ToRpcManager): Promise<RpcAnswer> {
  switch (message.op) {
    case 'start':
      manager = await startManager({
        store: await SqliteStore.open(message.folder, { version: 'bench' }),
        credentials: message.credentials,
        listen: [{ host: '127.0.0.1', port: 0 }],
        timeouts: {
          reservedMs: TIMEOUT_MS,
          programmingMs: TIMEOUT_MS,
          attachingMs: TIMEOUT_MS,
          drainingMs: TIMEOUT_MS,
          detachingMs: TIMEOUT_MS,
          scrubbingMs: TIMEOUT_MS,
        },
        clock: new RealClock(),
        log: createLog('bench-manager', { level: 'warn', format: 'text' }),
        onFatal: (error) => {
          throw error;
        },
      });
      agents = new InstantAgents(manager.shell, message.sizes);
      return { port: manager.server.addresses[0]?.port ?? 0, hosts: agents.hosts };
    case 'hold':
      agents?.hold();
      return {};
    case 'release':
      agents?.release();
      return {};
  }
}

process.on('message', (message: ToRpcManager) => {
  serve(message).then(
    (answer) => process.send?.(answer),
    (error: Error) => process.send?.({ error: error.stack ?? error.message } satisfies RpcAnswer),
  );
});
process.on('disconnect', () => {
  manager?.stop('the benchmark is over');
  process.exit(0);
});
