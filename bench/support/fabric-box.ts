/** The box's process: raw servers, and a box proxy with one accelerator a size and transport. */
import { RealClock } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { BoxConfig } from '#cli/box-config';
import { BoxNode } from '#cli/box-node';
import { createLog } from '#cli/log';
import { listenTransports, type Protection } from '#fabric/socket-endpoint';
import {
  type Answer,
  type Ports,
  SIZES,
  type ToBox,
  TRANSPORTS,
  type TransportName,
} from './protocol.ts';
import { listenRaw } from './raw-server.ts';

const clock = new RealClock();
const log = createLog('bench-box', { level: 'warn', format: 'text' });

async function start(message: ToBox): Promise<Ports> {
  const { credentials } = message;
  const fabric: Record<TransportName, number[]> = { tcp: [], tls: [] };
  for (const transport of TRANSPORTS) {
    const protection: Protection =
      transport === 'tls'
        ? { kind: 'tls', credentials, expected: { kind: 'host' } }
        : { kind: 'insecure-plain-tcp', peer: { kind: 'host', id: 'bench-host' } };
    for (const size of SIZES) {
      const config: BoxConfig = {
        id: 'bench-box',
        credentialFiles: { ca: '', cert: '', key: '' },
        listen: [],
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
        rows: [{ slot: 0, valid: true, used: true, host: 'bench-host', path: 'p', generation: 1 }],
        outstandingReads: undefined,
        linkOptions: {},
        fixedPart: {},
        tableError: (errors) => new DxpuError('internal', JSON.stringify(errors)),
      };
      const node = new BoxNode(config, clock, log);
      node.setTable(config);
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
  start(message).then(
    (ports) => process.send?.({ ports } satisfies Answer),
    (error: Error) => process.send?.({ error: error.stack ?? error.message } satisfies Answer),
  );
});
process.on('disconnect', () => process.exit(0));
