/** A server with the example device and clients of it, over a real socket in one process. */
import { VfioUserClient } from '#vfio-user/client';
import { ArrayMemory } from '#vfio-user/client-memory';
import { REGION_CONFIG } from '#vfio-user/region-info';
import { VfioUserServer, type VfioUserServerOptions } from '#vfio-user/server';
import { ExampleDevice, ExampleRegister } from './vfio-user-device.ts';
import { openFds, socketFolder, until } from './vfio-user-rig.ts';

export const GUEST_BYTES = 1 << 20;

/** All of guest memory, as it is lent. */
export const WHOLE_GUEST = {
  address: 0,
  sizeBytes: GUEST_BYTES,
  fileOffset: 0,
  readable: true,
  writable: true,
};

/** What a test has opened; `close` also checks that no descriptor is left. */
export class ServedPair {
  readonly #folder = socketFolder();
  readonly #closers: (() => void)[] = [];
  readonly #fds: number;

  constructor() {
    // The event loop opens its own at the first use.
    new VfioUserServer({ path: this.#folder.path('first'), device: new ExampleDevice() }).close();
    this.#fds = openFds();
  }

  /** Has `closer` called at the end, the last one first. */
  later(closer: () => void): void {
    this.#closers.push(closer);
  }

  serve(
    device = new ExampleDevice(),
    options: Partial<VfioUserServerOptions> = {},
  ): { server: VfioUserServer; device: ExampleDevice; path: string } {
    const path = this.#folder.path('device');
    const server = new VfioUserServer({ path, device, ...options });
    this.later(() => server.close());
    return { server, device, path };
  }

  async connect(
    path: string,
    memory = new Uint8Array(GUEST_BYTES),
    onEnd: (reason: string) => void = () => {},
  ): Promise<VfioUserClient> {
    const client = await VfioUserClient.connect({ path, memory: new ArrayMemory(memory), onEnd });
    this.later(() => client.close());
    return client;
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).toReversed()) close();
    this.#folder.remove();
    await until(() => openFds() === this.#fds, 'as many descriptors as before');
  }
}

/** Four bytes, little-endian. */
export function word(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

/** Quicker than comparing long arrays by an assertion. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

export async function readRegister(client: VfioUserClient, offset: number): Promise<number> {
  const bytes = await client.readRegion(0, offset, 4);
  return new DataView(bytes.buffer).getUint32(0, true);
}

/** Sets Memory Space Enable and Bus Master Enable. */
export function enableBusMaster(client: VfioUserClient): Promise<void> {
  return client.writeRegion(REGION_CONFIG, 4, word(6));
}

export async function startDma(
  client: VfioUserClient,
  command: number,
  address: number,
  bytes: number,
): Promise<void> {
  await client.writeRegion(0, ExampleRegister.DMA_ADDRESS, word(address));
  await client.writeRegion(0, ExampleRegister.DMA_LENGTH, word(bytes));
  await client.writeRegion(0, ExampleRegister.COMMAND, word(command));
}

/** The status of the transfer once it has ended. */
export async function dmaStatus(client: VfioUserClient): Promise<number> {
  let status = 2;
  while (status === 2) status = await readRegister(client, ExampleRegister.STATUS);
  return status;
}
