/** DMA_MAP and DMA_UNMAP, black box: bytes by hand from the specification. */
import { closeSync, ftruncateSync, openSync, readSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ExampleDevice } from '#testkit/vfio-user-device';
import { duplicateFd, hex, openFds, SessionRig, socketFolder } from '#testkit/vfio-user-rig';
import type { Message } from './message.ts';
import { type Done, Errno } from './refusal.ts';
import type { ServerOptions } from './server-options.ts';
import { createMemoryFile, systemFds } from './system-fds.ts';

let device: ExampleDevice;
let rig: SessionRig;
let before: number;

beforeEach(() => {
  before = openFds();
  start();
});

afterEach(() => {
  rig.end();
  expect(openFds()).toBe(before);
});

function start(options: ServerOptions = {}): void {
  device = new ExampleDevice();
  rig = new SessionRig(device, options).hello();
}

const HEADER = '0900 0200 30000000 00000000 00000000';

/** argsz 32; fields of eight bytes in order: file offset, address, size. */
function map(offset: number, address: number, size: number, flags = 3): Uint8Array {
  const bytes = Buffer.from(hex(`${HEADER} 20000000 00000000 ${'00'.repeat(24)}`));
  bytes.writeUInt32LE(flags, 20);
  bytes.writeBigUInt64LE(BigInt(offset), 24);
  bytes.writeBigUInt64LE(BigInt(address), 32);
  bytes.writeBigUInt64LE(BigInt(size), 40);
  return bytes;
}

function unmap(address: number, size: number, flags = 0): Uint8Array {
  const bytes = Buffer.from(
    hex(`0a00 0300 28000000 00000000 00000000  18000000 00000000 ${'00'.repeat(16)}`),
  );
  bytes.writeUInt32LE(flags, 20);
  bytes.writeBigUInt64LE(BigInt(address), 24);
  bytes.writeBigUInt64LE(BigInt(size), 32);
  return bytes;
}

function expectError(reply: Message, errno: number): void {
  expect(reply).toMatchObject({ flags: 0x21, errno });
  expect(reply.bytes).toHaveLength(16);
}

test('golden: a region of 64 KiB at 1 MiB, and its end', () => {
  const request = hex(`
    0900 0200 30000000 00000000 00000000  # id 9, DMA_MAP, 48 bytes, command
    20000000 03000000                     # argsz 32, readable and writable
    0000000000000000                      # file offset 0
    0000100000000000 0000010000000000     # address 0x10_0000, size 0x1_0000
  `);
  expect(Buffer.from(rig.ask(request).bytes)).toEqual(
    Buffer.from(hex('0900 0200 10000000 01000000 00000000')),
  );
  expect(device.events).toEqual(['attached', 'added 0x100000 message']);
  const end = hex(`
    0a00 0300 28000000 00000000 00000000  # id 10, DMA_UNMAP, 40 bytes
    18000000 00000000                     # argsz 24, no flags
    0000100000000000 0000010000000000
  `);
  // The reply repeats the payload.
  expect(Buffer.from(rig.ask(end).bytes)).toEqual(
    Buffer.from(
      hex(`
        0a00 0300 28000000 01000000 00000000  18000000 00000000
        0000100000000000 0000010000000000
      `),
    ),
  );
  expect(device.events.slice(2)).toEqual(['removed 0x100000']);
});

test('all regions at once', () => {
  for (const address of [0, 0x1000, 0x9000]) rig.ask(map(0, address, 0x1000));
  expect(rig.ask(unmap(0, 0, 2)).flags).toBe(1);
  expect(device.regions).toEqual([]);
  expectError(rig.ask(unmap(0x1000, 0x1000, 2)), Errno.EINVAL);
});

const wrong: [string, Uint8Array, number][] = [
  [
    'too short',
    hex('0900 0200 2c000000 00000000 00000000 20000000' + '00'.repeat(24)),
    Errno.EINVAL,
  ],
  ['argsz too small', Buffer.from(map(0, 0, 4096)).fill(0x1f, 16, 17), Errno.EINVAL],
  ['no access', map(0, 0, 4096, 0), Errno.EINVAL],
  ['unknown flags', map(0, 0, 4096, 7), Errno.EINVAL],
  ['nothing', map(0, 0, 0), Errno.EINVAL],
  ['beyond 2^53', map(0, 2 ** 53 - 4096, 8192), Errno.EINVAL],
  ['all of it set', Buffer.from(map(0, 0, 0)).fill(0xff, 24, 48), Errno.EINVAL],
];

test.each(wrong)('DMA_MAP: %s', (_name, bytes, errno) => {
  const fd = createMemoryFile('m', 4096, true);
  expectError(rig.ask(bytes, [fd]), errno);
  expect(device.regions).toEqual([]);
});

