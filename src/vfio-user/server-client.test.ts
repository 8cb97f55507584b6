/** Server and client over a real unix socket, in one process. */
import { closeSync, readSync, writeSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  DMA_FROM_GUEST,
  DMA_TO_GUEST,
  EXAMPLE_ID,
  EXAMPLE_MEMORY_BYTES,
  ExampleDevice,
  type ExampleDeviceOptions,
  ExampleRegister,
  STATUS_DONE,
  STATUS_ERROR,
} from '#testkit/vfio-user-device';
import { openFds, socketFolder, until } from '#testkit/vfio-user-rig';
import { ArrayMemory } from './client-memory.ts';
import { VfioUserClient } from './client.ts';
import { IRQ_INTX, IRQ_MSI } from './irq-info.ts';
import { Errno } from './refusal.ts';
import { REGION_CONFIG } from './region-info.ts';
import { VfioUserServer, type VfioUserServerOptions } from './server.ts';
import { createMemoryFile } from './system-fds.ts';

const GUEST_BYTES = 1 << 20;

let folder: ReturnType<typeof socketFolder>;
let fdsBefore: number;
const closers: (() => void)[] = [];

beforeEach(() => {
  folder = socketFolder();
  // The event loop opens its own at the first use.
  const path = folder.path('first');
  new VfioUserServer({ path, device: new ExampleDevice() }).close();
  fdsBefore = openFds();
});

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) close();
  folder.remove();
  await until(() => openFds() === fdsBefore, `as many descriptors as before: ${openFds()}`);
});

function serve(
  device = new ExampleDevice(),
  options: Partial<VfioUserServerOptions> = {},
): { server: VfioUserServer; device: ExampleDevice; path: string } {
  const path = folder.path('device');
  const server = new VfioUserServer({ path, device, ...options });
  closers.push(() => server.close());
  return { server, device, path };
}

async function connect(
  path: string,
  memory = new Uint8Array(GUEST_BYTES),
  onEnd?: (reason: string) => void,
): Promise<VfioUserClient> {
  const end = onEnd === undefined ? {} : { onEnd };
  const client = await VfioUserClient.connect({ path, memory: new ArrayMemory(memory), ...end });
  closers.push(() => client.close());
  return client;
}

