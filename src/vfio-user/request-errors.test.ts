/** Peers that break the protocol: on a real socket, with real descriptors. */
import { closeSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ExampleDevice } from '#testkit/vfio-user-device';
import { hex, openFds, RawPeer, SessionRig, socketFolder, until } from '#testkit/vfio-user-rig';
import { koffiTransport } from './koffi-socket.ts';
import { newMessage } from './message.ts';
import { Errno } from './refusal.ts';
import { checkServerOptions, VfioUserServer } from './server.ts';
import { createMemoryFile } from './system-fds.ts';

const READ_ID = '0500 0900 20000000 00000000 00000000 0000000000000000 00000000 04000000';

let folder: ReturnType<typeof socketFolder>;
let server: VfioUserServer;
let device: ExampleDevice;
let path: string;
let before: number;
const peers: RawPeer[] = [];

beforeEach(() => {
  folder = socketFolder();
  path = folder.path('device');
  device = new ExampleDevice();
  server = new VfioUserServer({ path, device });
  before = openFds();
});

afterEach(async () => {
  for (const peer of peers.splice(0)) peer.close();
  await until(() => openFds() === before, 'as many descriptors as before');
  server.close();
  folder.remove();
});

function peer(): RawPeer {
  const made = new RawPeer(path);
  peers.push(made);
  return made;
}

describe('commands that are not done', () => {
  const declined: [string, number][] = [
    ['GET_REGION_IO_FDS', 6],
    ['DMA_READ to a server', 11],
    ['DMA_WRITE to a server', 12],
    ['DIRTY_PAGES', 14],
    ['DEVICE_FEATURE', 16],
    ['MIG_DATA_READ', 17],
    ['MIG_DATA_WRITE', 18],
    ['command 0', 0],
    ['command 65535', 65_535],
  ];
  test.each(declined)('%s: EOPNOTSUPP, and the session goes on', (_name, command) => {
    const rig = new SessionRig(new ExampleDevice()).hello();
    const reply = rig.ask(newMessage(77, command, 0, 40));
    expect(reply).toMatchObject({ id: 77, command, flags: 0x21, errno: Errno.EOPNOTSUPP });
    expect(rig.ask(hex(READ_ID)).flags).toBe(1);
  });
});

describe('half messages', () => {
  test('a message that comes byte by byte is done when it is whole', async () => {
    const raw = peer();
    await raw.hello();
    for (const byte of hex(READ_ID)) raw.send(Uint8Array.of(byte));
    expect((await raw.next()).bytes).toHaveLength(36);
  });

  test('many in one call are done in order', async () => {
    const raw = peer();
    await raw.hello();
    const one = hex(READ_ID);
    const many = Buffer.concat(
      Array.from({ length: 500 }, (_, id) =>
        Buffer.concat([Buffer.of(id & 255, id >> 8), one.subarray(2)]),
      ),
    );
    raw.send(many);
    for (let id = 0; id < 500; id++) expect((await raw.next()).id).toBe(id);
  });

  test('a peer that leaves within one is told from one that leaves between two', async () => {
    const raw = peer();
    await raw.hello();
    raw.send(hex(READ_ID).subarray(0, 20));
    raw.close();
    await until(() => server.session === undefined, 'the session ends');
    expect(device.events.at(-1)).toBe('detached: the peer left within a message');
  });
});

describe('lengths that cannot be', () => {
  for (const [name, size] of [
    ['0', '00000000'],
    ['15', '0f000000'],
    ['4 GiB', 'ffffffff'],
    ['one more than the largest', '01101000'], // 1 MiB + 4096 + 1
  ] as const) {
    test(`${name}: EINVAL, then the end`, async () => {
      const raw = peer();
      await raw.hello();
      const reply = await raw.ask(hex(`0900 0900 ${size} 00000000 00000000`));
      expect(reply).toMatchObject({ id: 9, flags: 0x21, errno: Errno.EINVAL });
      await until(() => raw.closedFor !== undefined, 'the server closes');
    });
  }

  test('before VERSION 8 KiB are the limit', async () => {
    const raw = peer();
    expect(await raw.ask(hex('0000 0100 01200000 00000000 00000000'))).toMatchObject({
      errno: Errno.EINVAL,
    });
    await until(() => raw.closedFor !== undefined, 'the server closes');
  });
});

describe('messages that are neither command nor answer', () => {
  const odd: [string, string][] = [
    ['a type there is not', '0500 0900 10000000 02000000 00000000'],
    ['an answer nobody waits for', '0500 0b00 10000000 01000000 00000000'],
  ];
  test.each(odd)('%s: the end', async (_name, bytes) => {
    const raw = peer();
    await raw.hello();
    raw.send(hex(bytes));
    await until(() => raw.closedFor !== undefined, 'the server closes');
    expect(device.events.at(-1)).toMatch(/^detached: protocol fault/);
  });
});

