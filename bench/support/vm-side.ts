/**
 * A process beside a VM, by its first order: either end of the raw TLS echo, or an accelerator served to QEMU
 * without the fabric, as `dxpu device serve` does it.
 */
import { randomUUID } from 'node:crypto';
import { ServedModel } from '#agent/daemon/served-model';
import { RealClock } from '#base/clock';
import { createDeviceModel } from '#devices/device-models';
import type { TlsCredentials } from '#identity/tls-identity';
import { VfioUserServer } from '#vfio-user/server';
import { median } from './figures.ts';
import type { Answer } from './protocol.ts';
import { RawClient } from './raw-client.ts';
import { listenRaw } from './raw-server.ts';

/** Answered by `ready`, or by a value: the port listened at, the median of the round trips in ns. */
export type ToVmSide =
  | { readonly op: 'serve'; readonly path: string; readonly memoryBytes: number }
  | { readonly op: 'listen'; readonly credentials: TlsCredentials }
  | { readonly op: 'connect'; readonly credentials: TlsCredentials; readonly port: number }
  /** `pauseUs`: how long the client sleeps before each. */
  | { readonly op: 'echo'; readonly rounds: number; readonly pauseUs: number };

let client: RawClient | undefined;
/** Nobody wakes who waits for it. */
const never = new Int32Array(new SharedArrayBuffer(4));

async function handle(message: ToVmSide): Promise<Answer> {
  switch (message.op) {
    case 'serve': {
      const { path, memoryBytes } = message;
      const clock = new RealClock();
      const options = { uuid: randomUUID(), memoryBytes };
      const model = createDeviceModel({ kind: 'accel', options }, console.error);
      const device = new ServedModel({ model, clock });
      new VfioUserServer({ path, device, clock });
      return { ready: true };
    }
    case 'listen':
      return { value: await listenRaw(message.credentials) };
    case 'connect':
      client = await RawClient.connect(message.port, message.credentials);
      return { ready: true };
    case 'echo': {
      if (client === undefined) throw new Error('not connected');
      const took: number[] = [];
      const { rounds, pauseUs } = message;
      if (pauseUs === 0) await client.echo(rounds, (ns) => took.push(ns));
      for (let round = 0; pauseUs > 0 && round < rounds; round++) {
        Atomics.wait(never, 0, 0, pauseUs / 1000);
        await client.echo(1, (ns) => took.push(ns));
      }
      return { value: median(took) };
    }
  }
}

process.on('message', (message: ToVmSide) => {
  handle(message).then(
    (answer) => process.send?.(answer),
    (error: Error) => process.send?.({ error: error.stack ?? error.message } satisfies Answer),
  );
});
process.on('disconnect', () => process.exit(0));