/** Quicker than `toEqual` for long arrays. */
function same(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

function word(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

async function register(client: VfioUserClient, offset: number): Promise<number> {
  const bytes = await client.readRegion(0, offset, 4);
  return new DataView(bytes.buffer).getUint32(0, true);
}

async function startDma(client: VfioUserClient, command: number, address: number, bytes: number) {
  await client.writeRegion(0, ExampleRegister.DMA_ADDRESS, word(address));
  await client.writeRegion(0, ExampleRegister.DMA_LENGTH, word(bytes));
  await client.writeRegion(0, ExampleRegister.COMMAND, word(command));
}

async function dmaStatus(client: VfioUserClient): Promise<number> {
  let status = 2;
  while (status === 2) status = await register(client, ExampleRegister.STATUS);
  return status;
}

const busMaster = (client: VfioUserClient) => client.writeRegion(REGION_CONFIG, 4, word(6));
const all = { address: 0, sizeBytes: GUEST_BYTES, fileOffset: 0, readable: true, writable: true };

describe('a client', () => {
  test('finds regions and interrupts as the device has them', async () => {
    const client = await connect(serve().path);
    expect(client.device).toMatchObject({
      resettable: true,
      irqs: [1, 4, 0, 0, 1],
      writeMultiple: true,
    });
    expect(client.device.regions.map(({ sizeBytes }) => sizeBytes)).toEqual([
      4096,
      0,
      EXAMPLE_MEMORY_BYTES,
      0,
      4096,
      0,
      0,
      4096,
      0,
    ]);
  });

  test('reads and writes registers, memory and configuration space', async () => {
    const { device, path } = serve();
    const client = await connect(path);
    expect(await register(client, ExampleRegister.ID)).toBe(EXAMPLE_ID);
    await client.writeRegion(0, ExampleRegister.SCRATCH, word(0x1234_5678));
    expect(await register(client, ExampleRegister.SCRATCH)).toBe(0x1234_5678);
    const id = await client.readRegion(REGION_CONFIG, 0, 4);
    expect(Buffer.from(id).toString('hex')).toBe('3412feca');
    // All of it in one message.
    const bytes = new Uint8Array(EXAMPLE_MEMORY_BYTES).map((_, at) => at * 7);
    await client.writeRegion(2, 0, bytes);
    expect(same(device.memory, bytes)).toBe(true);
    expect(same(await client.readRegion(2, 0, EXAMPLE_MEMORY_BYTES), bytes)).toBe(true);
  });

  test('is told why an access is refused', async () => {
    const client = await connect(serve().path);
    await expect(client.readRegion(0, 4094, 4)).rejects.toMatchObject({
      code: 'invalid_argument',
      details: { errno: Errno.EINVAL },
    });
    await expect(client.readRegion(1, 0, 4)).rejects.toMatchObject({ code: 'invalid_argument' });
  });

  test('resets the device', async () => {
    const { device, path } = serve();
    const client = await connect(path);
    await client.writeRegion(0, ExampleRegister.SCRATCH, word(1));
    await client.reset();
    expect(device.events).toContain('reset');
    expect(await register(client, ExampleRegister.SCRATCH)).toBe(0);
  });

  test('is turned away while another is there, and not afterwards', async () => {
    const { server, path } = serve();
    const first = await connect(path);
    await expect(connect(path)).rejects.toThrow(/closed|ECONNRESET/);
    expect(server.turnedAway).toBe(1);
    first.close();
    await until(() => server.session === undefined, 'the first one has gone');
    await connect(path);
  });
});

describe('DMA by messages', () => {
  test('both ways, in as many messages as the largest needs', async () => {
    const device = new ExampleDevice();
    const { path } = serve(device, { maxDataXferBytes: 4096 });
    const guest = new Uint8Array(GUEST_BYTES).map((_, at) => at * 13);
    const client = await connect(path, guest);
    await client.mapMemory(all);
    await busMaster(client);
    await startDma(client, DMA_FROM_GUEST, 0x1001, 100_000);
    expect(await dmaStatus(client)).toBe(STATUS_DONE);
    expect(same(device.memory.subarray(0, 100_000), guest.subarray(0x1001, 0x1001 + 100_000))).toBe(
      true,
    );
    device.memory.fill(0x5a);
    await startDma(client, DMA_TO_GUEST, 0x2003, 70_001);
    expect(await dmaStatus(client)).toBe(STATUS_DONE);
    expect(guest.subarray(0x2003, 0x2003 + 70_001).every((byte) => byte === 0x5a)).toBe(true);
    expect(guest[0x2002]).toBe((0x2002 * 13) & 0xff);
    expect(guest[0x2003 + 70_001]).toBe(((0x2003 + 70_001) * 13) & 0xff);
  });

  test('outside what is lent fails, and so it does once it is taken back', async () => {
    const { path } = serve();
    const client = await connect(path);
    await busMaster(client);
    await startDma(client, DMA_TO_GUEST, 0, 4096);
    expect(await dmaStatus(client)).toBe(STATUS_ERROR + Errno.EFAULT);
    await client.mapMemory({ ...all, writable: false });
    await startDma(client, DMA_TO_GUEST, 0, 4096);
    expect(await dmaStatus(client)).toBe(STATUS_ERROR + Errno.EPERM);
    await startDma(client, DMA_FROM_GUEST, GUEST_BYTES - 4095, 4096);
    expect(await dmaStatus(client)).toBe(STATUS_ERROR + Errno.EFAULT);
    await client.unmapMemory(0, GUEST_BYTES);
    await startDma(client, DMA_FROM_GUEST, 0, 4096);
    expect(await dmaStatus(client)).toBe(STATUS_ERROR + Errno.EFAULT);
  });
});

describe('shared memory', () => {
  const kinds = [
    { sealed: true, access: 'mapped' },
    { sealed: false, access: 'file' },
  ] as const;
  test.each(kinds)('$access: DMA both ways without a message', async ({ sealed, access }) => {
    const { device, path } = serve();
    const client = await connect(path);
    const fd = createMemoryFile('guest', GUEST_BYTES + 4096, sealed);
    closers.push(() => closeSync(fd));
    const guest = Uint8Array.from({ length: 8192 }, (_, at) => at * 3);
    writeSync(fd, guest, 0, guest.length, 4096);
    await client.mapMemory({ ...all, address: 0x1_0000_0000, fileOffset: 4096 }, fd);
    expect(device.regions.map((region) => region.access)).toEqual([access]);
    await busMaster(client);
    await client.writeRegion(0, ExampleRegister.DMA_ADDRESS + 4, word(1));
    await startDma(client, DMA_FROM_GUEST, 0, 8192);
    expect(await dmaStatus(client)).toBe(STATUS_DONE);
    expect(same(device.memory.subarray(0, 8192), guest)).toBe(true);
    device.memory.fill(0xa5);
    await startDma(client, DMA_TO_GUEST, 0x100, 0x200);
    expect(await dmaStatus(client)).toBe(STATUS_DONE);
    const back = new Uint8Array(0x201);
    readSync(fd, back, 0, 0x201, 4096 + 0x100);
    expect(back.subarray(0, 0x200).every((byte) => byte === 0xa5)).toBe(true);
    expect(back[0x200]).toBe((0x300 * 3) & 0xff);
  });

  test('is out of reach once it is taken back, even through arrays of it', async () => {
    const { device, path } = serve();
    const client = await connect(path);
    const fd = createMemoryFile('guest', GUEST_BYTES, true);
    closers.push(() => closeSync(fd));
    writeSync(fd, Uint8Array.of(42), 0, 1, 0);
    await client.mapMemory(all, fd);
    const [window] = [...device.regions[0]!.windows()];
    expect(window!.bytes[0]).toBe(42);
    await client.unmapMemory(0, GUEST_BYTES);
    expect(window!.bytes[0]).toBe(0);
    window!.bytes.fill(0xff);
    const back = new Uint8Array(2);
    readSync(fd, back, 0, 2, 0);
    expect(back).toEqual(Uint8Array.of(42, 0));
  });

  test('lent for reading alone cannot be changed through arrays of it', async () => {
    const { device, path } = serve();
    const client = await connect(path);
    const fd = createMemoryFile('guest', GUEST_BYTES, true);
    closers.push(() => closeSync(fd));
    await client.mapMemory({ ...all, writable: false }, fd);
    writeSync(fd, Uint8Array.of(7), 0, 1, 0);
    const [window] = [...device.regions[0]!.windows()];
    expect(window!.bytes[0]).toBe(7);
    window!.bytes[1] = 9;
    const back = new Uint8Array(2);
    readSync(fd, back, 0, 2, 0);
    expect(back).toEqual(Uint8Array.of(7, 0));
  });
});

test('a region that the server shares is the memory of the device', async () => {
  const fd = createMemoryFile('bar2', EXAMPLE_MEMORY_BYTES, true);
  closers.push(() => closeSync(fd));
  const options: ExampleDeviceOptions = {
    shared: { fd, fileOffset: 0, areas: [{ offset: 4096, sizeBytes: 8192 }] },
  };
  const client = await connect(serve(new ExampleDevice(options)).path);
  expect(client.device.regions[2]).toMatchObject({
    mmap: true,
    areas: [{ offset: 4096, sizeBytes: 8192 }],
  });
  const mapped = client.mapRegion(2, 4096, 8192);
  writeSync(fd, Uint8Array.of(1, 2, 3), 0, 3, 4096);
  expect(mapped.windows[0]!.subarray(0, 4)).toEqual(Uint8Array.of(1, 2, 3, 0));
  mapped.release();
});

describe('interrupts', () => {
  test('MSI come by vector, until they are let go of', async () => {
    const { path } = serve();
    const client = await connect(path);
    const got: number[] = [];
    await client.enableIrqs(IRQ_MSI, 4, (vector) => got.push(vector));
    // MSI enable, bit 0 of message control at the capability plus 2: the first one, 0x40.
    await client.writeRegion(REGION_CONFIG, 0x42, Uint8Array.of(1, 0));
    await client.writeRegion(0, ExampleRegister.RAISE, word(3));
    await until(() => got.length === 1, 'an interrupt');
    await client.writeRegion(0, ExampleRegister.RAISE, word(1));
    await until(() => got.length === 2, 'another');
    expect(got).toEqual([3, 1]);
    await client.disableIrqs(IRQ_MSI);
    await client.writeRegion(0, ExampleRegister.RAISE, word(3));
    expect(await register(client, ExampleRegister.ID)).toBe(EXAMPLE_ID);
    expect(got).toHaveLength(2);
  });

  test('an interrupt comes after the write by messages that came before it', async () => {
    const { device, path } = serve();
    const guest = new Uint8Array(GUEST_BYTES);
    const client = await connect(path, guest);
    await client.mapMemory(all);
    await busMaster(client);
    await client.writeRegion(REGION_CONFIG, 0x42, Uint8Array.of(1, 0));
    device.memory.fill(0x77);
    const seen: (number | undefined)[] = [];
    await client.enableIrqs(IRQ_MSI, 4, () => seen.push(guest[GUEST_BYTES - 1]));
    await startDma(client, DMA_TO_GUEST, 0, GUEST_BYTES);
    await until(() => seen.length > 0, 'the interrupt at the end');
    expect(seen[0]).toBe(0x77);
  });

  test('INTx fires once, and again at unmask while it is asserted', async () => {
    const { path } = serve();
    const client = await connect(path);
    let fired = 0;
    await client.enableIrqs(IRQ_INTX, 1, () => fired++);
    await client.writeRegion(0, ExampleRegister.INTX, word(1));
    await until(() => fired === 1, 'INTx');
    await client.unmaskIntx();
    await until(() => fired === 2, 'INTx again');
    await client.writeRegion(0, ExampleRegister.INTX, word(0));
    await client.unmaskIntx();
    await client.writeRegion(0, ExampleRegister.INTX, word(1));
    await until(() => fired === 3, 'INTx the third time');
  });
});

describe('an end', () => {
  test('of the client takes memory and interrupts from the device', async () => {
    const { server, device, path } = serve();
    const client = await connect(path);
    await client.mapMemory(all);
    await client.enableIrqs(IRQ_MSI, 4, () => {});
    client.close();
    await until(() => server.session === undefined, 'the session ends');
    expect(device.events).toEqual([
      'attached',
      'added 0x0 message',
      'removed 0x0',
      'detached: the peer closed the connection',
    ]);
    expect(device.regions).toEqual([]);
  });

  test('of the server fails what the client waits for', async () => {
    const { server, path } = serve();
    let reason = '';
    const client = await connect(path, undefined, (why) => {
      reason = why;
    });
    const held = client.readRegion(0, ExampleRegister.HOLD, 4);
    // Seen by the server before it closes.
    await register(client, 0);
    server.close();
    await expect(held).rejects.toMatchObject({ code: 'unavailable' });
    expect(reason).toBe('the peer closed the connection');
    await expect(client.readRegion(0, 0, 4)).rejects.toMatchObject({ code: 'unavailable' });
  });
});

test('a read that is not answered is all ones, and its late answer is dropped', async () => {
  const { server, device, path } = serve(new ExampleDevice(), { accessTimeoutMs: 20 });
  const client = await connect(path);
  expect(await client.readRegion(0, ExampleRegister.HOLD, 4)).toEqual(new Uint8Array(4).fill(255));
  device.held[0]!.complete(0 as never, Uint8Array.of(1, 2, 3, 4));
  expect(await register(client, ExampleRegister.ID)).toBe(EXAMPLE_ID);
  expect(server.counters).toMatchObject({ expired: 1, late: 1 });
});
