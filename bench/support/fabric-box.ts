/** The box's process: raw servers, and a box proxy with one accelerator a size and transport. */
import { BoxNode } from '#agent/daemon/box-node';
import { RealClock } from '#base/clock';
import { DxpuError } from '#base/errors';
import { createLog } from '#cli/log';
import { listenTransports, type Protection } from '#fabric/socket-endpoint';
import type { TlsCredentials } from '#identity/tls-identity';
import {
  type Answer,
  cpuNs,
  type Ports,
  SIZES,
  type ToBox,
  TRANSPORTS,
  type TransportName,
} from './protocol.ts';
import { listenRaw } from './raw-server.ts';

const clock = new RealClock();
const log = createLog('bench-box', { level: 'warn', format: 'text' });

async function start(credentials: TlsCredentials): Promise<Ports> {
  const fabric: Record<TransportName, number[]> = { tcp: [], tls: [] };
  for (const transport of TRANSPORTS) {
    const protection: Protection =
      transport === 'tls'
        ? { kind: 'tls', credentials, expected: { kind: 'host' } }
        : { kind: 'insecure-plain-tcp', peer: { kind: 'host', id: 'bench-host' } };
    for (const size of SIZES) {
      const node = new BoxNode({
        id: 'bench-box',
        devices: [
          {
            slot: 0,
            kind: 'accel',
            options: {
              uuid: '00000000-0000-4000-8000-000000000001',
              memoryBytes: 64 * 2 ** 20,
              tags: 256,
              maxPayloadBytes: size.mps,
              maxReadRequestBytes: size.mrrs,
            },
          },
        ],
        clock,
        log,
      });
      const errors = node.setTable([
        { slot: 0, valid: true, used: true, host: 'bench-host', path: 'p', generation: 1 },
      ]);
      if (errors.length > 0) throw new DxpuError('internal', JSON.stringify(errors));
      const listener = await listenTransports({
        host: '127.0.0.1',
        port: 0,
        protection,
        clock,
        onTransport: (accepted) => node.accept(accepted),
        onRefused: (error) => log.error(error.message),
      });
      fabric[transport].push(listener.port);
    }
  }
  return {
    raw: { tcp: await listenRaw(undefined), tls: await listenRaw(credentials) },
    fabric,
  };
}

process.on('message', (message: ToBox) => {
  if (message.op === 'cpu') {
    process.send?.({ cpuNs: cpuNs() } satisfies Answer);
    return;
  }
  start(message.credentials).then(
    (ports) => process.send?.({ ports } satisfies Answer),
    (error: Error) => process.send?.({ error: error.stack ?? error.message } satisfies Answer),
  );
});
process.on('disconnect', () => process.exit(0));