test('over a region that is there: EEXIST, and the region stays', () => {
  rig.ask(map(0, 0x4000, 0x4000));
  for (const [address, size] of [
    [0x4000, 0x4000],
    [0x7000, 0x2000],
    [0x3000, 0x1001],
    [0, 0x10000],
    [0x5000, 0x1000],
  ] as const) {
    expectError(rig.ask(map(0, address, size)), Errno.EEXIST);
  }
  expect(rig.ask(map(0, 0x8000, 0x1000)).flags).toBe(1);
  expect(rig.ask(map(0, 0x3000, 0x1000)).flags).toBe(1);
});

test('more regions than are offered: ENOSPC', () => {
  start({ maxDmaMaps: 2 });
  rig.ask(map(0, 0, 4096));
  rig.ask(map(0, 4096, 4096));
  expectError(rig.ask(map(0, 8192, 4096)), Errno.ENOSPC);
});

test('DMA_UNMAP takes whole regions back: one, several, none', () => {
  for (const address of [0x1000, 0x4000, 0x8000]) rig.ask(map(0, address, 0x1000));
  // As QEMU does when a guest's IOMMU switches an address space.
  expect(rig.ask(unmap(0x3000, 0x8000)).flags).toBe(1);
  expect(device.regions.map(({ address }) => address)).toEqual([0x1000]);
  expect(rig.ask(unmap(0x3000, 0x8000)).flags).toBe(1);
  const half = Buffer.from(unmap(0, 4096));
  half.writeBigUInt64LE(2n ** 63n, 24);
  half.writeBigUInt64LE(2n ** 63n, 32);
  expect(rig.ask(half).flags).toBe(1);
  expect(device.regions).toHaveLength(1);
  half.writeBigUInt64LE(0n, 24);
  expect(rig.ask(half).flags).toBe(1);
  expect(device.regions).toEqual([]);
  half.writeBigUInt64LE(2n ** 63n + 1n, 24);
  expectError(rig.ask(half), Errno.EINVAL);
});

test('DMA_UNMAP that would cut a region: EINVAL, and nothing is taken back', () => {
  rig.ask(map(0, 0x4000, 0x4000));
  rig.ask(map(0, 0x1000, 0x1000));
  for (const [address, size] of [
    [0x4000, 0x2000],
    [0x5000, 0x1000],
    [0x5000, 0x3000],
    [0, 0x5000],
    [0x7fff, 1],
  ] as const) {
    expectError(rig.ask(unmap(address, size)), Errno.EINVAL);
  }
  expectError(rig.ask(unmap(0x4000, 0)), Errno.EINVAL);
  expectError(rig.ask(unmap(0x4000, 0x4000, 4)), Errno.EINVAL);
  expect(device.regions).toHaveLength(2);
});

test('the bitmap of dirty pages is declined: EOPNOTSUPP', () => {
  rig.ask(map(0, 0x4000, 0x4000));
  expectError(rig.ask(unmap(0x4000, 0x4000, 1)), Errno.EOPNOTSUPP);
});

test('descriptors that are no memory, too short, or not of whole pages: EINVAL', () => {
  const eventFd = systemFds.createEventFd().fd;
  expectError(rig.ask(map(0, 0, 4096), [eventFd]), Errno.EINVAL);
  expectError(rig.ask(map(0, 0, 4096), [openSync('/dev/null', 'r+')]), Errno.EINVAL);
  const file = (bytes: number) => createMemoryFile('m', bytes, true);
  expectError(rig.ask(map(0, 0, 8192), [file(4096)]), Errno.EINVAL);
  expectError(rig.ask(map(4096, 0, 4096), [file(4096)]), Errno.EINVAL);
  expectError(rig.ask(map(100, 0, 4096), [file(8192)]), Errno.EINVAL);
  expectError(rig.ask(map(0, 100, 4096), [file(8192)]), Errno.EINVAL);
  expectError(rig.ask(map(0, 0, 4095), [file(8192)]), Errno.EINVAL);
  expectError(rig.ask(map(0, 0, 4096), [file(4096), file(4096)]), Errno.EINVAL);
});

test('a file on a disk may become shorter: refused, but mapped where the client is trusted', () => {
  const folder = socketFolder();
  const path = folder.path('disk');
  const make = (): number => {
    const fd = openSync(path, 'w+');
    ftruncateSync(fd, 4096);
    return fd;
  };
  // Not in memory of the kernel, if the temporary folder is on a disk.
  const probe = make();
  const { inMemory } = systemFds.inspect(probe);
  closeSync(probe);
  if (!inMemory) expectError(rig.ask(map(0, 0, 4096), [make()]), Errno.EINVAL);
  rig.end();
  start({ unsealedMemory: 'map' });
  expect(rig.ask(map(0, 0, 4096), [make()]).flags).toBe(1);
  expect(device.regions[0]!.access).toBe('mapped');
  folder.remove();
});

