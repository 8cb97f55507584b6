/** DMA of a served device, by messages and in shared memory, over a real unix socket. */
import { closeSync, readSync, writeSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  DMA_FROM_GUEST,
  DMA_TO_GUEST,
  ExampleDevice,
  ExampleRegister,
  STATUS_DONE,
  STATUS_ERROR,
} from '#testkit/vfio-user-device';
import {
  dmaStatus,
  enableBusMaster,
  GUEST_BYTES,
  sameBytes,
  ServedPair,
  startDma,
  WHOLE_GUEST,
  word,
} from '#testkit/vfio-user-pair';
import { Errno } from './refusal.ts';
import { createMemoryFile } from './system-fds.ts';

let pair: ServedPair;
beforeEach(() => {
  pair = new ServedPair();
});
afterEach(() => pair.close());

describe('DMA by messages', () => {
  test('both ways, in as many messages as the largest needs', async () => {
    const device = new ExampleDevice();
    const { path } = pair.serve(device, { maxDataXferBytes: 4096 });
    const guest = new Uint8Array(GUEST_BYTES).map((_, at) => at * 13);
    const client = await pair.connect(path, guest);
    await client.mapMemory(WHOLE_GUEST);
    await enableBusMaster(client);
    await startDma(client, DMA_FROM_GUEST, 0x1001, 100_000);
    expect(await dmaStatus(client)).toBe(STATUS_DONE);
    expect(
      sameBytes(device.memory.subarray(0, 100_000), guest.subarray(0x1001, 0x1001 + 100_000)),
    ).toBe(true);
    device.memory.fill(0x5a);
    await startDma(client, DMA_TO_GUEST, 0x2003, 70_001);
    expect(await dmaStatus(client)).toBe(STATUS_DONE);
    expect(guest.subarray(0x2003, 0x2003 + 70_001).every((byte) => byte === 0x5a)).toBe(true);
    expect(guest[0x2002]).toBe((0x2002 * 13) & 0xff);
    expect(guest[0x2003 + 70_001]).toBe(((0x2003 + 70_001) * 13) & 0xff);
  });

  test('outside what is lent fails, and so it does once it is taken back', async () => {
    const { path } = pair.serve();
    const client = await pair.connect(path);
    await enableBusMaster(client);
    await startDma(client, DMA_TO_GUEST, 0, 4096);
    expect(await dmaStatus(client)).toBe(STATUS_ERROR + Errno.EFAULT);
    await client.mapMemory({ ...WHOLE_GUEST, writable: false });
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
    const { device, path } = pair.serve();
    const client = await pair.connect(path);
    const fd = createMemoryFile('guest', GUEST_BYTES + 4096, sealed);
    pair.later(() => closeSync(fd));
    const guest = Uint8Array.from({ length: 8192 }, (_, at) => at * 3);
    writeSync(fd, guest, 0, guest.length, 4096);
    await client.mapMemory({ ...WHOLE_GUEST, address: 0x1_0000_0000, fileOffset: 4096 }, fd);
    expect(device.regions.map((region) => region.access)).toEqual([access]);
    await enableBusMaster(client);
    await client.writeRegion(0, ExampleRegister.DMA_ADDRESS + 4, word(1));
    await startDma(client, DMA_FROM_GUEST, 0, 8192);
    expect(await dmaStatus(client)).toBe(STATUS_DONE);
    expect(sameBytes(device.memory.subarray(0, 8192), guest)).toBe(true);
    device.memory.fill(0xa5);
    await startDma(client, DMA_TO_GUEST, 0x100, 0x200);
    expect(await dmaStatus(client)).toBe(STATUS_DONE);
    const back = new Uint8Array(0x201);
    readSync(fd, back, 0, 0x201, 4096 + 0x100);
    expect(back.subarray(0, 0x200).every((byte) => byte === 0xa5)).toBe(true);
    expect(back[0x200]).toBe((0x300 * 3) & 0xff);
  });

  test('is out of reach once it is taken back, even through arrays of it', async () => {
    const { device, path } = pair.serve();
    const client = await pair.connect(path);
    const fd = createMemoryFile('guest', GUEST_BYTES, true);
    pair.later(() => closeSync(fd));
    writeSync(fd, Uint8Array.of(42), 0, 1, 0);
    await client.mapMemory(WHOLE_GUEST, fd);
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
    const { device, path } = pair.serve();
    const client = await pair.connect(path);
    const fd = createMemoryFile('guest', GUEST_BYTES, true);
    pair.later(() => closeSync(fd));
    await client.mapMemory({ ...WHOLE_GUEST, writable: false }, fd);
    writeSync(fd, Uint8Array.of(7), 0, 1, 0);
    const [window] = [...device.regions[0]!.windows()];
    expect(window!.bytes[0]).toBe(7);
    window!.bytes[1] = 9;
    const back = new Uint8Array(2);
    readSync(fd, back, 0, 2, 0);
    expect(back).toEqual(Uint8Array.of(7, 0));
  });
});
