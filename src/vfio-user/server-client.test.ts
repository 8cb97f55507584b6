/** Server and client over a real unix socket, in one process. */
import { closeSync, writeSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  DMA_TO_GUEST,
  EXAMPLE_ID,
  EXAMPLE_MEMORY_BYTES,
  ExampleDevice,
  type ExampleDeviceOptions,
  ExampleRegister,
} from '#testkit/vfio-user-device';
import {
  enableBusMaster,
  GUEST_BYTES,
  readRegister,
  sameBytes,
  ServedPair,
  startDma,
  WHOLE_GUEST,
  word,
} from '#testkit/vfio-user-pair';
import { until } from '#testkit/vfio-user-rig';
import { IRQ_INTX, IRQ_MSI } from './irq-info.ts';
import { Errno } from './refusal.ts';
import { REGION_CONFIG } from './region-info.ts';
import { createMemoryFile } from './system-fds.ts';

let pair: ServedPair;
beforeEach(() => {
  pair = new ServedPair();
});
afterEach(() => pair.close());

describe('a client', () => {
  test('finds regions and interrupts as the device has them', async () => {
    const client = await pair.connect(pair.serve().path);
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
    const { device, path } = pair.serve();
    const client = await pair.connect(path);
    expect(await readRegister(client, ExampleRegister.ID)).toBe(EXAMPLE_ID);
    await client.writeRegion(0, ExampleRegister.SCRATCH, word(0x1234_5678));
    expect(await readRegister(client, ExampleRegister.SCRATCH)).toBe(0x1234_5678);
    const id = await client.readRegion(REGION_CONFIG, 0, 4);
    expect(Buffer.from(id).toString('hex')).toBe('3412feca');
    // All of it in one message.
    const bytes = new Uint8Array(EXAMPLE_MEMORY_BYTES).map((_, at) => at * 7);
    await client.writeRegion(2, 0, bytes);
    expect(sameBytes(device.memory, bytes)).toBe(true);
    expect(sameBytes(await client.readRegion(2, 0, EXAMPLE_MEMORY_BYTES), bytes)).toBe(true);
  });

  test('is told why an access is refused', async () => {
    const client = await pair.connect(pair.serve().path);
    await expect(client.readRegion(0, 4094, 4)).rejects.toMatchObject({
      code: 'invalid_argument',
      details: { errno: Errno.EINVAL },
    });
    await expect(client.readRegion(1, 0, 4)).rejects.toMatchObject({ code: 'invalid_argument' });
  });

  test('resets the device', async () => {
    const { device, path } = pair.serve();
    const client = await pair.connect(path);
    await client.writeRegion(0, ExampleRegister.SCRATCH, word(1));
    await client.reset();
    expect(device.events).toContain('reset');
    expect(await readRegister(client, ExampleRegister.SCRATCH)).toBe(0);
  });

  test('is turned away while another is there, and not afterwards', async () => {
    const { server, path } = pair.serve();
    const first = await pair.connect(path);
    await expect(pair.connect(path)).rejects.toThrow(/closed|ECONNRESET/);
    expect(server.turnedAway).toBe(1);
    first.close();
    await until(() => server.session === undefined, 'the first one has gone');
    await pair.connect(path);
  });
});

test('a region that the server shares is the memory of the device', async () => {
  const fd = createMemoryFile('bar2', EXAMPLE_MEMORY_BYTES, true);
  pair.later(() => closeSync(fd));
  const options: ExampleDeviceOptions = {
    shared: { fd, fileOffset: 0, areas: [{ offset: 4096, sizeBytes: 8192 }] },
  };
  const client = await pair.connect(pair.serve(new ExampleDevice(options)).path);
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
    const { path } = pair.serve();
    const client = await pair.connect(path);
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
    expect(await readRegister(client, ExampleRegister.ID)).toBe(EXAMPLE_ID);
    expect(got).toHaveLength(2);
  });

  test('an interrupt comes after the write by messages that came before it', async () => {
    const { device, path } = pair.serve();
    const guest = new Uint8Array(GUEST_BYTES);
    const client = await pair.connect(path, guest);
    await client.mapMemory(WHOLE_GUEST);
    await enableBusMaster(client);
    await client.writeRegion(REGION_CONFIG, 0x42, Uint8Array.of(1, 0));
    device.memory.fill(0x77);
    const seen: (number | undefined)[] = [];
    await client.enableIrqs(IRQ_MSI, 4, () => seen.push(guest[GUEST_BYTES - 1]));
    await startDma(client, DMA_TO_GUEST, 0, GUEST_BYTES);
    await until(() => seen.length > 0, 'the interrupt at the end');
    expect(seen[0]).toBe(0x77);
  });

  test('INTx fires once, and again at unmask while it is asserted', async () => {
    const { path } = pair.serve();
    const client = await pair.connect(path);
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
    const { server, device, path } = pair.serve();
    const client = await pair.connect(path);
    await client.mapMemory(WHOLE_GUEST);
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
    const { server, path } = pair.serve();
    let reason = '';
    const client = await pair.connect(path, undefined, (why) => {
      reason = why;
    });
    const held = client.readRegion(0, ExampleRegister.HOLD, 4);
    // Seen by the server before it closes.
    await readRegister(client, 0);
    server.close();
    await expect(held).rejects.toMatchObject({ code: 'unavailable' });
    expect(reason).toBe('the peer closed the connection');
    await expect(client.readRegion(0, 0, 4)).rejects.toMatchObject({ code: 'unavailable' });
  });
});

test('a read that is not answered is all ones, and its late answer is dropped', async () => {
  const { server, device, path } = pair.serve(new ExampleDevice(), { accessTimeoutMs: 20 });
  const client = await pair.connect(path);
  expect(await client.readRegion(0, ExampleRegister.HOLD, 4)).toEqual(new Uint8Array(4).fill(255));
  device.held[0]!.complete(0 as never, Uint8Array.of(1, 2, 3, 4));
  expect(await readRegister(client, ExampleRegister.ID)).toBe(EXAMPLE_ID);
  expect(server.counters).toMatchObject({ expired: 1, late: 1 });
});