test('a file that became shorter: the transfer fails, this process goes on', () => {
  const fd = createMemoryFile('m', 8192, false);
  const own = duplicateFd(fd);
  rig.ask(map(0, 0, 8192), [fd]);
  expect(device.regions[0]!.access).toBe('file');
  ftruncateSync(own, 0);
  let errno = 0;
  const done: Done = (_now, refused) => {
    errno = refused?.errno ?? 0;
  };
  const bytes = new Uint8Array(16);
  device.client!.dmaRead(0 as never, { address: 4096, bytes, at: 0, count: 16, done });
  expect(errno).toBe(Errno.EIO);
  closeSync(own);
});

test('many pieces of one file are mapped up to a bound; the others share one descriptor', () => {
  rig.end();
  start({ maxMappedRegions: 20 });
  const path = `/proc/self/fd/${createMemoryFile('m', 30 * 4096, true)}`;
  const fd = Number(path.split('/').at(-1));
  const during = openFds();
  for (let page = 0; page < 30; page++) {
    rig.give(map(page * 4096, page * 8192, 4096), [openSync(path, 'r+')]);
  }
  rig.port.sent.length = 0;
  expect(device.regions.filter(({ access }) => access === 'mapped')).toHaveLength(20);
  expect(device.regions.filter(({ access }) => access === 'file')).toHaveLength(10);
  expect(openFds()).toBe(during + 1);
  const last = device.regions.at(-1)!;
  let refused = true;
  const done: Done = (_now, why) => {
    refused = why !== undefined;
  };
  const { address } = last;
  device.client!.dmaWrite(0 as never, { address, bytes: Uint8Array.of(5), at: 0, count: 1, done });
  expect(refused).toBe(false);
  const back = new Uint8Array(1);
  readSync(fd, back, 0, 1, 29 * 4096);
  expect(back[0]).toBe(5);
  expect(rig.ask(unmap(0, 0, 2)).flags).toBe(1);
  closeSync(fd);
});

test('with NO_REPLY it is done in silence', () => {
  const bytes = map(0, 0, 4096);
  bytes[8] = 0x10;
  rig.give(bytes);
  expect(rig.port.sent).toEqual([]);
  rig.give(bytes);
  expect(rig.port.sent).toEqual([]);
  expect(rig.refusals).toHaveLength(1);
  expect(device.regions).toHaveLength(1);
});

test('a transfer that is under way ends with EFAULT at DMA_UNMAP, whose answer waits for nothing', () => {
  rig.ask(map(0, 0, 0x10_0000));
  const ends: (number | undefined)[] = [];
  const buffer = new Uint8Array(64);
  const done: Done = (_now, refused) => ends.push(refused?.errno);
  device.client!.dmaRead(0 as never, { address: 0, bytes: buffer, at: 0, count: 64, done });
  const request = rig.port.oneMessage();
  expect(request.command).toBe(11);
  expect(rig.ask(unmap(0, 0x10_0000)).flags).toBe(1);
  expect(ends).toEqual([Errno.EFAULT]);
  // The late answer is for nobody, and no fault.
  rig.give(
    hex(`0000 0b00 60000000 01000000 00000000  0000000000000000 4000000000000000
         ${'ee'.repeat(64)}`),
  );
  expect(buffer).toEqual(new Uint8Array(64));
  expect(rig.ends).toEqual([]);
});

test('regions above 1 GiB are mapped in windows', () => {
  const size = 2 ** 30 + 8192;
  const fd = createMemoryFile('big', size, true);
  const own = duplicateFd(fd);
  rig.ask(map(0, 0x1_0000_0000, size), [fd]);
  const windows = [...device.regions[0]!.windows()];
  expect(windows.map(({ address, bytes }) => [address, bytes.length])).toEqual([
    [0x1_0000_0000, 2 ** 30],
    [0x1_4000_0000, 8192],
  ]);
  // Across the boundary of the two.
  let refused = true;
  const data = Uint8Array.of(1, 2, 3, 4);
  const done: Done = (_now, why) => {
    refused = why !== undefined;
  };
  const address = 0x1_3fff_fffe;
  device.client!.dmaWrite(0 as never, { address, bytes: data, at: 0, count: 4, done });
  expect(refused).toBe(false);
  const back = new Uint8Array(4);
  readSync(own, back, 0, 4, 2 ** 30 - 2);
  expect(back).toEqual(data);
  closeSync(own);
});
