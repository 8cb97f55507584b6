/**
 * A process beside a VM, by its first order: either end of the raw TLS echo, or an accelerator served to QEMU
 * without the fabric, as `dxpu device serve` does it.
 */
import { randomUUID } from 'node:crypto';
import { RealClock } from '#base/clock';
import { createDeviceModel } from '#devices/device-models';
import type { TlsCredentials } from '#identity/tls-identity';
import { VfioUserServer } from '#vfio-user/server';
import { BehindEcho } from './behind-echo.ts';
import { median } from './figures.ts';
import type { Answer } from './protocol.ts';
import { RawClient } from './raw-client.ts';
import { listenRaw } from './raw-server.ts';

/** Where the echo listens, and who may connect. */
export interface EchoPlace {
  readonly port: number;
  readonly credentials: TlsCredentials;
}

/** Answered by `ready`, or by a value: the port listened at, the median of the round trips in ns. */
export type ToVmSide =
  | { readonly op: 'serve'; readonly path: string; readonly memoryBytes: number }
  | { readonly op: 'listen'; readonly credentials: TlsCredentials }
  | ({ readonly op: 'connect' } & EchoPlace)
  | { readonly op: 'echo'; readonly rounds: number }
  /** Whether reads of the device that is served wait for a round trip of the echo. */
  | { readonly op: 'behind-echo'; readonly isOn: boolean };

const clock = new RealClock();
let client: RawClient | undefined;
let device: BehindEcho | undefined;

async function handle(message: ToVmSide): Promise<Answer> {
  switch (message.op) {
    case 'serve': {
      const { path, memoryBytes } = message;
      const options = { uuid: randomUUID(), memoryBytes };
      const model = createDeviceModel({ kind: 'accel', options }, console.error);
      device = new BehindEcho({ model, clock });
      new VfioUserServer({ path, device, clock });
      return { ready: true };
    }
    case 'listen':
      return { value: await listenRaw(message.credentials) };
    case 'connect':
      client = await RawClient.connect(message.port, message.credentials);
      device?.useEcho(client, () => clock.now());
      return { ready: true };
    case 'echo': {
      if (client === undefined) throw new Error('not connected');
      const took: number[] = [];
      await client.echo(message.rounds, (ns) => took.push(ns));
      return { value: median(took) };
    }
    case 'behind-echo':
      if (device === undefined) throw new Error('nothing is served');
      device.isOn = message.isOn;
      return { ready: true };
  }
}

process.on('message', (message: ToVmSide) => {
  handle(message).then(
    (answer) => process.send?.(answer),
    (error: Error) => process.send?.({ error: error.stack ?? error.message } satisfies Answer),
  );
});
process.on('disconnect', () => process.exit(0));
