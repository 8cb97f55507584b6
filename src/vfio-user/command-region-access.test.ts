/** REGION_READ, REGION_WRITE, REGION_WRITE_MULTI and DEVICE_RESET, black box: bytes by hand. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Nanos } from '#base/units';
import { ExampleDevice, ExampleRegister } from '#testkit/vfio-user-device';
import { hex, SessionRig } from '#testkit/vfio-user-rig';
import type { Message } from './message.ts';
import { Errno } from './refusal.ts';
import { encodeRegionWriteMulti } from './region-access.ts';
import type { ServerOptions } from './server-options.ts';

const NOW = 0 as Nanos;
let device: ExampleDevice;
let rig: SessionRig;

beforeEach(() => start());

function start(options: ServerOptions = {}, made = new ExampleDevice()): void {
  device = made;
  rig = new SessionRig(device, options).hello();
}

function read(region: number, offset: number, count: number, id = 6): Uint8Array {
  const bytes = Buffer.from(hex(`0600 0900 20000000 00000000 00000000 ${'00'.repeat(16)}`));
  bytes.writeUInt16LE(id, 0);
  bytes.writeBigUInt64LE(BigInt(offset), 16);
  bytes.writeUInt32LE(region, 24);
  bytes.writeUInt32LE(count, 28);
  return bytes;
}

function write(region: number, offset: number, data: Uint8Array, count = data.length): Uint8Array {
  const bytes = Buffer.concat([read(region, offset, count), data]);
  bytes.writeUInt16LE(10, 2);
  bytes.writeUInt32LE(bytes.length, 4);
  return bytes;
}

function expectError(reply: Message, errno = Errno.EINVAL as number): void {
  expect(reply).toMatchObject({ flags: 0x21, errno });
  expect(reply.bytes).toHaveLength(16);
}

test('golden: the identifier of the device, read', () => {
  const request = hex(`
    0600 0900 20000000 00000000 00000000
    0000000000000000 00000000 04000000    # offset 0 of region 0, 4 bytes
  `);
  expect(Buffer.from(read(0, 0, 4))).toEqual(Buffer.from(request));
  expect(Buffer.from(rig.ask(request).bytes)).toEqual(
    Buffer.from(
      hex('0600 0900 24000000 01000000 00000000  0000000000000000 00000000 04000000  0100dad0'),
    ),
  );
});

test('golden: three bytes of device memory, written', () => {
  const request = hex(`
    0600 0a00 23000000 00000000 00000000
    0500000000000000 02000000 03000000 aabbcc
  `);
  expect(Buffer.from(rig.ask(request).bytes)).toEqual(
    Buffer.from(hex('0600 0a00 20000000 01000000 00000000  0500000000000000 02000000 03000000')),
  );
  expect(Buffer.from(device.memory.subarray(4, 9))).toEqual(Buffer.from(hex('00aabbcc00')));
});

test('golden: two writes in one message', () => {
  const request = hex(`
    0600 0f00 48000000 00000000 00000000
    0200000000000000
    0000000000000000 02000000 04000000 0102030400000000
    0800000000000000 02000000 08000000 1112131415161718
  `);
  const writes = [
    { region: 2, offset: 0, count: 4, bytes: hex('01020304') },
    { region: 2, offset: 8, count: 8, bytes: hex('1112131415161718') },
  ];
  expect(Buffer.from(encodeRegionWriteMulti(6, writes))).toEqual(Buffer.from(request));
  expect(Buffer.from(rig.ask(request).bytes)).toEqual(
    Buffer.from(hex('0600 0f00 18000000 01000000 00000000  0200000000000000')),
  );
  expect(Buffer.from(device.memory.subarray(0, 16))).toEqual(
    Buffer.from(hex('01020304000000001112131415161718')),
  );
});

test('golden: a reset', () => {
  expect(Buffer.from(rig.ask(hex('0700 0d00 10000000 00000000 00000000')).bytes)).toEqual(
    Buffer.from(hex('0700 0d00 10000000 01000000 00000000')),
  );
  expect(device.events).toEqual(['attached', 'reset']);
  expectError(rig.ask(hex('0700 0d00 14000000 00000000 00000000 00000000')));
});

test('the whole of a region, and its last byte', () => {
  expect(rig.ask(read(0, 0, 4096)).bytes).toHaveLength(32 + 4096);
  expect(rig.ask(read(0, 4095, 1)).bytes).toHaveLength(33);
});

const outside: [string, number, number, number][] = [
  ['one byte beyond', 0, 4096, 1],
  ['across the end', 0, 4093, 4],
  ['far beyond', 0, Number.MAX_SAFE_INTEGER - 8, 4],
  ['a region of no size', 1, 0, 4],
  ['a region there is not', 9, 0, 4],
  ['another such', 0xffff_ffff, 0, 4],
  ['nothing', 0, 0, 0],
  ['more than the largest', 2, 0, (1 << 20) + 1],
];
test.each(outside)('%s: EINVAL, read and written', (_name, region, offset, count) => {
  expectError(rig.ask(read(region, offset, count)));
  expectError(rig.ask(write(region, offset, new Uint8Array(Math.min(count, 64)), count)));
});

test('an offset beyond 2^53: EINVAL', () => {
  const bytes = read(0, 0, 4);
  bytes.fill(0xff, 16, 24);
  expectError(rig.ask(bytes));
});

test('lengths that do not fit what is said: EINVAL', () => {
  const long = Buffer.concat([read(0, 0, 4), Buffer.alloc(4)]);
  long.writeUInt32LE(long.length, 4);
  expectError(rig.ask(long));
  expectError(rig.ask(write(2, 0, new Uint8Array(4), 5)));
  expectError(rig.ask(write(2, 0, new Uint8Array(4), 3)));
  expectError(rig.ask(hex('0600 0900 18000000 00000000 00000000 0000000000000000')));
  // Nothing of the refused writes was done.
  expect(device.memory.subarray(0, 8)).toEqual(new Uint8Array(8));
});

test('several writes, one of them wrong: none is done', () => {
  for (const bad of [
    { region: 2, offset: 1 << 20, count: 4, bytes: new Uint8Array(4) },
    { region: 9, offset: 0, count: 4, bytes: new Uint8Array(4) },
  ]) {
    const good = { region: 2, offset: 0, count: 1, bytes: Uint8Array.of(1) };
    expectError(rig.ask(encodeRegionWriteMulti(6, [good, bad])));
  }
  const counted = encodeRegionWriteMulti(6, [
    { region: 2, offset: 0, count: 8, bytes: new Uint8Array(8).fill(1) },
  ]);
  for (const [at, value] of [
    [16, 2], // two writes, room for one
    [16, 0],
    [23, 0xff],
    [36, 9], // nine bytes in eight
    [36, 0],
  ] as const) {
    const bytes = Uint8Array.from(counted);
    bytes[at] = value;
    expectError(rig.ask(bytes));
  }
  expect(device.memory[0]).toBe(0);
});

test('regions that are only read, or only written: EPERM', () => {
  const made = new ExampleDevice();
  const regions = new Map(made.spec.regions);
  regions.set(0, { sizeBytes: 4096, read: true, write: false });
  regions.set(2, { sizeBytes: 4096, read: false, write: true });
  start({}, Object.assign(made, { spec: { ...made.spec, regions } }));
  expectError(rig.ask(write(0, 0, new Uint8Array(4))), Errno.EPERM);
  expectError(rig.ask(read(2, 0, 4)), Errno.EPERM);
});

test('a device that takes no reset: EOPNOTSUPP', () => {
  const made = new ExampleDevice();
  start({}, Object.assign(made, { spec: { ...made.spec, resettable: false } }));
  expectError(rig.ask(hex('0700 0d00 10000000 00000000 00000000')), Errno.EOPNOTSUPP);
});

test('NO_REPLY: a write is done in silence, and so is a refused one; a read makes no sense', () => {
  for (const bytes of [
    write(2, 0, Uint8Array.of(9)),
    write(2, 1 << 20, Uint8Array.of(9)),
    read(0, 0, 4),
  ]) {
    bytes[8] = 0x10;
    rig.give(bytes);
  }
  expect(rig.port.sent).toEqual([]);
  expect(device.memory[0]).toBe(9);
  expect(rig.refusals).toHaveLength(2);
});

describe('a device that does not answer', () => {
  const hold = (id = 6): Uint8Array => read(0, ExampleRegister.HOLD, 4, id);

  test('reads as all ones at the deadline; its late answer is dropped', () => {
    rig.give(hold());
    expect(rig.session.nextDeadlineNs()).toBe(4500e6);
    rig.at(4499);
    expect(rig.port.sent).toEqual([]);
    rig.at(4500);
    expect(Buffer.from(rig.port.oneMessage().bytes.subarray(28))).toEqual(
      Buffer.from(hex('04000000 ffffffff')),
    );
    device.held[0]!.complete(NOW, new Uint8Array(4));
    device.held[0]!.fail(NOW, Errno.EIO);
    expect(rig.port.sent).toEqual([]);
    expect(rig.session.counters).toMatchObject({ expired: 1, late: 2 });
  });

  test('answers later, in any order; each answer has the identifier of its read', () => {
    rig.give(hold(1));
    rig.give(hold(2));
    expect(rig.ask(read(0, 0, 4, 3)).id).toBe(3);
    device.held[1]!.complete(NOW, Uint8Array.of(9, 2, 2, 2, 2, 9), 1);
    const second = rig.port.oneMessage();
    expect([second.id, ...second.bytes.subarray(32)]).toEqual([2, 2, 2, 2, 2]);
    device.held[0]!.fail(NOW, Errno.EIO);
    expect(rig.port.oneMessage()).toMatchObject({ id: 1, flags: 0x21, errno: Errno.EIO });
  });

  test('has so many reads at once, and the others get EBUSY', () => {
    start({ maxPendingAccesses: 3 });
    for (let id = 0; id < 3; id++) rig.give(hold(id));
    expectError(rig.ask(hold(3)), Errno.EBUSY);
    device.held[0]!.complete(NOW, new Uint8Array(4));
    rig.port.sent.length = 0;
    rig.give(hold(4));
    expect(rig.port.sent).toEqual([]);
  });

  test('writes are acknowledged at the deadline, resets fail', () => {
    const made = new ExampleDevice();
    const silent = Object.assign(made, { write: () => {}, reset: () => {} });
    start({ accessTimeoutMs: 10 }, silent);
    rig.give(write(2, 0, Uint8Array.of(1)));
    rig.at(10);
    expect(rig.port.oneMessage()).toMatchObject({ command: 10, flags: 1 });
    rig.give(hex('0700 0d00 10000000 00000000 00000000'));
    rig.at(20);
    expectError(rig.port.oneMessage(), Errno.ETIMEDOUT);
  });

  test('nothing is sent once the client has gone', () => {
    rig.give(hold());
    rig.end();
    device.held[0]!.complete(NOW, new Uint8Array(4));
    rig.at(10_000);
    expect(rig.port.sent).toEqual([]);
    expect(rig.session.nextDeadlineNs()).toBe(Infinity);
  });
});

describe('MSI-X that is hidden', () => {
  beforeEach(() => start({}, new ExampleDevice({ msix: 'hide' })));

  /** The capabilities that a walk over the list finds, one byte a read. */
  function walk(): number[] {
    const byte = (at: number): number => rig.ask(read(7, at, 1)).bytes[32] as number;
    const found: number[] = [];
    for (let at = byte(0x34); at !== 0; at = byte(at + 1)) found.push(byte(at));
    return found;
  }

  test('is not in the list, and its place reads zero in any piece', () => {
    expect(walk()).toEqual([5]);
    // MSI at 0x40, 16 bytes long; MSI-X behind it at 0x50.
    expect(device.config.read32(0x50) & 0xff).toBe(0x11);
    expect(rig.ask(read(7, 0x50, 12)).bytes.subarray(32)).toEqual(new Uint8Array(12));
    const whole = rig.ask(read(7, 0, 256)).bytes.subarray(32);
    expect(whole[0x41]).toBe(0);
    expect(whole.subarray(0x50, 0x5c)).toEqual(new Uint8Array(12));
    for (let at = 0x4e; at < 0x5e; at++) {
      expect(rig.ask(read(7, at, 2)).bytes.subarray(32)).toEqual(whole.subarray(at, at + 2));
    }
  });

  test('is not enabled by a write', () => {
    expect(rig.ask(write(7, 0x52, Uint8Array.of(0, 0x80))).flags).toBe(1);
    expect(device.config.read32(0x50) >>> 31).toBe(0);
  });

  test('is there when it is exposed', () => {
    start({}, new ExampleDevice({ msix: 'expose' }));
    expect(walk()).toEqual([5, 0x11]);
    rig.ask(write(7, 0x52, Uint8Array.of(0, 0x80)));
    expect(device.config.read32(0x50) >>> 31).toBe(1);
  });
});