describe('descriptors', () => {
  const files = (count: number): number[] =>
    Array.from({ length: count }, () => createMemoryFile('m', 4096, true));
  const MAP = `0900 0200 30000000 00000000 00000000 20000000 03000000
    0000000000000000 0000000000000000 0010000000000000`;

  test.each([9, 20, 253])(
    '%i at once: EINVAL, all closed, and the session goes on',
    async (count) => {
      const raw = peer();
      await raw.hello();
      const during = openFds();
      const fds = files(count);
      const reply = await raw.ask(hex(MAP), fds);
      for (const fd of fds) closeSync(fd);
      expect(reply).toMatchObject({ flags: 0x21, errno: Errno.EINVAL });
      expect(openFds()).toBe(during);
      expect((await raw.ask(hex(READ_ID))).flags).toBe(1);
    },
  );

  test('with a command that takes none: EINVAL, closed', async () => {
    const raw = peer();
    await raw.hello();
    const during = openFds();
    const fds = files(2);
    const reply = await raw.ask(hex(READ_ID), fds);
    for (const fd of fds) closeSync(fd);
    expect(reply).toMatchObject({ flags: 0x21, errno: Errno.EINVAL });
    expect(openFds()).toBe(during);
  });

  test('before VERSION, and with it: closed', async () => {
    const raw = peer();
    const during = openFds() + 1;
    const fds = files(3);
    await raw.ask(newMessage(0, 1, 0, 4), fds);
    for (const fd of fds) closeSync(fd);
    await until(() => openFds() <= during, 'they are closed');
  });

  test('drop by drop with the bytes of one message: closed as they come', async () => {
    const raw = peer();
    await raw.hello();
    const during = openFds();
    const fds = files(8);
    const bytes = hex(READ_ID);
    for (const byte of bytes.subarray(0, 31)) raw.send(Uint8Array.of(byte), fds);
    await until(() => openFds() <= during + 16, 'no more than eight are kept');
    const reply = await raw.ask(bytes.subarray(31));
    for (const fd of fds) closeSync(fd);
    expect(reply).toMatchObject({ flags: 0x21, errno: Errno.EINVAL });
    expect(openFds()).toBe(during);
  });

  test('with half a message whose sender leaves: closed', async () => {
    const raw = peer();
    await raw.hello();
    const fds = files(5);
    raw.send(hex(MAP).subarray(0, 30), fds);
    for (const fd of fds) closeSync(fd);
    raw.close();
    await until(() => server.session === undefined, 'the session ends');
  });

  test('with the second of two messages in one call they belong to the first, as its bytes do', async () => {
    const raw = peer();
    await raw.hello();
    const [fd] = files(1);
    raw.send(Buffer.concat([hex(MAP), hex(READ_ID)]), [fd!]);
    closeSync(fd!);
    expect((await raw.next()).command).toBe(2);
    expect((await raw.next()).command).toBe(9);
    expect(device.regions.map((region) => region.access)).toEqual(['mapped']);
  });
});

test('a client that asks and does not read is not read either, and holds nobody up', async () => {
  const raw = koffiTransport.connect(path);
  raw.send(newMessage(0, 1, 0, 4), 0, []);
  // Each asks for 1 MiB.
  const ask = Buffer.concat([
    hex('0500 0900 20000000 00000000 00000000 0000000000000000 02000000 00001000'),
  ]);
  let sent = 0;
  for (let round = 0; round < 200; round++) {
    while (sent < 10_000 && raw.send(ask, 0, []) === ask.length) sent++;
    await new Promise((resolve) => setImmediate(resolve));
  }
  // 8 MiB wait, one more may have begun; the rest of the requests lies in the socket.
  expect(server.counters!.messages).toBeLessThan(16);
  raw.close();
  await until(() => server.session === undefined, 'the session ends');
});

test('options that cannot be are errors that name them', () => {
  for (const [options, name] of [
    [{ accessTimeoutMs: 0 }, 'accessTimeoutMs'],
    [{ maxMsgFds: 254 }, 'maxMsgFds'],
    [{ maxDataXferBytes: 4095 }, 'maxDataXferBytes'],
    [{ maxPendingAccesses: 1.5 }, 'maxPendingAccesses'],
  ] as const) {
    expect(() => checkServerOptions(options)).toThrow(name);
  }
});

describe('the socket file', () => {
  test('is replaced when nobody listens there, otherwise not', () => {
    expect(() => new VfioUserServer({ path, device })).toThrow('somebody listens');
    expect(() => new VfioUserServer({ path: folder.path('x'.repeat(200)), device })).toThrow(
      'a socket path has 1 to 107 bytes',
    );
    expect(() => koffiTransport.listen(process.execPath, () => {})).toThrow('not a socket');
  });

  test('where there is none to use, says why, at which path, and how to go on', () => {
    const file = folder.path('file');
    writeFileSync(file, '');
    const listen = (at: string) => () => koffiTransport.listen(at, () => {}).close();
    const connect = (at: string) => () => koffiTransport.connect(at).close();
    for (const [action, words] of [
      [
        connect(folder.path('nobody')),
        `connect to ${folder.path('nobody')}: there is no such socket`,
      ],
      [connect(file), `connect to ${file}: nobody listens there`],
      [connect(`${file}/x`), 'a part of its path is no folder (ENOTDIR)'],
      [listen(folder.path('none/x')), 'none/x: there is no such folder (ENOENT)'],
      [listen(file), `${file} is there and is not a socket: name another path, or remove it`],
      [listen(path), `somebody listens at ${path} already: end that process, or name another path`],
    ] as const) {
      expect(action).toThrow(words);
    }
  });
});
